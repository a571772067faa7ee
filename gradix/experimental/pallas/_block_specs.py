"""Block specs taken back and forth through functions: `pull_block_spec`, `push_block_spec`."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import random
from collections.abc import Callable
from typing import Any

from gradix import numpy as jnp
from gradix._api.boundary import Flat, arrays
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten, tree_structure
from gradix._control.custom_jvp import call_custom_jvp, custom_jvp_call_p
from gradix._control.custom_vjp import call_custom_vjp, custom_vjp_call_p
from gradix._core.aval import ShapedArray
from gradix._core.dtypes import requested_dtype
from gradix._core.jaxpr import JaxprEqn, Literal, Var, fold, no_debug
from gradix._core.trace import bind
from gradix._ops.basis import is_differentiable
from gradix._transforms.staging import eval_jaxpr, stage_open
from gradix.experimental.pallas._block_rules import (
    Place,
    cut_of,
    index_of,
    is_of_single_elements,
    rule_of,
    shape_of,
    whole,
)
from gradix.experimental.pallas._call_marks import mark_of, marked_call, written_out
from gradix.experimental.pallas._specs import BlockSpec, no_block_spec

_SAMPLES = 16


# -- functions with what they close over -----------------------------------------------------------


class _Opened:
    """A function whose captured arrays are arguments, and whose captured scalars are prefetched."""

    def __init__(self, closed, consts, in_tree, out_tree):
        self.jaxpr, held = written_out(closed)
        self.in_tree, self.out_tree = in_tree, out_tree
        captured = [*held, *consts]
        n = len(captured)
        inputs, self.own = self.jaxpr.invars[:n], self.jaxpr.invars[n:]
        self.scalars = [v for v in inputs if not v.aval.shape]
        self.arrays = [v for v in inputs if v.aval.shape]
        self.captured = dict(zip(inputs, captured))
        self.prefetched = tuple([x for x in captured if not x.shape])
        self.values = tuple([x for x in captured if x.shape])

    def __call__(self, values, *args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree or len(values) != len(self.values):
            raise TypeError(
                f"get_fusion_values: the function takes {len(self.values)} values and arguments {self.in_tree}, got "
                f"{len(values)} and {tree}."
            )
        given = dict(zip([*self.arrays, *self.scalars, *self.own], [*values, *self.prefetched, *leaves]))
        xs = arrays(
            "get_fusion_values", [given[v] for v in self.jaxpr.invars], tree_structure([0] * len(given)), "args"
        )
        return self.out_tree.unflatten(eval_jaxpr(self.jaxpr, (), *xs))


def _opened(what: str, f: Callable, args, kwargs) -> _Opened:
    leaves, in_tree = tree_flatten((args, kwargs))
    flat = Flat(f, what, in_tree.unflatten)
    closed, consts = stage_open(flat, [ShapedArray(tuple(x.shape), requested_dtype(x.dtype)) for x in leaves])
    if closed.effects:
        raise ValueError(
            f"{what}: the function reads or writes mutable arrays, or prints, which a fusion must not. Pass it values."
        )
    return _Opened(closed, consts, in_tree, flat.out_tree)


@boundary
def get_fusion_values(fusion: Callable, *args: Any, **kwargs: Any) -> tuple[Callable, tuple, tuple]:
    """A function with the arrays that it captures as arguments.

    Args:
        fusion: the function, such as a `Fusion`.
        *args, **kwargs: types of its arguments.

    Returns:
        The function of `(values, *args, **kwargs)`; the captured arrays, which are these values; and
        captured scalars, on which indices of blocks may depend and which a kernel should prefetch.

    Raises:
        ValueError: the function has effects.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.pallas import fuser
        >>> bias = jnp.arange(3.0)
        >>> x = gradix.ShapeDtypeStruct((3,), jnp.float32)
        >>> add, values, scalars = fuser.get_fusion_values(lambda x: x + bias, x)
        >>> add(values, jnp.ones(3)), len(values), scalars
        (Array([1., 2., 3.], dtype=float32), 1, ())
    """
    opened = _opened("get_fusion_values", fusion, args, kwargs)
    return opened, opened.values, opened.prefetched


@boundary
def make_scalar_prefetch_handler(*args: Any) -> Callable:
    """A function that picks the scalars of one fusion out of all that a kernel prefetches.

    Args:
        *args: indices or keys, one after the other.

    Example:
        >>> from gradix.experimental.pallas import fuser
        >>> fuser.make_scalar_prefetch_handler(1, "scale")({}, {"scale": 2})
        2
    """

    def handler(*prefetched):
        return functools.reduce(lambda found, key: found[key], args, prefetched)

    return handler


# -- custom fusions --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class BlockIndexTransform:
    """The shape of a block, and its index as a function of the program.

    Args:
        block_shape: an entry for each dimension, as in `BlockSpec`.
        block_index_transform: from the indices of the program to the index of the block.

    Example:
        >>> from gradix.experimental.pallas import fuser
        >>> rows = fuser.BlockIndexTransform((8, 128), lambda i, j: (i, j))
        >>> rows.replace(block_shape=(1, 128), block_index_transform=lambda i, j: (0, j)).block_shape
        (1, 128)
    """

    block_shape: Any
    block_index_transform: Callable = lambda *indices: indices
    _: dataclasses.KW_ONLY
    memory_space: Any = None
    pipeline_mode: Any = None

    def replace(self, /, **changes) -> BlockIndexTransform:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class CustomEvalContext:
    """What a rule of a custom fusion knows: the specs of operands and results, and where the blocks of results lie."""

    in_block_specs: tuple
    out_block_specs: tuple
    out_block_indices: tuple


class custom_fusion:
    """A function with rules of its own for blocks.

    Args:
        fun: the function, which is also what runs outside of fusions.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import fuser
        >>> @fuser.custom_fusion
        ... def double(x):
        ...     return x + x
        >>> _ = double.def_pull_block_spec(lambda outs: (outs[0],))
        >>> _ = double.def_eval_rule(lambda ctx, x: (2 * x,))
        >>> x = gradix.ShapeDtypeStruct((8,), jnp.float32)
        >>> run, (spec,), _ = fuser.pull_block_spec(double, pl.BlockSpec((2,), lambda i: (i,)))(x)
        >>> run((0,), (), jnp.ones(2)), spec.block_shape
        (Array([2., 2.], dtype=float32), (2,))
    """

    def __init__(self, fun: Callable):
        self.fun = fun
        self.pull: Callable | None = None
        self.push: Callable | None = None
        self.run: Callable | None = None
        self.inside: Callable | None = None
        functools.update_wrapper(self, fun)

    def __call__(self, *args):
        bound = inspect.signature(self.fun).bind(*args)
        bound.apply_defaults()
        leaves, tree = tree_flatten(bound.args)
        leaves = arrays("custom_fusion", leaves, tree, "args")
        return marked_call(self, self.fun.__name__, lambda *xs: self.fun(*tree.unflatten(xs)), leaves)

    def def_pull_block_spec(self, rule: Callable) -> Callable:
        """Set the rule from a tuple of `BlockIndexTransform` of the results to those of the operands."""
        self.pull = rule
        return rule

    def def_push_block_spec(self, rule: Callable) -> Callable:
        """Set the rule from a tuple of `BlockSpec` of the operands to those of the results."""
        self.push = rule
        return rule

    def def_eval_rule(self, rule: Callable) -> Callable:
        """Set the rule `rule(context, *blocks)`, which returns a sequence of blocks of the results."""
        self.run = rule
        return rule

    def def_pallas_impl(self, rule: Callable) -> Callable:
        """Set another function of blocks, for accelerators; kernels run the function itself here."""
        self.inside = rule
        return rule

    def needs(self, rule: str) -> Callable:
        """One of the rules.

        Raises:
            NotImplementedError: it has not been set.
        """
        found = {"pull_block_spec": self.pull, "push_block_spec": self.push, "eval_rule": self.run}[rule]
        if found is None:
            raise NotImplementedError(
                f"The custom fusion {self.fun.__name__} has no {rule}: set it with "
                f"{self.fun.__name__}.def_{rule}(rule)."
            )
        return found


def _custom_of(eqn: JaxprEqn) -> custom_fusion | None:
    mark = mark_of(eqn)
    return mark.what if mark is not None and isinstance(mark.what, custom_fusion) else None


# -- pulling ---------------------------------------------------------------------------------------


@boundary
def pull_block_spec(
    f: Callable,
    out_block_specs: Any,
    *,
    scalar_prefetch_handler: Callable | None = None,
    grid_len: int | None = None,
    strict_mode: bool = True,
) -> Callable:
    """The blocks of the arguments of which a function computes a block of its results, and how.

    Args:
        f: the function. Arrays that it captures are captured by the kernel, if they are not taken
            out of it by `get_fusion_values`.
        out_block_specs: the specs of the results, a tree as they are.
        scalar_prefetch_handler: from all that the kernel prefetches to what `f` captured of it.
        grid_len: the number of axes of the kernel's grid; needed if indices depend on such scalars.
        strict_mode: whether an argument that is needed in two places must be needed in equal blocks;
            otherwise the shapes of both blocks must be equal, and the first is taken.

    Returns:
        A function of (types of) the arguments that returns `(kernel_fn, specs, specs_by_name)`:
        `kernel_fn(program_ids, prefetched, *blocks)` computes blocks of the results of blocks of the
        arguments, whose specs are `specs`.

    Raises:
        NotImplementedError: an operation of `f` has no rule, or mixes blocks.
        ValueError: an argument is needed in two different blocks.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import fuser
        >>> x, row = gradix.ShapeDtypeStruct((8, 6), "float32"), gradix.ShapeDtypeStruct((6,), "float32")
        >>> out = pl.BlockSpec((3, 4), lambda i, j: (i, j))
        >>> run, (of_x, of_row), _ = fuser.pull_block_spec(lambda x, row: (x * row).T, out)(x, row)
        >>> of_x.block_shape, of_x.index_map(0, 1), of_row.block_shape, of_row.index_map(0, 1)
        ((4, 3), (1, 0), (3,), (0,))
        >>> run((0, 0), (), jnp.ones((4, 3)), jnp.arange(3.0)).shape
        (3, 4)
    """
    handler = scalar_prefetch_handler or make_scalar_prefetch_handler()

    @boundary
    def wrapped(*args, **kwargs):
        opened, leaves_of, back = _with_values("pull_block_spec", f, args, kwargs)
        specs, tree = tree_flatten(out_block_specs, _is_spec)
        if tree != opened.out_tree:
            raise ValueError(f"pull_block_spec: out_block_specs is {tree}, and the results are {opened.out_tree}.")
        pulled = _Pulled(opened, specs, handler, grid_len, strict_mode, opened is f)
        found = [pulled.specs.get(v, no_block_spec) for v in leaves_of]

        def kernel_fn(program_ids, scalar_prefetch, *args, **kwargs):
            blocks = tree_flatten((args, kwargs))[0]
            env = dict(zip(leaves_of, arrays("kernel_fn", blocks, tree_structure([0] * len(blocks)), "args")))
            place = (*program_ids, *scalar_prefetch)
            return opened.out_tree.unflatten(pulled.run(env, place))

        in_specs, by_name = back.unflatten(found)
        return kernel_fn, in_specs, by_name

    return wrapped


def _is_spec(x) -> bool:
    return isinstance(x, BlockSpec) or x is no_block_spec


def _with_values(what: str, f, args, kwargs) -> tuple[_Opened, list[Var], Any]:
    """A function's program, the inputs that are its arguments, and the tree of these."""
    leaves, tree = tree_flatten((args, kwargs))
    if isinstance(f, _Opened):
        return f, [*f.arrays, *f.own], tree
    opened = _opened(what, f, args, kwargs)
    return opened, opened.own, tree


