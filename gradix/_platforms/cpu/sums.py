"""Sums on the CPU, by blocks or products with ones, and operations before sums by the library."""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.arithmetic import abs_p, add_p, div_p, max_p, min_p, mul_p, sub_p
from gradix._ops.basis import add_any_p, reduce_sum_p
from gradix._ops.complex_parts import neg_p
from gradix._ops.dot import emit_dot_general
from gradix._ops.reductions import reduce_max_p, reduce_min_p
from gradix._ops.special.erf import erfc_p
from gradix._ops.special.gamma import digamma_p
from gradix._ops.transcendental import log1p_p
from gradix._platforms.cpu.blocks import WORDS, emit_blocks
from gradix._platforms.cpu.kernel_loops import apart
from gradix._platforms.records import Rewrite

_F16, _F32 = np.dtype("float16"), np.dtype("float32")
_FLOATS = frozenset((np.dtype("float32"), np.dtype("float64")))


# -- sums of integers and half precisions, by blocks -----------------------------------------------

_LONG = 1 << 12  # integers of a row from which on blocks pay


def _is_of_halves(site) -> bool:
    # XLA would first write the operand to memory as float32.
    return site.values[0].converted_from == _F16 and site.out.dtype == _F32


def _is_worth_blocks(site) -> bool:
    out, (x,) = site.out, site.values
    if _is_of_halves(site):
        return True
    return out.dtype in WORDS and (
        x.converted_from is not None or out.dtype.itemsize == 2 or out.size * _LONG <= x.aval.size
    )


def _by_blocks(em, site, x):
    found = emit_blocks(
        em,
        site.out,
        x,
        site.params["axes"],
        "add",
        lambda x, axis, out: site.plain(em, x, out=out, axes=(axis,)),
        columns=_is_of_halves(site),
        neutral=0,
    )
    return NotImplemented if found is None else found


# -- sums of long columns side by side, as sums of a batch are -------------------------------------

_COLUMNS = 1 << 12


def _blocks(shape, axes) -> tuple[int, int, int] | None:
    """The operand as `(outer, rows, columns)`, summed over the rows; None if it has no such form.

    The summed axes must be neighbours.
    """
    summed = [i for i, n in enumerate(shape) if n > 1 and i in axes]
    if not summed or any(n > 1 and i not in axes for i, n in enumerate(shape[: summed[-1]]) if i > summed[0]):
        return None
    return (prod(shape[: summed[0]]), prod(shape[summed[0] : summed[-1] + 1]), prod(shape[summed[-1] + 1 :]))


def _is_of_columns(site) -> bool:
    """Whether many columns are summed, for which XLA calls a slow library (docs/kernels.md)."""
    (x,) = site.values
    if site.out.dtype not in _FLOATS or type(x.aval.size) is not int or x.aval.size < _COLUMNS:
        return False
    found = _blocks(x.aval.shape, site.params["axes"])
    return found is not None and found[0] > 0 and found[2] >= _COLUMNS


def _by_product_with_ones(em, site, x):
    """The sums as a product of ones with the rows, which XLA reads row by row."""
    out, (outer, rows, columns) = site.out, _blocks(x.aval.shape, site.params["axes"])
    ones, sums = make_aval((outer, rows), out.dtype), make_aval((outer, columns), out.dtype)

    def write(x):
        numbers = ((1,), (1,)), ((0,), (0,))
        return emit_dot_general(em, sums, em.constant(1, ones), x, numbers)

    # XLA must not fuse the operand into the product, which would compute it without vectors.
    return em.reshape(apart(em, "column_sums", sums, write, em.reshape(x, (outer, rows, columns))), out.shape)


# -- what goes into sums and extrema ---------------------------------------------------------------

_LEAST = 1 << 12  # elements from which on the library takes a sum
# operations that the library of sums computes too, which selections are not
_ON_THE_WAY = frozenset((add_p, add_any_p, sub_p, mul_p, div_p, neg_p, abs_p, max_p, min_p))


def is_summed(site) -> bool:
    """Whether the only use of a result is a sum by the library, after operations that it knows."""
    aval = site.out
    if aval.dtype != _F32 or type(aval.size) is not int or aval.size < _LEAST:
        return False
    user = site.reader()
    while user is not None and user.primitive in _ON_THE_WAY and user.outvars[0].aval.shape == aval.shape:
        user = site.users.only(user.outvars[0])
    return user is not None and user.primitive is reduce_sum_p


def _goes_into_extremum(site) -> bool:
    """Whether a formula is only used by an extremum, whose blocks would each compute it again."""
    user = site.reader()
    while user is not None and not user.primitive.multiple_results and user.outvars[0].aval.shape == site.out.shape:
        user = site.users.only(user.outvars[0])
    return user is not None and user.primitive in (reduce_max_p, reduce_min_p)


def _apart(em, site, x):
    return apart(em, site.primitive.name, site.out, lambda x: em.lower(site.primitive, site.out, x), x)


REWRITES = (
    Rewrite("sums_by_blocks", (reduce_sum_p,), _by_blocks, _is_worth_blocks, alone=True),
    Rewrite("column_sums", (reduce_sum_p,), _by_product_with_ones, _is_of_columns, alone=True),
    Rewrite("log1p_in_sums", (log1p_p,), lambda em, site, x: site.plain(em), is_summed),
    Rewrite("formulas_before_extrema", (erfc_p, digamma_p), _apart, _goes_into_extremum, alone=True),
)
