"""Which results of a linear program depend on which inputs, and colours for the columns of that."""

from __future__ import annotations

import numpy as np

from gradix._core.array import ArrayImpl
from gradix._core.aval import make_aval
from gradix._core.dtypes import INEXACT
from gradix._core.jaxpr import ClosedJaxpr, Literal
from gradix._core.primitive import Linear
from gradix._core.trace import outside
from gradix._ops.basis import reduce_sum_p
from gradix._ops.cumulative import cumsum_p
from gradix._ops.dot import dot_general_p
from gradix._ops.indexing.scatter import scatter_add_p
from gradix._ops.joining import split_p, unstack_p
from gradix._ops.select import select_n_p

_CUTS = frozenset([split_p, unstack_p])
_BYTE = np.dtype(np.uint8)


def linear_pattern(closed: ClosedJaxpr, linear: int) -> list[np.ndarray]:
    """Which elements of each result depend on which elements of the last `linear` inputs.

    The program is linear in these inputs, as a derivative along them is. Every coefficient counts
    as not zero. An operation without a rule here counts as one that mixes all its operands.

    Returns:
        Booleans of shape `(size of the result, elements of these inputs)`.
    """
    jaxpr = closed.jaxpr
    count = sum(v.aval.size for v in jaxpr.invars[-linear:])
    eye = np.packbits(np.eye(count, dtype=bool), axis=1)
    env, at = {}, 0
    for v in jaxpr.invars[-linear:]:
        env[v] = eye[at : at + v.aval.size].reshape(*v.aval.shape, -1)
        at += v.aval.size
    outs = _walk(closed, env, {})
    return [
        np.zeros((v.aval.size, count), bool)
        if o is None
        else np.unpackbits(o.reshape(v.aval.size, eye.shape[1]), axis=1, count=count).astype(bool)
        for v, o in zip(jaxpr.outvars, outs)
    ]


def _walk(closed: ClosedJaxpr, env: dict, known: dict) -> list:
    """The dependences of the results, as bits along the last axis; None if there are none.

    `known` holds the values of variables that do not depend on the inputs.
    """
    jaxpr = closed.jaxpr
    known.update([(v, c.host) for v, c in zip(jaxpr.constvars, closed.consts) if type(c) is ArrayImpl])
    for eqn in jaxpr.eqns:
        values = [v.val.host if type(v) is Literal else known.get(v) for v in eqn.invars]
        ins = [None if type(v) is Literal else env.get(v) for v in eqn.invars]
        if any(b is not None for b in ins):
            for v, out in zip(eqn.outvars, _through(eqn, ins, values)):
                if out is not None and v.aval.dtype in INEXACT:
                    env[v] = out
        elif all(x is not None for x in values) and eqn.outvars[0].aval.dtype not in INEXACT:
            _evaluate(eqn, values, known)
    return [None if type(v) is Literal else env.get(v) for v in jaxpr.outvars]


def _evaluate(eqn, values, known: dict) -> None:
    """Compute the value of an equation of constants: places are often computed from constants."""
    if eqn.primitive.host is not None:
        out = eqn.primitive.host(*values, **eqn.params)
        known.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))


def _through(eqn, ins, values) -> list:
    prim, params, out = eqn.primitive, eqn.params, eqn.outvars[0].aval
    inner = params.get("jaxpr") or params.get("call_jaxpr")
    if prim.is_call and isinstance(inner, ClosedJaxpr):
        invars = inner.jaxpr.invars
        return _walk(
            inner,
            {v: b for v, b in zip(invars, ins) if b is not None},
            {v: x for v, x in zip(invars, values) if x is not None},
        )
    if prim is select_n_p or prim.live == "elements":
        return [_union([_spread(b, out.shape) for b in ins if b is not None])]
    if prim is reduce_sum_p:
        return [np.bitwise_or.reduce(ins[0], axis=params["axes"])]
    if prim is cumsum_p:
        return [_accumulated(ins[0], params["axis"], params["reverse"])]
    if prim is dot_general_p and (ins[0] is None) is not (ins[1] is None):
        return [_contracted(eqn, ins)]
    if any(b is None and x is None and v.aval.dtype not in INEXACT for v, b, x in zip(eqn.invars, ins, values)):
        # the places are known only when the program runs
        return _mixed(eqn, ins)
    if prim is scatter_add_p:
        return [_scattered(eqn, ins, values)]
    if prim in _CUTS or (prim.live == "moves" and prim.host is not None):
        return _moved(eqn, ins, values)
    return _mixed(eqn, ins)