class _Pulled:
    """The blocks that a program needs for blocks of its results."""

    def __init__(
        self, opened: _Opened, outs: list, handler: Callable, grid_len: int | None, strict: bool, is_opened: bool
    ):
        self.opened, self.handler, self.grid_len, self.strict = opened, handler, grid_len, strict
        self.is_opened = is_opened  # whether what the function captures is given to the kernel
        self.rank = _rank(grid_len, outs)
        self.makers = {v: eqn for eqn in opened.jaxpr.eqns for v in eqn.outvars}
        self.needed: dict[Var, list[BlockSpec]] = {}
        self.steps: list[tuple[JaxprEqn, list, list]] = []
        self.outs = [
            None if type(v) is Literal else self._need(v, whole(v.aval.shape, s))
            for v, s in zip(opened.jaxpr.outvars, outs)
        ]
        for eqn in reversed(opened.jaxpr.eqns):
            self._through(eqn)
        given = [*opened.arrays, *opened.own] if is_opened else opened.own
        self.specs = {v: self._only(v) for v in given if v in self.needed}

    def _need(self, v, spec: BlockSpec) -> int:
        """Which of the blocks needed of a value a block is; a new one, if it is none of them."""
        known = self.needed.setdefault(v, [])
        for i, other in enumerate(known):
            if other is spec or _are_equal(other, spec, self.rank):
                return i
        known.append(spec)
        return len(known) - 1

    def _only(self, v) -> BlockSpec:
        first, *others = self.needed[v]
        for other in others:
            if self.strict or shape_of(first) != shape_of(other):
                raise ValueError(
                    f"pull_block_spec: an argument of shape {v.aval.shape} is needed in two different blocks, of "
                    f"shapes {first.block_shape} and {other.block_shape}. Pass it twice, or compute outside of the "
                    "fusion what moves its elements."
                )
        return first

    def _through(self, eqn: JaxprEqn) -> None:
        asked = [self.needed.get(v, []) for v in eqn.outvars]
        for k in range(max(map(len, asked), default=0)):
            outs = [(specs[min(k, len(specs) - 1)] if specs else None) for specs in asked]
            ins = self._pull(eqn, outs)
            places = [None if s is None or type(v) is Literal else self._need(v, s) for v, s in zip(eqn.invars, ins)]
            self.steps.append((eqn, [*zip(places, ins)], [*zip([min(k, len(s) - 1) for s in asked], outs)]))

    def _pull(self, eqn: JaxprEqn, outs: list) -> list:
        custom = _custom_of(eqn)
        if custom is not None:
            given = tuple([None if s is None else _transform_of(s) for s in outs])
            found = custom.needs("pull_block_spec")(given)
            return [_spec_of(t) for t in found]
        if eqn.primitive in _RULED:
            _check_elementwise(eqn)
            shape = eqn.outvars[0].aval.shape
            return [outs[0] if v.aval.shape == shape else BlockSpec((), lambda *_: ()) for v in eqn.invars]
        rule = rule_of(eqn)
        if eqn.primitive.name == "dynamic_slice":
            return rule.pull(eqn, outs[0], self.scalar)
        return rule.pull(eqn, outs[0])

    def scalar(self, v, indices: tuple):
        """The value of a scalar that is known before a kernel starts."""
        if type(v) is Literal:
            return v.val
        if v in self.opened.scalars:
            if not self.is_opened:
                return self.opened.captured[v]
            if self.grid_len is None:
                raise ValueError(
                    "pull_block_spec: the index of a block depends on a scalar that is prefetched. Say how many of an "
                    "index map's arguments are indices in the grid: grid_len=len(grid)."
                )
            found = self.handler(*indices[self.grid_len :])[self.opened.scalars.index(v)]
            return found[0] if getattr(found, "shape", ()) else found
        eqn = self.makers.get(v)
        if eqn is None or len(eqn.outvars) != 1:
            raise NotImplementedError(
                "pull_block_spec: the index of a block depends on an array. Let it be a scalar that the function "
                "captures."
            )
        return bind(eqn.primitive, [jnp.asarray(self.scalar(w, indices)) for w in eqn.invars], eqn.params)

    def run(self, blocks: dict, place: tuple) -> list:
        """Blocks of the results, of those of the arguments."""
        env: dict = {(v, 0): x for v, x in blocks.items()}
        for v, specs in self.needed.items():
            for i, spec in enumerate(specs):
                if v in blocks:
                    env[v, i] = blocks[v]
                elif v in self.opened.scalars:
                    env[v, i] = jnp.asarray(self.scalar(v, place))
                elif v in self.opened.captured:
                    env[v, i] = cut_of(self.opened.captured[v], spec, place)

        def read(v, i):
            return v.val if type(v) is Literal else env[v, i]

        for eqn, ins, outs in reversed(self.steps):
            xs = [None if i is None and type(v) is not Literal else read(v, i) for v, (i, _) in zip(eqn.invars, ins)]
            found = self._run(eqn, place, [s for _, s in ins], [s for _, s in outs], xs)
            for v, (i, s), x in zip(eqn.outvars, outs, found):
                if s is not None:
                    env[v, i] = x
        return [read(v, i) for v, i in zip(self.opened.jaxpr.outvars, self.outs)]

    def _run(self, eqn: JaxprEqn, place: tuple, ins: list, outs: list, xs: list) -> list:
        custom = _custom_of(eqn)
        if custom is not None:
            numbers = tuple([None if s is None else index_of(s, place) for s in outs])
            return list(custom.needs("eval_rule")(CustomEvalContext(tuple(ins), tuple(outs), numbers), *xs))
        if eqn.primitive in _RULED:
            return _run_with_rule(eqn, xs)
        return [rule_of(eqn).run(eqn, Place(place, self.scalar), ins, outs[0], *xs)]


