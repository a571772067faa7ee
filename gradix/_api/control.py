"""Branches on pytrees: cond and switch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gradix._api.boundary import arrays, opened, with_arrays
from gradix._api.tracing import check_branches, flat_body
from gradix._base import config as _config
from gradix._base.errors import class_of
from gradix._base.lazy import lazy_module
from gradix._base.tracebacks import filter_frames
from gradix._control.cond import INDEX, bind_cond, cond_p
from gradix._control.program_interning import interned
from gradix._core.array import ArrayImpl, as_array
from gradix._core.aval import seen
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, Var
from gradix._core.operators import Array
from gradix._core.refs import Ref
from gradix._core.trace import Tracer, outside
from gradix._ops.clamp import clamp
from gradix._ops.comparison import ne
from gradix._ops.convert import convert, convert_element_type
from gradix._ops.indexing.index_values import fitted_index
from gradix._ops.operands import scalar_like
from gradix._transforms.staging import give_back, with_refs, written

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_sharing = lazy_module("gradix._api.jit.sharing")
_values = lazy_module("gradix._api.values")
T = TypeVar("T")

_options = _config.state
_NOT_GIVEN: Any = object()
_BOOL = np.dtype(bool)


def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """`true_fun(*operands)` if `pred`, else `false_fun(*operands)`; only one of them is run.

    Under `vmap` with a mapped `pred`, both run for every example, and their results are selected.

    Args:
        pred: a scalar; a number counts as true unless it is 0.
        true_fun, false_fun: functions of the operands whose results agree in tree, shapes and
            dtypes.
        *operands: any pytrees.
        operand: one operand, given by keyword.

    Returns:
        The result of the function that is run.

    Raises:
        TypeError: `pred` is not a scalar, or the branches' results differ; the message names every
            difference.

    Example:
        >>> from gradix import lax
        >>> lax.cond(True, lambda x: x + 1, lambda x: x - 1, 10)
        Array(11, dtype=int32, weak_type=True)
        >>> lax.cond(3 < 2, lambda p: p["x"], lambda p: -p["x"], {"x": 1.5})
        Array(-1.5, dtype=float32, weak_type=True)

    See also:
        `lax.switch`, of several branches; `jnp.where`, which computes both; `lax.while_loop`,
        `lax.select`.
    """
    try:
        if len(operands) == 2 and callable(false_fun) and callable(operands[1]) and not callable(true_fun):
            return _paired(pred, true_fun, false_fun, *operands)
        if not (callable(true_fun) and callable(false_fun)):
            raise TypeError(
                "lax.cond: true_fun and false_fun arguments should be callable, got "
                f"{type(true_fun).__name__} and {type(false_fun).__name__}."
            )
        operands = _operands(operands, operand)
        index = _truth(pred)
        if _options.jax_disable_jit:
            if not isinstance(index, Tracer):
                return (true_fun if bool(np.asarray(index)) else false_fun)(*with_arrays(operands))
            if _values.known(index):
                return _values.branch(index, (false_fun, true_fun), with_arrays(operands))
        return branches_on(index, (false_fun, true_fun), operands, "cond", ("false_fun", "true_fun"), order=(1, 0))
    except Exception as error:
        filter_frames(error)
        raise


def _paired(pred, true_operand, true_fun, false_operand, false_fun):
    """The old form, in which each branch has an operand of its own."""
    return cond(pred, lambda ops: true_fun(ops[0]), lambda ops: false_fun(ops[1]), (true_operand, false_operand))


def switch(index: ArrayLike, branches: Sequence[Callable[..., T]], *operands: Any, operand: Any = _NOT_GIVEN) -> T:
    """`branches[index](*operands)`, with the index clamped to the branches; only that one is run.

    Args:
        index: an integer scalar.
        branches: functions of the operands whose results agree in tree, shapes and dtypes.
        operands: what the branches are called with, pytrees of arrays.
        operand: one operand, given by keyword.

    Returns:
        The result of the branch that is run.

    Raises:
        TypeError: `index` is not an integer scalar, or the branches' results differ.
        ValueError: there are no branches.

    Example:
        >>> from gradix import lax
        >>> lax.switch(2, [lambda x: x, lambda x: -x, lambda x: x * x], 3.0)
        Array(9., dtype=float32, weak_type=True)
    """
    try:
        if not all(callable(b) for b in branches):
            raise TypeError(
                "lax.switch: branches argument should be a sequence of callables, got "
                f"[{', '.join(type(b).__name__ for b in branches)}]."
            )
        operands = _operands(operands, operand)
        which = _index(index)
        branches = tuple(branches)
        if not branches:
            raise ValueError("Empty branch sequence: lax.switch needs at least one function.")
        if len(branches) == 1:
            return branches[0](*with_arrays(operands))
        if _options.jax_disable_jit:
            if not isinstance(which, Tracer):
                branch = branches[min(max(int(np.asarray(which)), 0), len(branches) - 1)]
                return branch(*with_arrays(operands))
            if _values.known(which):
                which = clamp(np.int32(0), fitted_index(which, INDEX), np.int32(len(branches) - 1))
                return _values.branch(which, branches, with_arrays(operands))
        which = clamp(np.int32(0), fitted_index(which, INDEX), np.int32(len(branches) - 1))
        names = tuple([f"branch {i}" for i in range(len(branches))])
        return branches_on(which, branches, operands, "switch", names, order=range(len(branches)))
    except Exception as error:
        filter_frames(error)
        raise


def _operands(operands, operand) -> tuple:
    if operand is _NOT_GIVEN:
        return operands
    if operands:
        raise TypeError(
            f"if 'operand' keyword is passed then no positional operands can be passed, got "
            f"operand={operand!r} and positional operands {operands}."
        )
    return (operand,)


def _truth(pred) -> Array:
    """A predicate as 0 or 1 of dtype int32."""
    if pred is None:
        raise TypeError("cond predicate is None. Pass a boolean scalar; to test for None use Python's `if`.")
    scalar = _scalar("Pred must be a scalar", pred)
    if scalar.dtype == _BOOL and type(pred) is not ArrayImpl and not isinstance(scalar, Tracer):
        return as_array(np.int32(bool(pred)))
    if scalar.dtype.kind not in "biuf" and not _is_number(scalar.dtype):
        raise TypeError(f"Pred type must be either boolean or number, got {scalar.dtype}.")
    if isinstance(scalar, Tracer):
        return _as_index(scalar)
    with outside():
        return _as_index(scalar)


def _as_index(scalar):
    truth = scalar if scalar.dtype == _BOOL else ne(scalar, scalar_like(scalar, 0))
    return convert_element_type(truth, INDEX)


def _is_number(dtype) -> bool:
    # bfloat16 and the other floats that NumPy does not define
    return isinstance(dtype, np.dtype) and dtype.kind == "V" and not dtype.names


def _scalar(what: str, x) -> Array:
    try:
        array = as_array(x)
    except (TypeError, OverflowError):
        raise TypeError(f"{what}, got {x!r} of type {class_of(x)}.") from None
    if array.aval.shape:
        raise TypeError(
            f"{what}, got {x} of shape {array.aval.shape}. "
            "Reduce it with .any() or .all(), or choose per element with jnp.where."
        )
    return array


def _index(index) -> Array:
    if isinstance(index, str):
        raise TypeError(f"Index type must be an integer, got {index}.")
    scalar = _scalar("Branch index must be scalar", index)
    if not isinstance(scalar.dtype, np.dtype) or scalar.dtype.kind not in "iu":
        raise TypeError(
            f"Index type must be an integer, got {index} as {scalar.dtype}. "
            "For a boolean use lax.cond; convert floats with .astype(int)."
        )
    return scalar


def branches_on(index, functions, operands, what: str, names, order):
    """`functions[index](*operands)`, staged in `order`; errors call them `names`."""
    leaves, tree = opened(operands)
    # refs among the operands are used as those that the functions captured
    held = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
    leaves = arrays(what, leaves, tree, "operand ", held)
    leaves = [x for x in leaves if not isinstance(x, Ref)]
    # A function given twice is traced once.
    distinct = {id(functions[k]): functions[k] for k in order}
    flat_of = {i: flat_body(what, f, tree, others=held) for i, f in distinct.items()}
    avals = [x.aval for x in leaves]
    traced = {
        i: flat.stage_with_refs(avals) if held else _sharing.stage_shared(distinct[i], flat, avals, ("branch", tree))
        for i, flat in flat_of.items()
    }
    sealing = None
    if seen.counts is not None and len({f.out_tree for f in flat_of.values()}) == 1:
        programs = [t[0] for t in traced.values()]
        sealing = seen.counts.sealing(programs, 0, next(iter(flat_of.values())).out_tree.num_leaves)
        if sealing:
            traced = {i: (*sealing.program(*t[:2]), t[2]) for i, t in traced.items()}
    flats = [flat_of[id(f)] for f in functions]
    staged: dict[int, Any] = {k: traced[id(functions[k])] for k in order}
    check_branches(
        what,
        [names[k] for k in order],
        [functions[k] for k in order],
        [flats[k].out_tree for k in order],
        [staged[k][0].out_avals[: flats[k].out_tree.num_leaves] for k in order],
    )
    refs = written(*[staged[k][2] for k in order])
    branches, consts = _joined(
        [
            with_refs(jaxpr, consts, inside, refs) if inside or refs else (jaxpr, consts)
            for jaxpr, consts, inside in staged.values()
        ]
    )
    by_place = dict(zip(order, branches))
    ordered = [by_place[k] for k in range(len(functions))]
    outs = bind_cond(index, ordered, [*consts, *[r.read() for r in refs], *leaves])
    outs = give_back(refs, outs)
    outs = [_as_weak(o, a) for o, a in zip(outs, ordered[0].out_avals[len(refs) :])]
    return flats[0].out_tree.unflatten(sealing.open(outs) if sealing else outs)


def _as_weak(x, aval):
    """The result with the weak type of the first branch's result, whichever branch ran."""
    return x if x.aval.weak_type == aval.weak_type else convert(x, aval.dtype, aval.weak_type)


def _joined(staged) -> tuple[list[ClosedJaxpr], list]:
    """The branches, each of which takes the constants that any of them captured."""
    # A branch may have an array twice, as what two references hold.
    union: dict = {}
    rows = []
    for _, consts in staged:
        times: Counter = Counter()
        rows.append([])
        for c in consts:
            rows[-1].append((id(c), times[id(c)]))
            times[id(c)] += 1
        union.update((key, c) for key, c in zip(rows[-1], consts) if key not in union)
    branches = []
    for (jaxpr, _), row in zip(staged, rows):
        own = dict(zip(row, jaxpr.constvars))
        invars = [own.get(key) or Var(c.aval) for key, c in union.items()]
        whole = Jaxpr([], [*invars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)
        branches.append(interned(ClosedJaxpr(whole, ())))
    return branches, list(union.values())


__all__ = ["branches_on", "cond", "cond_p", "switch"]
