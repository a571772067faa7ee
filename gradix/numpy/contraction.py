"""einsum: sums of products of arrays whose axes have labels.

The plan of a call depends on its subscripts and shapes only; it is made once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import index as as_int
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.dimensions.expression import typical_size
from gradix._core.operators import Array
from gradix._core.promotion import promote_all
from gradix.numpy.axes import no_out
from gradix.numpy.products import before_transpose
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.reductions import sum as array_sum

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

_opt_einsum = lazy_module("opt_einsum")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Operand(NamedTuple):
    """What happens to an operand before it is contracted.

    First diagonals are taken, then axes of size 1 are dropped, then other axes are summed.
    """

    diagonals: tuple
    squeezed: tuple
    summed: tuple


class Step(NamedTuple):
    """One contraction of one or two operands.

    It holds the operands' places in the list, what happens to each first, the dimension numbers,
    whether the operands are swapped, and the order of the result's axes (None for as it is).
    """

    places: tuple
    operands: tuple
    numbers: Any
    swap: bool
    order: tuple | None


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: bool | str | Sequence[Any] = "auto",
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Array] = lax.dot_general,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Sums of products of arrays, named by the labels of their axes.

    Args:
        subscripts: a text such as "ij,jk->ik", with a label for each axis of each operand, and the
            labels of the result; axes whose labels the result lacks are summed over. "..." stands
            for any further axes. Instead, operands and lists of labels may be given in turn.
        *operands: the arrays.
        out: not supported.
        optimize: how to find the order of contractions for more than two operands: "auto",
            "optimal", "greedy", True, False for left to right, or a list of pairs.
        precision: a `lax.Precision`, its name, or a pair of them; a hint for accelerators.
        preferred_element_type: the dtype of the result, in which products are summed.
        out_sharding: the sharding of the result.

    Returns:
        An array with the axes that the result's labels name, in the operands' promoted dtype.

    Raises:
        ValueError: labels do not fit the operands, or axes of one label differ in size.
        TypeError: lists of labels mix kinds, such as numbers and strings.
        NotImplementedError: `out` is given.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.einsum("ij,kj->ik", jnp.ones((2, 3)), jnp.ones((4, 3))).shape
        (2, 4)
    """
    options = {
        "out": out,
        "optimize": optimize,
        "precision": precision,
        "preferred_element_type": preferred_element_type,
        "_dot_general": _dot_general,
    }
    if out_sharding is not None:
        return divided(einsum, out_sharding, subscripts, *operands, leaves_sums=_einsum, **options)
    return _einsum(None, subscripts, *operands, **options)


def _einsum(left, subscripts, *operands, out, optimize, precision, preferred_element_type, _dot_general) -> Array:
    """As `einsum`; the sum over the mesh axes over which the sharding `left` is unreduced is left to be finished."""
    no_out("einsum", out)
    subscripts, operands = _as_text(subscripts, operands)
    xs = [as_operand("einsum", x, i) for i, x in enumerate(operands)]
    path = optimize if isinstance(optimize, (str, bool)) else tuple([tuple(p) for p in optimize])
    steps = _plan(subscripts, tuple([x.aval.shape for x in xs]), path)
    kinds = {(x.aval.dtype, x.aval.weak_type) for x in xs}
    dtype, weak = (
        next(iter(kinds))
        if len(kinds) == 1
        else promote_all([(x.aval.dtype, x.aval.weak_type) for x in xs], dtypes.promotion_mode())
    )
    if preferred_element_type is not None:
        dtype, weak = dtypes.requested_dtype(preferred_element_type, "einsum"), False

    def multiply(x, y, numbers, sharding):
        more = {} if sharding is None else {"out_sharding": sharding}
        return _dot_general(x, y, numbers, precision, preferred_element_type=dtype, **more)

    for k, step in enumerate(steps, 1):
        sharding = before_transpose(left, step.order) if k == len(steps) else None
        own = sharding if len(step.operands) == 1 else None
        parts = [_prepared(xs[i], op, own) for i, op in zip(step.places, step.operands)]
        xs = [x for i, x in enumerate(xs) if i not in step.places]
        ordered = parts[::-1] if step.swap else parts
        z = parts[0] if len(parts) == 1 else multiply(*ordered, step.numbers, sharding)  # type: ignore[call-arg]
        xs.append(z if step.order is None else lax.transpose(z, step.order))
    return convert(xs[0], dtype, weak)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: bool | str | Sequence[Any] = "auto") -> tuple[list, Any]:
    """The order in which `einsum` contracts pairs of operands, and a printable account of it.

    Args:
        subscripts: a text, or operands and lists of labels in turn, as for `einsum`.
        *operands: the arrays.
        optimize: how to search: "auto", "optimal", "greedy", True, False, or a path.

    Returns:
        A list of tuples of places in the list of operands, from which a contraction removes its
        operands and to which it appends its result; and the account of `opt_einsum`.

    Example:
        >>> import gradix.numpy as jnp
        >>> path, _ = jnp.einsum_path("ij,jk,k->i", jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4))
        >>> path
        [(1, 2), (0, 1)]
    """
    subscripts, operands = _as_text(subscripts, operands)
    shapes = _weighed([as_operand("einsum_path", x).aval.shape for x in operands])
    return _opt_einsum.contract_path(
        subscripts, *shapes, shapes=True, optimize="optimal" if optimize is True else optimize
    )