def _transform_of(spec: BlockSpec) -> BlockIndexTransform:
    return BlockIndexTransform(
        spec.block_shape,
        lambda *indices: index_of(spec, indices),
        memory_space=spec.memory_space,
        pipeline_mode=spec.pipeline_mode,
    )


def _spec_of(t: Any) -> BlockSpec | None:
    if t is None or isinstance(t, BlockSpec):
        return t
    return BlockSpec(t.block_shape, t.block_index_transform, t.pipeline_mode, memory_space=t.memory_space)


def _are_equal(one: BlockSpec, other: BlockSpec, rank: int | None) -> bool:
    """Whether two specs have the same blocks: for a number of programs, their indices are equal."""
    if one.block_shape != other.block_shape or rank is None:
        return False
    rng = random.Random(0)
    try:
        for _ in range(_SAMPLES):
            ids = [rng.randrange(1 << 16) for _ in range(rank)]
            if tuple(map(int, index_of(one, ids))) != tuple(map(int, index_of(other, ids))):
                return False
    except (TypeError, IndexError, ValueError):  # an index depends on what is prefetched
        return False
    return True


def _rank(grid_len: int | None, specs) -> int | None:
    """The number of axes of the grid, if it is given or the index map of one of the specs tells it."""
    for spec in specs:
        if grid_len is None and spec is not no_block_spec and spec.index_map is not None:
            kinds = [p.kind for p in inspect.signature(spec.index_map).parameters.values()]
            if all(k is inspect.Parameter.POSITIONAL_OR_KEYWORD for k in kinds):
                return len(kinds)
    return grid_len


