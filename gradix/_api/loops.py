"""Loops on pytrees: scan, while_loop, fori_loop and map."""

from __future__ import annotations

from collections.abc import Callable
from operator import index as as_index
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gradix._api.arguments import argument_names, leaf_names
from gradix._api.boundary import arrays, kind_of, opened, with_arrays, with_rows
from gradix._api.jit.fastcall import MISS
from gradix._api.mapping.vmap import vmap
from gradix._api.refs import check_only_read, scan_rows_of_refs
from gradix._api.tracing import called, check_carry, flat_body, opened_with_refs, promoted
from gradix._base import config as _config
from gradix._base.errors import ConcretizationTypeError
from gradix._base.lazy import lazy_module
from gradix._base.tracebacks import boundary
from gradix._base.tree import numbered, tree_map, tree_structure, treedef_tuple
from gradix._control.inner_programs import row
from gradix._control.scan import bind_scan, scan_p
from gradix._control.while_loop import bind_while, while_p
from gradix._core.array import ArrayImpl, as_array, typeof
from gradix._core.aval import seen
from gradix._core.dimensions.expression import is_symbolic_dim
from gradix._core.operators import Array
from gradix._core.refs import Ref
from gradix._core.trace import Tracer, is_unknown, state
from gradix._ops.arithmetic import add, sub
from gradix._ops.comparison import lt
from gradix._ops.indexing.slicing import index_in_dim, slice
from gradix._ops.joining import concatenate, stack
from gradix._ops.operands import scalar_like
from gradix._ops.shape import reshape
from gradix._transforms.staging import give_back, written

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_rows_of = lazy_module("gradix._api.counted.mapping")
_sharing = lazy_module("gradix._api.jit.sharing")
_unwatched = lazy_module("gradix._api.unwatched")
_values = lazy_module("gradix._api.values")
_progress = lazy_module("gradix._api.progress")


_options = _config.state
Carry = TypeVar("Carry")
Y = TypeVar("Y")


