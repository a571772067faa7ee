"""Maxima and minima on the CPU, where XLA calls a library that drops NaN for large arrays.

The library takes reductions of at least 4096 elements of float32 or float64 whose body simplifies
to one maximum or minimum. This includes bodies of the user, such as `max(max(a, b), a)`, and
reductions over windows. XLA itself compiles a body of comparisons and selections.
"""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import FLOAT, bfloat16
from gradix._core.jaxpr import Literal
from gradix._ops.arithmetic import max_p, min_p
from gradix._ops.collectives import emit_all_reduce, pmax_p, pmin_p
from gradix._ops.comparison import gt_p, lt_p
from gradix._ops.reductions import reduce_max_p, reduce_min_p
from gradix._platforms.cpu.blocks import WORDS, emit_blocks
from gradix._platforms.cpu.hidden_extrema import is_hidden
from gradix._platforms.cpu.sums import is_summed
from gradix._platforms.records import CORRECTNESS, Rewrite

_LIBRARY_FLOATS = (np.dtype("float32"), np.dtype("float64"))
_HALVES = (np.dtype("float16"), np.dtype(bfloat16))
_SIZE = 1 << 12


def is_the_librarys(aval) -> bool:
    """Whether XLA may call the library for extrema of an array of this type."""
    return aval.dtype in _LIBRARY_FLOATS and type(aval.size) is int and aval.size >= _SIZE


def larger_or_nan(em, name: str, x, y):
    """The extremum of two values that keeps NaN, in operations that the library does not take."""
    truth = make_aval(x.aval.shape, np.dtype(bool))
    ahead = em.compare(x, y, "GT" if name == "maximum" else "LT")
    return em.select(em.op("or", truth, ahead, em.compare(x, x, "NE")), x, y)


# -- reductions over axes --------------------------------------------------------------------------


def _nobody_sees_nan(site) -> bool:
    """Whether a reduction may drop NaN: by its parameter, or as its users give NaN in any case."""
    if site.params.get("drops_nan"):
        return True
    return site.eqn is not None and is_the_librarys(site.values[0].aval) and is_hidden(site.eqn, site.users)


def _is_worth_blocks(site) -> bool:
    aval = site.values[0].aval
    return is_the_librarys(aval) or aval.dtype in WORDS


def _by_blocks(em, site, x):
    found = emit_blocks(
        em,
        site.out,
        x,
        site.params["axes"],
        site.primitive.hlo,
        lambda x, axis, out: _carefully(em, site, out, x, (axis,)),
        columns=is_the_librarys(x.aval),
    )
    return NotImplemented if found is None else found


def _keeps_nan(site) -> bool:
    return is_the_librarys(site.values[0].aval) and not site.params.get("drops_nan")


def _with_nan(em, site, x):
    """The library's extremum; if there may be a NaN, a reduction that keeps it.

    The sum of all elements is a quick test: it is NaN if an element is NaN, or if both infinities
    occur.
    """
    y, scalar = site.plain(em), make_aval((), x.aval.dtype)
    (total,) = em.reduce([x], [em.constant(0, scalar)], tuple(range(x.aval.ndim)), [scalar], "add")
    doubtful = em.convert(em.compare(total, total, "NE"), np.dtype("int32"))
    return em.case(
        doubtful, [lambda: [y], lambda: [_carefully(em, site, site.out, x, site.params["axes"])]], [site.out]
    )[0]


def _is_of_floats(site) -> bool:
    return site.out.dtype in FLOAT and not site.params.get("drops_nan")


def _over_devices(em, site, x):
    """The extremum, made NaN where another reduction finds a NaN.

    XLA drops NaN where it combines the extrema of devices, and cannot combine other reductions.
    """
    return _nan_where_found(em, site, x) if em.is_divided else NotImplemented