# -- functions with derivatives of their own -------------------------------------------------------


_RULED = (custom_jvp_call_p, custom_vjp_call_p)


def _check_elementwise(eqn: JaxprEqn) -> None:
    """Raise if a function with a derivative of its own, or that derivative, is not one of single elements."""
    p = eqn.params

    def flat(closed):
        return written_out(closed, lambda e: e.params["call_jaxpr"] if e.primitive in _RULED else None)[0]

    programs = [flat(p["call_jaxpr"])]
    if eqn.primitive is custom_jvp_call_p and all(is_differentiable(v.aval) for v in eqn.invars[p["num_consts"] :]):
        avals = [v.aval for v in eqn.invars[p["num_consts"] :]]
        n = len(avals)

        def rule(*xs):
            outs, tangents = p["jvp"](list(xs[:n]), list(xs[n:]))
            return [*outs, *[t for t in tangents if t is not None]]

        programs.append(flat(stage_open(rule, [*avals, *avals])[0]))
    if not all(map(is_of_single_elements, programs)):
        raise NotImplementedError(
            f"{p['name']} in a fusion: it has a derivative of its own, and is not a function of single elements, so "
            "that its rule would not hold for blocks. Compute it outside of the fused function."
        )


def _run_with_rule(eqn: JaxprEqn, xs: list) -> list:
    """Call a function that has a derivative of its own on blocks."""
    p, n = eqn.params, eqn.params["num_consts"]
    consts, xs = xs[:n], [jnp.asarray(x) for x in xs[n:]]
    inner, held = written_out(p["call_jaxpr"])
    static = p.get("num_static", 0)

    def function(*xs):
        return fold(inner, (), [*held, *consts, *xs], apply)

    def apply(eqn, xs):
        return _run_with_rule(eqn, xs) if eqn.primitive in _RULED else [bind(eqn.primitive, xs, eqn.params)]

    zeros = p.get("symbolic_zeros", False)
    if eqn.primitive is custom_jvp_call_p:
        return call_custom_jvp(function, p["jvp"], xs, p["name"], no_debug, static, symbolic_zeros=zeros)

    def refuse(*_, **__):
        raise NotImplementedError(
            f"{p['name']} in a fusion: its rule for reverse mode is one of whole arrays, and is not applied to blocks. "
            "Compute it outside of the fused function, or give it a rule by custom_jvp."
        )

    return call_custom_vjp(function, refuse, refuse, xs, p["name"], no_debug, num_static=static)