@boundary
def scan(
    f: Callable[[Any, Any], tuple[Carry, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Y]:
    """Fold `f(carry, x) -> (carry, y)` over the leading axis of `xs`, with one trace of `f`.

    Args:
        f: the body of the loop. The carry that it returns has the tree, shapes and dtypes of the
            one that it takes; a weakly typed carry, such as `0.0`, gets the dtype that `f` returns.
        init: the first carry, any pytree.
        xs: arrays in any pytree, of one leading size; None for a loop of `length` steps without
            inputs.
        length: the number of steps; needed only without `xs`.
        reverse: go from the last row to the first; row i of the results still belongs to row i of
            `xs`.
        unroll: how many steps one turn of the compiled loop makes; True for all steps.

    Returns:
        The last carry, and the `y`s stacked along a new leading axis.

    Raises:
        TypeError: `f` does not return a pair, or it returns a carry of another type; the message
            names every component that differs.
        ValueError: leading sizes differ, or neither `xs` nor `length` gives the number of steps.

    Example:
        >>> from gradix import lax
        >>> import numpy as np
        >>> lax.scan(lambda total, x: (total + x, total), 0, np.arange(4))
        (Array(6, dtype=int32), Array([0, 0, 1, 3], dtype=int32, weak_type=True))
        >>> def step(state, _):
        ...     position, velocity = state
        ...     velocity = velocity - 0.1 * position
        ...     return (position + 0.1 * velocity, velocity), position
        >>> (position, _), path = lax.scan(step, (1.0, 0.0), length=3)
        >>> path.round(2)
        Array([1.  , 0.99, 0.97], dtype=float32, weak_type=True)

    See also:
        `lax.fori_loop`, `lax.while_loop`, `lax.map`, `lax.associative_scan`.
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable, got {f!r}.")
    if seen.counts is not None:
        f = _rows_of.over_rows(f, xs)
    init_leaves, init_tree = opened(init)
    init_leaves = arrays("scan", init_leaves, init_tree, "init")
    rows, xs_tree = opened(xs)
    if any(isinstance(x, Ref) for x in rows):
        return scan_rows_of_refs(scan, f, init, rows, xs_tree, length=length, reverse=reverse, unroll=unroll)
    rows = arrays("scan", rows, xs_tree, "xs")
    steps = _length(rows, length, xs_tree)
    if _options.gradix_progress:
        return _progress.watched_scan(scan, f, init, xs, steps, reverse=reverse, unroll=unroll)
    unroll = _unroll(unroll, steps)
    if _options.jax_disable_jit:
        carry = with_arrays(init)
        if state.shows_values:
            given = carry, xs_tree.unflatten(rows)
            result = _unwatched.loop((f,), given, steps, lambda: scan(f, init, xs, steps, reverse, unroll))
            if result is not MISS:
                return result
        return _scan_in_python(f, carry, rows, xs_tree, steps, reverse)
    flat = flat_body("scan", f, treedef_tuple((init_tree, with_rows(xs_tree, steps, "row"))), _pair)
    row_avals = [row(x.aval) for x in rows]
    while True:
        avals = [x.aval for x in init_leaves]
        traced = _sharing.stage_shared(f, flat, [*avals, *row_avals], ("scan", init_tree, xs_tree))
        carry_tree, y_tree = flat.out_tree.children()
        outs = traced[0].out_avals[: carry_tree.num_leaves]
        changed = promoted(init_leaves, avals, outs) if carry_tree == init_tree else None
        if changed is None:
            break
        init_leaves = changed
    _check_carry("scan", f, init_tree, avals, carry_tree, outs)
    refs = written(traced[2])
    body, consts = opened_with_refs(traced, refs)
    results = bind_scan(
        body, consts, [*[r.read() for r in refs], *init_leaves], rows, steps, bool(reverse), unroll=unroll
    )
    results = give_back(refs, results)
    n = len(init_leaves)
    return init_tree.unflatten(results[:n]), with_rows(y_tree, steps, "stack").unflatten(results[n:])


def _check_carry(what: str, body, in_tree, avals, out_tree, outs) -> None:
    """Check the carry; of a fori_loop, only its last child, which is the user's part."""
    inner = getattr(body, "body_fun", None)
    if inner is None:
        return check_carry(what, argument_names(body, 1)[0], in_tree, avals, out_tree, outs)
    own, returned = in_tree.children()[-1], out_tree.children()[-1]
    check_carry(
        "fori_loop",
        argument_names(inner, 2)[1],
        own,
        avals[len(avals) - own.num_leaves :],
        returned,
        outs[len(outs) - returned.num_leaves :],
    )


def _pair(out):
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        shown = tree_map(lambda x: typeof(x) if hasattr(x, "aval") else x, out)
        raise TypeError(
            f"scan body output must be a pair, got {shown}. Return (carry, y), with y=None if there is "
            "nothing to stack."
        )
    return tuple(out)


def _length(rows, length, tree) -> int:
    if any(not x.aval.ndim for x in rows):
        scalars = [f"{x} (at {name})" for name, x in zip(_names(tree), rows) if not x.aval.ndim]
        is_list = len(rows) > 1 and tree == tree_structure([0] * len(rows))
        instead = "A list is a tree: write jnp.array(xs) for one array" if is_list else ""
        raise ValueError(
            f"scan got value with no leading axis to scan over: {', '.join(scalars)}. "
            f"{instead or 'Let the function close over values that all steps share'}."
        )
    for name, x in zip(_names(tree), rows) if seen.meshes else ():
        division = getattr(x.aval, "division", None)
        if division is not None and division.spec[0] is not None:
            raise ValueError(
                f"0th dimension of all xs should be replicated: scan reads one row after the other, and {name} of type "
                f"{x.aval.str_short()} is divided over {division.spec[0]!r} along them. Reshard it with "
                f"gradix.sharding.reshard({name}, {division.spec.update(partitions=(None, *division.spec[1:]))})."
            )
    sizes = {x.aval.shape[0]: None for x in rows}
    if length is not None:
        if is_unknown(length):
            raise ConcretizationTypeError(
                length,
                "The `length` argument to `scan` expects a concrete `int` value. For "
                "scan-like iteration with a dynamic length, use `while_loop` "
                "or `fori_loop`.",
            )
        given = length if is_symbolic_dim(length) else int(length)
        if any(n != given for n in sizes):
            raise ValueError(
                f"scan got `length` argument of {length} which disagrees with leading axis sizes "
                f"{list(sizes)}:\n{_table(rows, tree)}\nLeave length out if xs is given."
            )
        return max(given, 0)
    if len(sizes) > 1:
        raise ValueError(
            f"scan got values with different leading axis sizes: {', '.join([str(n) for n in sizes])}.\n"
            f"{_table(rows, tree)}\nAll must have the same size, which is the number of steps."
        )
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    return next(iter(sizes))


def _names(tree) -> list[str]:
    return leaf_names("xs", numbered(tree))


def _table(rows, tree) -> str:
    names = _names(tree)
    width = max([len(n) for n in names])
    return "\n".join([f"  {n:<{width}}  {x.aval}: leading size {x.aval.shape[0]}" for n, x in zip(names, rows)])


def _unroll(unroll, steps: int) -> int:
    if isinstance(unroll, bool):
        return max(steps, 1) if unroll else 1
    if is_unknown(unroll):
        raise ConcretizationTypeError(
            unroll, "`unroll` determines the program: pass it as static (static_argnums of jit)."
        )
    unroll = as_index(unroll) if hasattr(unroll, "__index__") else unroll
    if unroll < 0:
        raise ValueError(f"`unroll` must be a `bool` or a non-negative `int`, got {unroll}.")
    return as_index(unroll) if hasattr(unroll, "__index__") else int(unroll)


def _scan_in_python(f, carry, rows, xs_tree, steps: int, reverse: bool):
    """The loop under `disable_jit`: the body is called for each step with concrete values."""
    if not steps:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the output type is unknown.")
    ys = []
    for i in range(steps - 1, -1, -1) if reverse else range(steps):
        carry, y = f(carry, xs_tree.unflatten([index_in_dim(x, i, keepdims=False) for x in rows]))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, tree_map(lambda *parts: stack([as_array(p) for p in parts]), *ys)


@boundary
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Carry], init_val: Any) -> Carry:
    """Apply `body_fun` to the carry while `cond_fun` of it is true.

    Args:
        cond_fun: from the carry to a boolean scalar.
        body_fun: from the carry to a carry of the same tree, shapes and dtypes.
        init_val: the first carry, any pytree.

    Returns:
        The first carry for which `cond_fun` is false. It can be differentiated in both modes.
        Reverse mode keeps a bounded number of carries as checkpoints, and runs the turns between
        them again.

    Raises:
        TypeError: `cond_fun` does not return a boolean scalar, or `body_fun` returns a carry of
            another type.

    Example:
        >>> from gradix import lax
        >>> lax.while_loop(lambda x: x < 100, lambda x: x * 2, 3)
        Array(192, dtype=int32, weak_type=True)
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if _options.gradix_progress:
        bounds = init_val[:2] if hasattr(body_fun, "body_fun") else None
        return _progress.watched_while(
            while_loop, cond_fun, body_fun, init_val, -1 if bounds is None else sub(*bounds[::-1])
        )
    init, tree = opened(init_val)
    init = arrays("while_loop", init, tree, "init_val")
    if _options.jax_disable_jit:
        if state.shows_values and _values.known(*init):
            return _values.while_loop(while_loop, cond_fun, body_fun, with_arrays(init_val))
        if not any(isinstance(x, Tracer) for x in init):
            return _while_in_python(cond_fun, body_fun, with_arrays(init_val))
    one = treedef_tuple((tree,))
    going, turn = flat_body("while_loop", cond_fun, one), flat_body("while_loop", body_fun, one)
    while True:
        avals = [x.aval for x in init]
        asked = _sharing.stage_shared(cond_fun, going, avals, ("condition", one))
        traced = _sharing.stage_shared(body_fun, turn, avals, ("body", one))
        check_only_read(asked[2], "cond_fun of while_loop")
        _check_condition(going.out_tree, asked[0].out_avals)
        outs = traced[0].out_avals[: turn.out_tree.num_leaves]
        changed = promoted(init, avals, outs) if turn.out_tree == tree else None
        if changed is None:
            break
        init = changed
    _check_carry("while_loop", body_fun, tree, avals, turn.out_tree, outs)
    refs = written(traced[2])
    condition, cond_consts = opened_with_refs(asked, refs, give_back=False)
    body, body_consts = opened_with_refs(traced, refs)
    results = bind_while(condition, cond_consts, body, body_consts, [*[r.read() for r in refs], *init])
    return tree.unflatten(give_back(refs, results))


def _check_condition(tree, avals) -> None:
    if tree.num_leaves != 1 or tree.num_nodes != 1:
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {tree}.")
    if avals[0].shape or avals[0].dtype != np.bool_:
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got output type(s) {avals}. "
            "Compare the carry with something, or reduce with .any() or .all()."
        )


def _while_in_python(cond_fun, body_fun, carry):
    while cond_fun(carry):
        carry = body_fun(carry)
    return carry


@boundary
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Any], Carry],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Carry:
    """Apply `val = body_fun(i, val)` for i from `lower` up to, but not including, `upper`.

    If the bounds are known while tracing, the loop is a `scan`, else a `while_loop`.

    Args:
        lower, upper: integer scalars, which may be traced.
        body_fun: from (i, val) to a val of the same tree, shapes and dtypes.
        init_val: the first val, a pytree of arrays; it is the result if `upper` is not above
            `lower`.
        unroll: how many steps one turn of the compiled loop makes; only with known bounds.

    Returns:
        The last val.

    Raises:
        TypeError: `body_fun` is not callable, or returns a val of another type.
        ValueError: `unroll` is given for bounds that are not known.

    Example:
        >>> from gradix import lax
        >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
        Array(10, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    start, end = _bounds(lower, upper)
    if _options.jax_disable_jit and not (isinstance(start, Tracer) or isinstance(end, Tracer)):
        init_val = with_arrays(init_val)
        if state.shows_values:
            steps = int(end) - int(start)
            result = _unwatched.loop((body_fun,), init_val, steps, lambda: fori_loop(lower, upper, body_fun, init_val))
            if result is not MISS:
                return result
        for i in range(int(start), int(end)):
            init_val = body_fun(i, init_val)
        return init_val
    if isinstance(start, ArrayImpl) and isinstance(end, ArrayImpl) and not (start.aval.shape or end.aval.shape):
        return _counted(start, max(int(end.host) - int(start.host), 0), body_fun, init_val, unroll)
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")

    def turn(loop_carry):
        i, last, val = loop_carry
        return add(i, scalar_like(i, 1)), last, called("fori_loop", body_fun, i, val)

    turn.body_fun = body_fun  # type: ignore[attr-defined]
    return while_loop(lambda loop_carry: lt(loop_carry[0], loop_carry[1]), turn, (start, end, init_val))[2]


def _counted(start, steps: int, body_fun, init_val, unroll):
    def turn(loop_carry, _):
        i, val = loop_carry
        return (add(i, scalar_like(i, 1)), called("fori_loop", body_fun, i, val)), None

    turn.body_fun = body_fun  # type: ignore[attr-defined]
    return scan(turn, (start, init_val), length=steps, unroll=1 if unroll is None else unroll)[0][1]


def _bounds(lower, upper) -> tuple[Array, Array]:
    """Both bounds as arrays of one integer dtype."""
    known = not (isinstance(lower, Array) or isinstance(upper, Array))
    if known and all(isinstance(b, (int, float, np.generic)) and int(b) == b for b in (lower, upper)):
        return as_array(int(lower)), as_array(int(upper))
    start, end = as_array(lower), as_array(upper)
    if start.dtype != end.dtype:  # a Python number takes the other bound's type
        start, end = _like(start, end), _like(end, start)
    if start.dtype != end.dtype:
        raise TypeError(
            f"lower and upper arguments to fori_loop must have equal types, got {start.dtype} and "
            f"{end.dtype}. Convert one of them with .astype(...)."
        )
    if type(start) is ArrayImpl is type(end) and not (start.aval.shape or end.aval.shape):
        return as_array(int(lower)), as_array(int(upper))
    return start, end


def _like(bound: Array, other: Array) -> Array:
    are_signed = bound.dtype.kind == other.dtype.kind == "i"
    return bound.astype(other.dtype) if bound.aval.weak_type and are_signed else bound


@boundary
def map(f: Callable[[Any], Y], xs: Any, *, batch_size: int | None = None) -> Y:
    """Apply `f` to each row of `xs`, one after the other: as `vmap`, in less memory.

    Args:
        f: a function of one pytree, which holds a row of each array of `xs`.
        xs: arrays in any pytree, of one leading size.
        batch_size: how many rows to take at a time, by `vmap`; None for one.

    Returns:
        The results, stacked along a new leading axis.

    Raises:
        TypeError: `f` is not callable, or `batch_size` is negative.
        ValueError: leading sizes differ.

    Example:
        >>> from gradix import lax
        >>> import numpy as np
        >>> lax.map(lambda x: x * x, np.arange(4))
        Array([0, 1, 4, 9], dtype=int32)
    """
    if not callable(f):
        raise TypeError(f"lax.map: f must be a function, got {kind_of(f)}. Write lax.map(f, xs).")
    if not batch_size:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    size = as_index(batch_size)
    if size < 0:
        raise TypeError(f"lax.map: batch_size must be positive, got {batch_size}.")
    leaves, tree = opened(xs)
    leaves = arrays("map", leaves, tree, "xs")
    n = _length(leaves, None, tree)
    turns, left = divmod(n, size)
    mapped = vmap(f)
    if not turns:
        return mapped(xs)
    head, tail = [], []
    for x in leaves:
        whole = turns * size
        body = _rows(x, 0, whole) if left else x
        head.append(reshape(body, (turns, size, *x.aval.shape[1:])))
        tail += [_rows(x, whole, n)] if left else []
    results = scan(lambda _, x: ((), mapped(x)), (), tree.unflatten(head))[1]
    rest = mapped(tree.unflatten(tail)) if left else None
    results = tree_map(lambda y: reshape(y, (turns * size, *y.shape[2:])), results)
    return tree_map(lambda y, z: concatenate([y, z], 0), results, rest) if left else results


def _rows(x: Array, start: int, stop: int) -> Array:
    shape = x.aval.shape
    return slice(x, (start, *[0] * (len(shape) - 1)), (stop, *shape[1:]))


__all__: list[Any] = ["fori_loop", "map", "scan", "scan_p", "while_loop", "while_p"]
