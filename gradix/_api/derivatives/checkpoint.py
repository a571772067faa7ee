"""`checkpoint`: saves memory by recomputing values in the backward pass; its policies and names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

from gradix._api.arguments import Names, as_names, as_numbers, check_callable, name_of, named_as
from gradix._api.boundary import Flat, around, arrays, opened, with_arrays
from gradix._base.lazy import alias, lazy_module
from gradix._base.tracebacks import filter_frames
from gradix._base.tree import broadcast_prefix, tree_flatten as flatten
from gradix._control.remat import remat_p
from gradix._core.refs import Ref
from gradix._core.trace import bind, state
from gradix._ops.dot import dot_general_p
from gradix._ops.markers import name_p
from gradix._transforms.staging import give_back, hoist, with_refs, written

_sharing = lazy_module("gradix._api.jit.sharing")
_elsewhere = lazy_module("gradix._base.elsewhere")
T = TypeVar("T")
P = ParamSpec("P")


def checkpoint(
    fun: Callable[P, T],
    *,
    prevent_cse: Any = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool = False,
) -> Callable[P, T]:
    """`fun`, whose backward pass recomputes intermediate values instead of keeping them.

    Args:
        fun: the function.
        prevent_cse: keep the compiler from merging the recomputation with the forward pass under
            `jit`; False is faster inside `scan`. A tuple says it of each positional argument, by a
            bool or a tree prefix of them: what comes from others and from captured values may be merged.
        policy: says which values are kept; one of `checkpoint_policies`. None keeps no value.
        static_argnums, static_argnames: arguments that are Python values.
        concrete: accepted for compatibility.

    Returns:
        A function with the arguments and results of `fun`.

    Raises:
        TypeError: `fun` or `policy` is not a function.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.grad(gradix.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    check_callable("checkpoint", fun, takes_static=True)
    if policy is not None and not callable(policy):
        known = [name for name in dir(checkpoint_policies) if not name.startswith("_")]
        near = _elsewhere.close_to(policy, known) if isinstance(policy, str) else ""
        raise TypeError(
            f"checkpoint: policy must be a function or None, got {policy!r}. gradix.checkpoint_policies has "
            f"{', '.join(known)}{near or '.'}"
        )
    asked = next((arguments for maker, arguments in _MADE_OF_ARGUMENTS.items() if maker is policy), None)
    if asked is not None:
        name = name_of(policy)
        raise TypeError(
            f"checkpoint: policy is {name} itself, which makes a policy. Call it, as in policy="
            f"gradix.checkpoint_policies.{name}({asked})."
        )
    numbers = as_numbers("static_argnums", static_argnums)
    names = as_names("static_argnames", static_argnames)

    @named_as(fun)
    def checkpointed(*args, **kwargs):
        try:
            static = {n % len(args): args[n] for n in numbers if -len(args) <= n < len(args)}
            named = {k: kwargs[k] for k in names if k in kwargs}
            if _shows_values():
                return _called(fun, args, kwargs, static, named)
            dynamic = tuple(a for i, a in enumerate(args) if i not in static)
            others = {k: v for k, v in kwargs.items() if k not in named}
            leaves, tree = opened((dynamic, others))
            # refs among the arguments are used as those that the function captured
            refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
            fill = around(refs, len(leaves), tree)
            leaves = arrays("checkpoint", leaves, tree, "argument ", refs)
            xs = [x for x in leaves if not isinstance(x, Ref)]

            def given(operands):
                positional, keywords = fill(operands)
                rest = iter(positional)
                full = [static[i] if i in static else next(rest) for i in range(len(args))]
                return full, {**keywords, **named}

            apart = () if isinstance(prevent_cse, bool) else _apart(prevent_cse, dynamic, leaves, others)
            names_of = Names(fun, tree, static)
            flat = Flat(fun, name_of(fun), given, is_program=True, names=names_of)
            avals = [x.aval for x in xs]
            if refs:
                traced = flat.stage_with_refs(avals)
            else:
                form = "checkpoint", tree, *_typed(static), *_typed(named)
                traced = _sharing.stage_shared(fun, flat, avals, form)
            own = written(traced[2])
            closed, consts = hoist(*with_refs(*traced, own) if traced[2] else traced[:2])
            apart = (False,) * len(consts) + (True,) * len(own) + apart
            outs = bind(
                remat_p,
                [*consts, *[r.read() for r in own], *xs],
                {
                    "jaxpr": closed,
                    "prevent_cse": prevent_cse if isinstance(prevent_cse, bool) else apart,
                    "differentiated": False,
                    "policy": policy,
                    "name": name_of(fun),
                },
            )
            return flat.out_tree.unflatten(give_back(own, outs))
        except Exception as error:
            filter_frames(error)
            raise

    return checkpointed


def _apart(prevent_cse, positional: tuple, leaves, keywords: dict) -> tuple:
    """For each array among the arguments whether the compiler must keep the recomputation from it apart.

    Raises:
        ValueError: `prevent_cse` is not a tree prefix of the positional arguments.
        TypeError: it holds something else than bools.
    """
    flags = broadcast_prefix(prevent_cse, positional) + [True] * len(flatten(keywords)[0])
    wrong = next((f for f in flags if not isinstance(f, bool)), None)
    if wrong is not None:
        raise TypeError(
            f"checkpoint: prevent_cse must be a bool, or a tuple of bools or trees of them for the positional "
            f"arguments, got {prevent_cse!r}, which holds {wrong!r}."
        )
    return tuple([f for f, x in zip(flags, leaves, strict=True) if not isinstance(x, Ref)])


def _shows_values() -> bool:
    # A function of its own, since pickles hold all that the code of a checkpointed function names.
    return state.shows_values


def _called(fun: Callable, args, kwargs, static, named) -> Any:
    """The function's result under `debug.values()`, which recomputes nothing, so that the function sees its numbers."""
    given = [a if i in static else with_arrays(a) for i, a in enumerate(args)]
    keywords = {k: v if k in named else with_arrays(v) for k, v in kwargs.items()}
    return with_arrays(fun(*given, **keywords))


def _typed(values: dict) -> list:
    """The items of a dict as parts of a key that tells 1 and 1.0 apart."""
    return [(k, type(v), v) for k, v in values.items()]


def checkpoint_name(x: Any, name: str) -> Any:
    """`x` under a name, by which policies such as `save_only_these_names` find it.

    Example:
        >>> from gradix.ad_checkpoint import checkpoint_name
        >>> checkpoint_name(1.0, "hidden")
        Array(1., dtype=float32, weak_type=True)
    """
    leaves, tree = opened(x)
    return tree.unflatten([bind(name_p, (a,), {"name": name}) for a in arrays("checkpoint_name", leaves, tree, "x")])


def everything_saveable(prim, *_, **params) -> bool:
    """Keep every value."""
    return True


def nothing_saveable(prim, *_, **params) -> bool:
    """Keep no value."""
    return False


def dots_saveable(prim, *_, **params) -> bool:
    """Keep the results of matrix products."""
    return prim is dot_general_p


def dots_with_no_batch_dims_saveable(prim, *_, **params) -> bool:
    """Keep the results of matrix products without batch dimensions."""
    return prim is dot_general_p and not any(params["dimension_numbers"][1])


def save_any_names_but_these(*names: str) -> Callable[..., bool]:
    """Keep all named values except those with these names."""
    return functools.partial(_named, _set_of("save_any_names_but_these", names), False)


def save_anything_except_these_names(*names: str) -> Callable[..., bool]:
    """Keep all values except those with these names."""
    hidden = _set_of("save_anything_except_these_names", names)
    return lambda prim, *_, **params: not (prim is name_p and params["name"] in hidden)


def save_only_these_names(*names: str) -> Callable[..., bool]:
    """Keep only the values with these names."""
    return functools.partial(_named, _set_of("save_only_these_names", names), True)


def _set_of(maker: str, names: tuple) -> frozenset:
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"{maker} takes names one by one, as in {maker}('first', 'second'), got {names}.")
    return frozenset(names)