def _union(parts):
    out = parts[0]
    for p in parts[1:]:
        out = out | p
    return out


def _spread(bits, shape):
    lead = len(shape) + 1 - bits.ndim
    return np.broadcast_to(bits.reshape((1,) * lead + bits.shape), (*shape, bits.shape[-1]))


def _accumulated(bits, axis: int, reverse: bool):
    bits = np.flip(bits, axis) if reverse else bits
    out = np.bitwise_or.accumulate(bits, axis=axis)
    return np.flip(out, axis) if reverse else out


def _moved(eqn, ins, values):
    """Apply the operation to the numbers of the elements, where 0 stands for no element."""
    numbers, rows, at = [], [], 1
    for v, b, x in zip(eqn.invars, ins, values):
        shape = v.aval.shape
        if b is not None:
            numbers.append(np.arange(at, at + v.aval.size, dtype=np.int32).reshape(shape))
            rows.append(b.reshape(v.aval.size, b.shape[-1]))
            at += v.aval.size
        else:
            numbers.append(x if v.aval.dtype not in INEXACT else np.zeros(shape, np.int32))
    table = np.concatenate([np.zeros((1, rows[0].shape[1]), _BYTE), *rows])
    out = eqn.primitive.host(*numbers, **eqn.params)
    return [table[o] for o in (out if eqn.primitive.multiple_results else [out])]


def _scattered(eqn, ins, values):
    """Each update joins the element it is added to, found by the adjoint, a gather of numbers."""
    operand, updates, out = ins[0], ins[2], eqn.outvars[0].aval
    size, last = out.size, next(b for b in ins if b is not None).shape[-1]
    table = np.zeros((size + 1, last), _BYTE)
    if operand is not None:
        table[1:] = operand.reshape(size, last)
    if updates is not None:
        numbers = ArrayImpl(
            np.arange(1, size + 1, dtype=np.int32).reshape(out.shape), make_aval(out.shape, np.dtype(np.int32))
        )
        aval = make_aval(eqn.invars[2].aval.shape, np.dtype(np.int32))
        indices = ArrayImpl(np.asarray(values[1]), eqn.invars[1].aval)
        with outside():
            places = scatter_add_p.transpose(numbers, Linear(numbers.aval), indices, Linear(aval), **eqn.params)[2].host
        np.bitwise_or.at(table, places.reshape(-1), updates.reshape(-1, last))
    return table[1:].reshape(*out.shape, last)


def _contracted(eqn, ins):
    """A product with a matrix of unknown elements depends on all elements that are summed over."""
    (contract, batch) = eqn.params["dimension_numbers"]
    mine = 0 if ins[0] is not None else 1
    bits, other = ins[mine], eqn.invars[1 - mine].aval
    axes, along = tuple(contract[mine]), tuple(batch[mine])
    free = [i for i in range(bits.ndim - 1) if i not in axes and i not in along]
    bits = np.bitwise_or.reduce(
        bits.transpose(*along, *free, *axes, bits.ndim - 1), axis=tuple(range(len(along) + len(free), bits.ndim - 1))
    )
    n_other = other.ndim - len(axes) - len(along)
    shape = [1] * n_other
    lead, tail, last = bits.shape[: len(along)], bits.shape[len(along) : -1], bits.shape[-1:]
    bits = bits.reshape(*lead, *((*tail, *shape) if mine == 0 else (*shape, *tail)), *last)
    return np.broadcast_to(bits, (*eqn.outvars[0].aval.shape, *last))


def _mixed(eqn, ins) -> list:
    """Every element of every result depends on all that any operand does."""
    whole = _union([np.bitwise_or.reduce(b.reshape(-1, b.shape[-1]), axis=0) for b in ins if b is not None])
    return [np.broadcast_to(whole, (*v.aval.shape, whole.size)) for v in eqn.outvars]


def colours(pattern: np.ndarray) -> np.ndarray:
    """A colour for each column, found greedily; -1 for empty columns.

    Two columns of one colour have no elements in the same row, so that one derivative gives both
    (Curtis, Powell, Reid, 1974).
    """
    used = [0] * pattern.shape[0]  # for each row, the colours used in it, as bits
    out = np.zeros(pattern.shape[1], np.int32)
    for j in np.argsort(-pattern.sum(0), kind="stable"):
        rows = np.flatnonzero(pattern[:, j])
        if not rows.size:
            out[j] = -1
            continue
        taken = 0
        for r in rows:
            taken |= used[r]
        colour = (~taken & (taken + 1)).bit_length() - 1
        out[j] = colour
        for r in rows:
            used[r] |= 1 << colour
    return out