def _nan_where_found(em, site, x):
    truth = make_aval(site.out.shape, np.dtype(bool))
    start = em.constant(False, make_aval((), truth.dtype))
    isnan = em.compare(x, x, "NE")
    (found,) = em.reduce([isnan], [start], site.params["axes"], [truth], "or")
    return em.select(found, em.constant(np.nan, site.out), site.plain(em))


def _is_of_halves(site) -> bool:
    size = site.values[0].aval.size
    large = type(size) is not int or size >= _SIZE
    return large and site.out.dtype in _HALVES and not site.params.get("drops_nan")


def _carefully(em, site, out, x, axes):
    if out.dtype not in _LIBRARY_FLOATS:
        return site.plain(em, x, out=out, axes=axes)
    initial = em.constant(site.primitive.identity(out.dtype), make_aval((), out.dtype))
    return em.reduce([x], [initial], axes, [out], lambda x, y: [larger_or_nan(em, site.primitive.hlo, x, y)])[0]


def _along_mesh(em, site, x):
    """The extremum over devices, made NaN where one of them has a NaN, which XLA would drop."""
    names = site.primitive.names(site.params)
    if em.manual is None or not names or not x.aval.size:
        return NotImplemented
    found, axes = em.compare(x, x, "NE"), [a for a in site.params["axes"] if isinstance(a, int)]
    if axes:
        truth, start = make_aval(site.out.shape, np.dtype(bool)), make_aval((), np.dtype(bool))
        (found,) = em.reduce([found], [em.constant(False, start)], axes, [truth], "or")
    found = emit_all_reduce(em, found, names, site.params.get("axis_index_groups"), "or")
    return em.select(found, em.constant(np.nan, site.out), site.plain(em))


# -- maxima and minima of two arrays ---------------------------------------------------------------


def _is_compared_and_summed(site) -> bool:
    """Whether the result is only summed, and the derivative compares with the bound too.

    The library of sums would read the bound, a number, from memory as an array.
    """
    if site.eqn is None or not is_summed(site):
        return False
    numbers = [v for v in site.eqn.invars if type(v) is Literal]
    others = [v for v in site.eqn.invars if type(v) is not Literal]
    return len(numbers) == 1 and any(user.primitive in (gt_p, lt_p) for user in site.users.of(others[0]).values())


def _within_reductions(em, site, x, y):
    """Rewrite an extremum in the body of a reduction for which XLA may call the library."""
    if not any(is_the_librarys(a) for a in em.reduced) or site.out.dtype not in _LIBRARY_FLOATS:
        return NotImplemented
    return _by_selection(em, site, x, y)


def _by_selection(em, site, x, y):
    x, y = [em.spread(v, site.out.shape) for v in (x, y)]
    return larger_or_nan(em, "maximum" if site.primitive is max_p else "minimum", x, y)


_EXTREMA = (reduce_max_p, reduce_min_p)

REWRITES = (
    Rewrite(
        "collective_extrema_keep_nan", (pmax_p, pmin_p), _along_mesh, lambda site: site.out.dtype in FLOAT, CORRECTNESS
    ),
    Rewrite("extrema_that_hide_nan", _EXTREMA, lambda em, site, x: site.plain(em), _nobody_sees_nan),
    Rewrite("extrema_over_devices", _EXTREMA, _over_devices, _is_of_floats, CORRECTNESS),
    Rewrite("half_extrema_keep_nan", _EXTREMA, _nan_where_found, _is_of_halves, CORRECTNESS),
    Rewrite("extrema_by_blocks", _EXTREMA, _by_blocks, _is_worth_blocks, alone=True),
    Rewrite("extrema_keep_nan", _EXTREMA, _with_nan, _keeps_nan, CORRECTNESS),
    Rewrite("extrema_in_reductions_keep_nan", (max_p, min_p), _within_reductions, kind=CORRECTNESS),
    Rewrite("bounds_in_sums", (max_p, min_p), _by_selection, _is_compared_and_summed),
)