def _prepared(x, op: Operand, left=None):
    for i, j in op.diagonals:
        x = _diagonal(x, i, j)
    if op.squeezed:
        x = lax.squeeze(x, op.squeezed)
    if left is not None and op.summed:
        return lax.reduce_sum(x, op.summed, out_sharding=left)
    return array_sum(x, op.summed, dtype=x.aval.dtype) if op.summed else x


def _diagonal(x, i: int, j: int):
    """The elements with equal positions along axes i and j; the result has no axis i."""
    shape = x.aval.shape
    square = (shape[i], shape[j])
    same = lax.eq(lax.broadcasted_iota(np.int32, square, 0), lax.broadcasted_iota(np.int32, square, 1))
    mask = lax.broadcast_in_dim(same, shape, (i, j))
    kept = lax.select_n(mask, lax.broadcast_in_dim(number(0, x.aval.dtype), shape, ()), x)
    return array_sum(kept, i, dtype=x.aval.dtype)


# -- the labels ------------------------------------------------------------------------------------


def _as_text(subscripts, operands):
    """The subscripts as a text, and the operands, also if they were given in turn with labels."""
    if isinstance(subscripts, str):
        return subscripts, operands
    given = (subscripts, *operands)
    arrays, lists = given[: len(given) // 2 * 2 : 2], list(given[1::2])
    if len(given) % 2:
        lists.append(given[-1])
    letters = _letters_of(lists)
    texts = ["".join([letters[_label(s)] for s in labels]) for labels in lists]
    text = ",".join(texts[: len(arrays)])
    return (f"{text}->{texts[-1]}" if len(given) % 2 else text), arrays


def _label(s):
    return as_int(s) if hasattr(s, "__index__") else s


def _letters_of(lists) -> dict:
    """A letter for each label; the letters are ordered as the labels are.

    Raises:
        TypeError: labels cannot be ordered, such as numbers and strings together.
        ValueError: there are more than 52 labels.
    """
    found = {_label(s) for labels in lists for s in labels if s is not Ellipsis}
    if len(found) > len(_LETTERS):
        raise ValueError(f"einsum takes at most {len(_LETTERS)} labels, got {len(found)}.")
    try:
        ordered = sorted(found)
    except TypeError:
        raise TypeError(f"einsum takes labels of one kind, such as ints or strings, got {found}.") from None
    return {Ellipsis: "...", **dict(zip(ordered, sorted(_LETTERS)))}


@lru_cache(4096)
def _parsed(subscripts: str, ranks: tuple) -> tuple[tuple, str]:
    """The labels of each operand and of the result, with labels in the place of each "..."."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum: {subscripts!r} names {len(terms)} operands, got {len(ranks)}.")
    extra = [_check_term(subscripts, t, rank) for t, rank in zip(terms, ranks)]
    spare = [c for c in (*_LETTERS, *map(chr, range(192, 192 + 64))) if c not in text][: max(extra, default=0)]
    full = [t.replace("...", "".join(spare[len(spare) - e :])) for t, e in zip(terms, extra)]
    joined = "".join(full)
    if not arrow:
        once = sorted([c for c in set(joined) if joined.count(c) == 1 and c not in spare])
        return tuple(full), "".join(spare) + "".join(once)
    result = right.replace("...", "".join(spare))
    for c in result:
        if c not in joined:
            raise ValueError(f"einsum: the result of {subscripts!r} has the label {c!r}, which no operand has.")
        if result.count(c) > 1:
            raise ValueError(f"einsum: the result of {subscripts!r} has the label {c!r} more than once.")
    return tuple(full), result


def _check_term(subscripts: str, term: str, rank: int) -> int:
    """How many axes the "..." in an operand's labels stands for."""
    plain = term.replace("...", "", 1)
    if any(c in ".->" for c in plain):
        raise ValueError(f"einsum: a term may hold '...' once and no other dots, got {term!r} in {subscripts!r}.")
    extra = rank - len(plain)
    if extra < 0 or (extra and "..." not in term):
        raise ValueError(
            f"einsum: term {term!r} of {subscripts!r} names {len(plain)} axes, but the operand has {rank}."
        )
    return extra if "..." in term else 0


# -- the plan --------------------------------------------------------------------------------------


@lru_cache(4096)
def _plan(subscripts: str, shapes: tuple, optimize) -> tuple:
    terms, result = _parsed(subscripts, tuple([len(s) for s in shapes]))
    sizes: dict = {}
    for term, shape in zip(terms, shapes):
        for c, n in zip(term, shape):
            if sizes.get(c, 1) != n and sizes.get(c, 1) != 1 and n != 1:
                raise ValueError(
                    f"einsum: label {c!r} of {subscripts!r} has the sizes {sizes[c]} and {n}; the "
                    f"operands have the shapes {', '.join(map(str, shapes))}."
                )
            sizes[c] = n if n != 1 else sizes.get(c, 1)
    names = [(t, s) for t, s in zip(terms, shapes)]
    steps = []
    for places in _path(terms, result, shapes, optimize):
        chosen = [names[i] for i in places]
        names = [t for i, t in enumerate(names) if i not in places]
        later = set(result).union(*[t for t, _ in names])
        step, labels = _step(tuple(places), chosen, later, result if not names else None, sizes)
        steps.append(step)
        names.append((labels, tuple([sizes[c] for c in labels])))
    return tuple(steps)


def _path(terms, result, shapes, optimize) -> list:
    n = len(terms)
    if n <= 2:
        return [tuple(range(n))]
    if isinstance(optimize, tuple):
        found = [p for p in optimize if not isinstance(p[0], str)] if optimize else []
    elif optimize is False:
        found = [(0, 1)] + [(0, n - k - 1) for k in range(1, n - 1)]
    else:
        found = _opt_einsum.contract_path(
            f"{','.join(terms)}->{result}",
            *_weighed(shapes),
            shapes=True,
            optimize="optimal" if optimize is True else optimize,
        )[0]
    return _in_pairs(found, n)


def _weighed(shapes) -> list[tuple]:
    """The shapes for which costs of paths are compared: a typical size for each symbolic one."""
    return [tuple(map(typical_size, shape)) for shape in shapes]


def _in_pairs(path, n: int) -> list:
    """The path with steps of more than two operands split into steps of two."""
    out = []
    for places in path:
        places = sorted(places)
        while len(places) > 2:
            out.append((places[0], places[1]))
            n -= 1
            places = [p - 2 for p in places[2:]] + [n - 1]
        out.append(tuple(places))
        n -= len(places) - 1
    return out


def _step(places, chosen, later: set, result: str | None, sizes) -> tuple[Step, str]:
    prepared = [_operand(i, chosen, later, sizes) for i in range(len(chosen))]
    ops, labels = tuple([p for p, _ in prepared]), [t for _, t in prepared]
    if len(labels) == 1:
        have = labels[0]
        numbers, swap = None, False
    else:
        x, y = labels
        batch = [c for c in x if c in y and c in later]
        own_x, own_y = [c for c in x if c not in y], [c for c in y if c not in x]
        swap = result is not None and "".join(batch + own_x + own_y) != result
        if swap:
            x, y, own_x, own_y = y, x, own_y, own_x
            batch = [c for c in x if c in y and c in later]
        summed = [c for c in x if c in y and c not in later]
        numbers = (
            (tuple(map(x.index, summed)), tuple(map(y.index, summed))),
            (tuple(map(x.index, batch)), tuple(map(y.index, batch))),
        )
        have = "".join(batch + own_x + own_y)
    if result is None or have == result:
        return Step(places, ops, numbers, swap, None), have
    return Step(places, ops, numbers, swap, tuple([have.index(c) for c in result])), result


def _operand(i: int, chosen, later: set, sizes) -> tuple[Operand, str]:
    """What happens to one operand of a step, and its labels after that."""
    term, shape = chosen[i]
    labels, diagonals = list(term), []
    lengths = list(shape)
    for c in sorted(set(term)):
        while labels.count(c) > 1:
            a = labels.index(c)
            b = labels.index(c, a + 1)
            diagonals.append((a, b))
            del labels[a], lengths[a]
    thin = tuple([k for k, (c, n) in enumerate(zip(labels, lengths)) if n == 1 and sizes[c] != 1])
    labels = [c for k, c in enumerate(labels) if k not in thin]
    summed = tuple([k for k, c in enumerate(labels) if c not in later and not _shared(c, chosen, i)])
    return Operand(tuple(diagonals), thin, summed), "".join([c for k, c in enumerate(labels) if k not in summed])


def _shared(c: str, chosen, i: int) -> bool:
    """Whether another operand of the step has the label with the same size, and not broadcast."""
    own = chosen[i][1][chosen[i][0].index(c)]
    return any(k != i and c in t and s[t.index(c)] == own for k, (t, s) in enumerate(chosen))
