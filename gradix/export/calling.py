"""Calls of exported programs, by a primitive with rules for transformations."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix import lax
from gradix._api.derivatives.custom_vjp import custom_vjp
from gradix._base import config
from gradix._base.tree import equality_errors, keystr, numbered, tree_flatten, tree_flatten_with_path
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dimensions.solving import Solver, check_constraints
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import to_front
from gradix._ops.random.random import random_unwrap, random_wrap
from gradix._runtime import xla_artifact
from gradix._stablehlo.dimensions import is_open
from gradix._stablehlo.types import TOKEN, tensor_type
from gradix.export import shardings
from gradix.export.effects import name_of
from gradix.export.portability import check_of_file

_WIDE = frozenset(["int64", "uint64", "float64", "complex128"])


def physical(aval):
    """The type of arrays of type `aval` in files; random keys are words along a last axis."""
    if not isinstance(aval.dtype, dtypes.KeyType):
        return aval
    return make_aval((*aval.shape, aval.dtype.words), np.dtype("uint32"))


def unwrapped(x):
    """The array in the form that it has in files."""
    return random_unwrap(x) if isinstance(x.aval.dtype, dtypes.KeyType) else x


def wrapped(x, aval):
    """The array of type `aval` from its form in files."""
    return random_wrap(x, aval.dtype._impl) if isinstance(aval.dtype, dtypes.KeyType) else x


class CallExported(Primitive):
    """A call of an exported program."""

    multiple_results = True
    effectful = True

    def abstract(self, *avals, exported):
        values = variables_of(exported, avals)
        return [a.update(shape=_sized(a.shape, values), weak_type=False) for a in map(physical, exported.out_avals)]

    def effects(self, params):
        exported = params["exported"]
        return frozenset([*exported.ordered_effects, *exported.unordered_effects])

    def jvp(self, primals, tangents, *, exported):
        if exported.ordered_effects:
            raise NotImplementedError(
                f"the exported function '{exported.fun_name}' has ordered effects "
                f"({', '.join(map(name_of, exported.ordered_effects))}) and cannot be differentiated. "
                "Differentiate the function before it is exported, or apply stop_gradient to its arguments."
            )
        raise TypeError(
            f"the exported function '{exported.fun_name}' can be differentiated in reverse mode only. Use "
            "grad, vjp or jacrev instead of jvp, jacfwd and linearize, or differentiate the function before "
            "it is exported."
        )

    def batch(self, size, args, axes, *, exported):
        """Call the program for one example after another, because its ranks are fixed."""
        moved = [to_front(size, x, a) for x, a in zip(args, axes) if a is not None]

        def one(examples):
            rest = iter(examples)
            return bind(self, [x if a is None else next(rest) for x, a in zip(args, axes)], {"exported": exported})

        return lax.map(one, moved), [0] * len(exported.out_avals)

    def lower(self, em, outs, *xs, exported):
        check_platform(exported, em.platform)
        values = variables_of(exported, [x.aval for x in xs])
        given = [values[name] for name in exported.explicit_dimensions]
        if len(exported.platforms) > 1:
            given.insert(0, exported.platforms.index(em.platform) if em.platform in exported.platforms else 0)
        kept = [xs[i] for i in exported.module_kept_var_idx]
        if any(is_open(v.aval) for v in kept) or any(map(is_open, outs)) or any(type(n) is not int for n in given):
            return _called_open(em, exported, given, kept, outs, values)
        tokens = [TOKEN] * len(exported.ordered_effects)
        symbol, texts = xla_artifact.static_functions(
            exported.mlir_module(),
            given,
            [*tokens, *[x.aval for x in kept]],
            [*tokens, *outs],
            em.unused_symbol,
            check=check_of_file(exported),
            values=values,
        )
        em.functions.extend(texts)
        return _called(em, symbol, [], kept, outs, len(tokens))


def _called(em, symbol: str, given: list, operands: list, outs, tokens: int) -> list:
    """Call a function whose arguments and results begin with a token for each ordered effect."""
    before = [em.ordering_token() for _ in range(tokens)]
    results = em.call(symbol, [*[TOKEN] * tokens, *outs], *given, *before, *operands)
    em.join_tokens(results[:tokens])
    return results[tokens:]


def _called_open(em, exported, given: list, kept: list, outs: list, values: dict) -> list:
    """Call a module in a module with symbolic shapes, and convert arguments and results."""
    symbol, functions, wide = xla_artifact.open_functions(
        exported.mlir_module(), em.unused_symbol, check_of_file(exported), values
    )
    em.functions.extend(functions)
    numbers = [em.number(n, np.dtype("int64" if wide else "int32")) for n in given]
    types = [physical(exported.in_avals[i]) for i in exported.module_kept_var_idx]
    operands = [_as_type(em, x, a) for x, a in zip(kept, types)]
    results = _called(
        em, symbol, numbers, operands, [physical(a) for a in exported.out_avals], len(exported.ordered_effects)
    )
    return [_as_type(em, x, a) for x, a in zip(results, outs)]


def _as_type(em, x, aval):
    """The value converted to a type of the same sizes, which may be static or dynamic."""
    return x if x.type == tensor_type(aval) else em.op("convert", aval, x)


call_exported_p = CallExported("call_exported")


def variables_of(exported, avals) -> dict[str, Any]:
    """The values of an exported function's dimension variables for arguments of these types.

    Raises:
        ValueError: a type does not fit, or a variable has no value.
    """
    names = argument_names(exported)
    in_avals = [physical(a) for a in exported.in_avals]
    for name, want, have in zip(names, in_avals, avals):
        if want.ndim != have.ndim:
            raise ValueError(
                f"Rank mismatch for {name}: expected an array of shape {want.shape} and called with one of "
                f"shape {have.shape}."
            )
        if want.dtype != have.dtype:
            wide = want.dtype.name in _WIDE and not config.state.jax_enable_x64
            way = (
                "Enable the option jax_enable_x64."
                if wide
                else f"Convert it with .astype({dtypes.dtype_name(want.dtype)!r})."
            )
            raise ValueError(
                f"Dtype mismatch for {name}: expected {dtypes.dtype_name(want.dtype)} and called with "
                f"{dtypes.dtype_name(have.dtype)}. {way}"
            )
        is_fixed = not exported.dimension_variables and SymbolicDim not in map(type, have.shape)
        if is_fixed and want.shape != have.shape:
            raise ValueError(
                f"Shape mismatch for {name}: the program was exported for shape {want.shape} and is called "
                f"with {have.shape}. To call it with other sizes, export it for arguments of symbolic "
                'ones: gradix.ShapeDtypeStruct(export.symbolic_shape("n, ..."), dtype).'
            )
    bound = dict(exported.bound_dims)
    solver = Solver(in_avals, names, bound)
    if solver.unsolved:  # Another library may have written such a file.
        solver.require_solvable()
    values = solver.solve([a.shape for a in avals], bound)
    missing = [n for n in exported.dimension_variables if n not in values]
    if missing:
        raise ValueError(
            f"the exported function '{exported.fun_name}' needs a value for the dimension variable"
            f"{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}, which no argument has. "
            f"Call exported.bind_dims({', '.join([f'{n}=...' for n in missing])}) first."
        )
    if exported.scope is not None:
        check_constraints(
            exported.scope,
            values,
            lambda why: ValueError(
                f"The dimensions of a call of the exported function '{exported.fun_name}' are not allowed. {why}"
            ),
            len(exported.constraints),
        )
    return values


def _sized(shape: tuple, values: dict) -> tuple:
    return tuple([d.evaluate(values) if type(d) is SymbolicDim else d for d in shape])


def argument_names(exported) -> list[str]:
    """The names of the arguments by their paths, such as `args[0]['x']`."""
    args, kwargs = numbered(exported.in_tree)
    paths = [f"args{keystr(p)}" for p, _ in tree_flatten_with_path(args)[0]]
    return paths + [f"kwargs{keystr(p)}" for p, _ in tree_flatten_with_path(kwargs)[0]]


def check_platform(exported, platform: str) -> None:
    """Check that an exported program may be called on a platform.

    Raises:
        ValueError: it was exported for other platforms.
    """
    if platform not in exported.platforms and not any(str(c) == "platform" for c in exported.disabled_safety_checks):
        raise ValueError(
            f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but it is "
            f"used on '{platform}'. Export it with platforms=({platform!r}, ...)."
        )


def call(exported, args: tuple, kwargs: dict):
    """The results of an exported program for these arguments, in their tree."""
    leaves, tree = tree_flatten((args, kwargs))
    if tree != exported.in_tree:
        raise ValueError(_differences(exported, args, kwargs))
    leaves = [unwrapped(as_array(x)) for x in leaves]
    avals = [x.aval for x in leaves]
    values = variables_of(exported, avals)
    # Functions with a custom derivative cannot have ordered effects.
    is_plain = exported.ordered_effects or not any(a.dtype in dtypes.INEXACT for a in avals)
    make = _plain if is_plain else _differentiable
    run = exported.memo.get(make)
    if run is None:
        run = exported.memo[make] = make(exported)
    outs = run(*leaves) if exported.nr_devices == 1 else shardings.on_devices(exported, run, leaves)
    outs = [wrapped(x, a) for x, a in zip(outs, exported.out_avals)]
    if exported._counted is None:
        return exported.out_tree.unflatten(outs)
    outs = exported._counted.opened(outs, values)
    return exported.out_tree.children()[0].unflatten(outs)


def _differences(exported, args, kwargs) -> str:
    lines = []
    was_args, was_kwargs = numbered(exported.in_tree)
    for what, now, was in (("args", args, was_args), ("kwargs", kwargs, was_kwargs)):
        for path, here, there, why in equality_errors(now, was):
            differ = f"so their {why} {'differs' if why in ('type', 'length') else 'differ'}"
            lines.append(f"   - {what}{keystr(path)} is {here} in the invocation and {there} when exported, {differ}.")
    return (
        "The invocation args and kwargs must have the same pytree structure as when the function "
        f"'{exported.fun_name}' was exported, but they have the following structural differences:\n" + "\n".join(lines)
    )


def _plain(exported):
    return lambda *leaves: bind(call_exported_p, leaves, {"exported": exported})


def _differentiable(exported):
    """The call as a function whose reverse-mode rule is the exported gradient."""

    @custom_vjp
    def run(*leaves):
        return tuple(bind(call_exported_p, leaves, {"exported": exported}))

    def forward(*leaves):
        return run(*leaves), leaves

    def backward(leaves, cts):
        return tuple(exported.vjp().call(*leaves, *cts))

    run.defvjp(forward, backward)
    return run