def _named(names, inside, prim, *_, **params) -> bool:
    return prim is name_p and (params["name"] in names) is inside


def save_from_both_policies(policy_1: Callable[..., bool], policy_2: Callable[..., bool]) -> Callable[..., bool]:
    """Keep the values that at least one of the policies keeps."""
    return lambda prim, *args, **params: policy_1(prim, *args, **params) or policy_2(prim, *args, **params)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., bool]:
    """Keep matrix products without batch dimensions; they stay in the device's memory."""
    return dots_with_no_batch_dims_saveable


def save_and_offload_only_these_names(
    *, names_which_can_be_saved, names_which_can_be_offloaded, offload_src: str, offload_dst: str
) -> Callable[..., bool]:
    """Keep the values with names of either list; they stay in the device's memory.

    Raises:
        ValueError: a name is in both lists.
    """
    both = sorted(set(names_which_can_be_saved) & set(names_which_can_be_offloaded))
    if both:
        raise ValueError(
            f"save_and_offload_only_these_names: {both} are in names_which_can_be_saved and in "
            "names_which_can_be_offloaded. Leave each in one of them."
        )
    return save_only_these_names(*names_which_can_be_saved, *names_which_can_be_offloaded)


class _Policies(SimpleNamespace):
    """The policies by name."""

    def __getattr__(self, name: str):
        near = "" if name.startswith("_") else _elsewhere.close_to(name, vars(self)) or "."
        raise AttributeError(f"gradix.checkpoint_policies has no attribute {name!r}{near}")


checkpoint_policies = _Policies(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_any_names_but_these=save_any_names_but_these,
    save_anything_except_these_names=save_anything_except_these_names,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)

# Functions that return a policy, and arguments as users write them.
_MADE_OF_ARGUMENTS: dict = {
    offload_dot_with_no_batch_dims: '"device", "pinned_host"',
    save_any_names_but_these: '"name"',
    save_anything_except_these_names: '"name"',
    save_only_these_names: '"name"',
    save_from_both_policies: "first, second",
    save_and_offload_only_these_names: 'names_which_can_be_saved=["name"], names_which_can_be_offloaded=[], '
    'offload_src="device", offload_dst="pinned_host"',
}

remat = alias(checkpoint, "remat")