# -- pushing ---------------------------------------------------------------------------------------


@boundary
def push_block_spec(
    f: Callable,
    *in_spec_args: Any,
    scalar_prefetch_handler: Callable | None = None,
    grid_len: int | None = None,
    strict_mode: bool = True,
    return_out_type: bool = False,
    **in_spec_kwargs: Any,
) -> Callable:
    """The blocks of the results that a function makes of blocks of its arguments.

    Args:
        f: the function, which may capture arrays.
        *in_spec_args, **in_spec_kwargs: the specs of the arguments, trees as they are;
            `pl.no_block_spec` for those that the others decide.
        scalar_prefetch_handler: accepted as for `pull_block_spec`; nothing that is pushed depends on it.
        grid_len: the number of axes of the kernel's grid.
        strict_mode: whether the blocks of operands must have equal indices; otherwise equal shapes.
        return_out_type: whether to return the types of the results as well.

    Returns:
        A function of (types of) the arguments that returns the specs of the results.

    Raises:
        NotImplementedError: an operation of `f` has no rule, or mixes blocks.
        ValueError: operands have different blocks, or only one that is stretched has any.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import fuser
        >>> x = gradix.ShapeDtypeStruct((8, 6), "float32")
        >>> spec = fuser.push_block_spec(lambda x: x.T.reshape(3, 2, 8), pl.BlockSpec((4, 2), lambda i, j: (i, j)))(x)
        >>> spec.block_shape, spec.index_map(1, 2)
        ((1, 2, 4), (2, 0, 1))
    """

    @boundary
    def wrapped(*args, **kwargs):
        specs, tree = tree_flatten((in_spec_args, in_spec_kwargs), _is_spec)
        leaves, in_tree = tree_flatten((args, kwargs))
        if tree != in_tree:
            raise ValueError(f"push_block_spec: the specs are {tree}, and the arguments are {in_tree}.")
        opened, rank = _opened("push_block_spec", f, args, kwargs), _rank(grid_len, specs)
        known: dict = {v: s if s is no_block_spec else whole(v.aval.shape, s) for v, s in zip(opened.own, specs)}
        for eqn in opened.jaxpr.eqns:
            ins = [no_block_spec if type(v) is Literal else known.get(v, no_block_spec) for v in eqn.invars]
            if all(s is no_block_spec for s in ins):
                continue
            known.update(zip(eqn.outvars, _pushed(eqn, ins, rank, strict_mode)))
        outs = [no_block_spec if type(v) is Literal else known.get(v, no_block_spec) for v in opened.jaxpr.outvars]
        found = opened.out_tree.unflatten(outs)
        if not return_out_type:
            return found
        types = [ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in opened.jaxpr.outvars]
        return found, opened.out_tree.unflatten(types)

    return wrapped


def _pushed(eqn: JaxprEqn, ins: list, rank: int | None, strict: bool) -> list:
    custom = _custom_of(eqn)
    if custom is not None:
        return list(custom.needs("push_block_spec")(tuple(ins)))
    if eqn.primitive in _RULED:
        _check_elementwise(eqn)
        found: Any = [s for v, s in zip(eqn.invars, ins) if s is not no_block_spec and v.aval.shape]
    else:
        found = rule_of(eqn).push(eqn, *ins)
    if not isinstance(found, list):
        return [found]
    if not found:
        return [no_block_spec] * len(eqn.outvars)
    first, *others = found
    for other in others:
        if not (first is other or _are_equal(first, other, rank) or not strict and _alike(first, other)):
            raise ValueError(
                f"push_block_spec: {eqn.primitive.name} has operands in different blocks, {first.block_shape} and "
                f"{other.block_shape}, or at different places. Give no_block_spec for all but one."
            )
    return [first] * len(eqn.outvars)


def _alike(one: BlockSpec, other: BlockSpec) -> bool:
    return shape_of(one) == shape_of(other)
