"""Convolutions that XLA:CPU does slowly, as products of matrices or sums of elementwise products.

XLA has one algorithm for all kernels. It is far too slow for a kernel of one place, for a kernel as
large as the input (as in the gradient by a kernel of one place), and for features in groups. It is
also slow for a large kernel with few positions (as in the gradient by a small kernel), and for few
features (docs/kernels.md).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._ops.conv.conv import conv_general_dilated_p
from gradix._ops.conv.types import work_dtype
from gradix._ops.dot import dot_general_p
from gradix._ops.dot_types import rounded_to
from gradix._platforms.cpu.convolution_forms import Axis, Forms, resized
from gradix._platforms.cpu.convolution_sums import (
    emit_correlation,
    emit_parts,
    emit_sum,
    is_correlation,
    is_short,
    is_to_few,
)
from gradix._platforms.records import Rewrite

_REAL = (np.dtype("float32"), np.dtype("float64"))
# The largest numbers that are unrolled: places of a kernel, places that sum over the input, and
# groups.
_TAPS, _SUMS, _GROUPS = 64, 25, 32
# XLA's library is slow on fewer input features than `_THIN`, unless there are `_WIDER` output
# features.
_THIN, _WIDER = 16, 24
_POSITIONS = 1024  # this shows from so many positions of the kernel on


class _Case(NamedTuple):
    """A convolution whose operands are not empty, have known sizes and the dtype of the result."""

    out: Any
    axes: list[Axis]
    rows: int  # of the input
    inputs: int  # features of the input
    features: int  # of the result
    feature_groups: int
    batch_groups: int
    out_features: int  # their axis in the result

    @property
    def alone(self) -> bool:
        return self.feature_groups == self.batch_groups == 1

    @property
    def featured(self) -> bool:
        """Whether the features are the last axis, or there is one feature on each side."""
        return self.out_features == len(self.axes) + 1 or self.inputs == self.features == 1

    @property
    def places(self) -> int:
        return prod([a.kernel for a in self.axes])

    @property
    def results(self) -> int:
        return prod([a.result for a in self.axes])

    @property
    def spread(self) -> int:
        """How many kernel places there are for each that XLA computes; it skips dilation zeros."""
        return prod([a.lhs_dilation for a in self.axes]) if len(self.axes) == 2 and self.out.dtype == _REAL[0] else 1


@lru_cache(1024)
def _case(lhs, rhs, out, strides, padding, dilations, *, numbers, feature_groups: int, batch_groups: int):
    """The `_Case` of a convolution of these types, or None."""
    if not lhs.dtype == rhs.dtype == out.dtype or out.dtype in dtypes.BOOL or not padding:
        return None
    if not all(type(n) is int for a in (lhs, rhs, out) for n in a.shape) or not (out.size and lhs.size and rhs.size):
        return None
    axes = [
        Axis(lhs.shape[i], rhs.shape[j], out.shape[k], *pads, *step)
        for i, j, k, pads, *step in zip(*[spec[2:] for spec in numbers], padding, strides, *dilations)
    ]
    (rows, inputs), features = [lhs.shape[i] for i in numbers[0][:2]], rhs.shape[numbers[1][0]]
    return _Case(out, axes, rows, inputs, features, feature_groups, batch_groups, numbers[2][1])


def _case_of(site):
    p, (lhs, rhs) = site.params, [v.aval for v in site.values]
    return _case(
        lhs,
        rhs,
        site.out,
        tuple(p["window_strides"]),
        tuple(map(tuple, p["padding"])),
        (tuple(p["lhs_dilation"]), tuple(p["rhs_dilation"])),
        numbers=p["dimension_numbers"],
        feature_groups=p.get("feature_group_count", 1),
        batch_groups=p.get("batch_group_count", 1),
    )


def _of_case(test):
    """A function `applies(site)` from a test of cases."""

    def applies(site) -> bool:
        case = _case_of(site)
        return case is not None and test(case)

    return applies


# -- which -----------------------------------------------------------------------------------------


def _has_other_dtypes(site) -> bool:
    return not site.values[0].aval.dtype == site.values[1].aval.dtype == site.out.dtype or site.out.dtype in dtypes.BOOL


def _is_product(c: _Case) -> bool:
    return c.alone and c.out.dtype in _REAL and all(a.pointwise or a.covered for a in c.axes)


def _is_short(c: _Case) -> bool:
    # XLA compiles convolutions of vectors in the layout of its library to one call, which is quick.
    called = len(c.axes) == 1 and (c.rows == 1 or c.out_features == 2)
    return (
        c.alone
        and not called
        and is_short(
            c.out.dtype, c.places * c.inputs * c.spread, c.features, c.rows * c.results, c.axes[-1].stride, c.featured
        )
    )


def _is_correlation(c: _Case) -> bool:
    return c.alone and is_correlation(c.out, c.axes, c.inputs, c.features)


def _is_to_few(c: _Case) -> bool:
    return c.alone and c.out.dtype in _REAL and is_to_few(c.axes, c.features, c.rows * c.results, c.featured)


def _is_featurewise(c: _Case) -> bool:
    return c.out.dtype in _REAL and 1 < c.feature_groups == c.inputs == c.features and c.places <= _TAPS


def _is_featurewise_gradient(c: _Case) -> bool:
    return c.out.dtype in _REAL and 1 < c.batch_groups == c.rows == c.features and c.results <= _SUMS


def _is_thin(c: _Case) -> bool:
    if not c.alone or len(c.axes) != 2 or c.out.dtype != _REAL[0] or c.spread != 1:
        return False
    # The library is also slow from an odd number of features to many.
    odd = c.inputs % 2 and c.inputs > 1
    is_thin = c.features <= _THIN and c.inputs < _THIN and c.inputs % 8 != 0
    return is_thin and not odd and c.rows * c.results >= _POSITIONS


def _is_in_groups_of_rows(c: _Case) -> bool:
    return c.out.dtype in _REAL and 1 < c.batch_groups <= _GROUPS


# -- how -------------------------------------------------------------------------------------------


def _by_working_dtype(em, site, lhs, rhs):
    """Convert the operands to the dtype computed in, which becomes the dtype of the result."""
    out, first = site.out, rounded_to(lhs.aval.dtype, site.out.dtype)
    work = np.dtype("int32") if out.dtype in dtypes.BOOL else work_dtype(lhs.aval.dtype, out.dtype)
    y = em.lower(
        conv_general_dilated_p,
        make_aval(out.shape, work),
        em.convert(lhs, work),
        em.convert(rhs, work),
        **{**site.params, "preferred_element_type": None},
    )
    return em.convert(y if first is None else em.convert(y, first), out.dtype)


class _Arranged:
    """A site, with the transposes of its operands to the axes of a form, and of the result back."""

    def __init__(self, em, site, lhs, rhs):
        self.case, self.em, self.operands = _case_of(site), em, (lhs, rhs)
        self.numbers, self.space = (site.params["dimension_numbers"], range(2, len(self.case.axes) + 2))
        precision = site.params.get("precision")
        self.forms = Forms(
            em,
            self.case.axes,
            lambda aval, x, y, contracted: em.lower(
                dot_general_p, aval, x, y, dimension_numbers=(contracted, ((), ())), precision=precision
            ),
        )

    def __call__(self, form, lhs_order, rhs_order, out_order=None):
        """Apply a form to operands in these axis orders, and transpose its result back."""
        em = self.em
        operands = [
            em.transpose(v, [spec[i] for i in order])
            for v, spec, order in zip(self.operands, self.numbers, (lhs_order, rhs_order))
        ]
        axes = [self.numbers[2][i] for i in out_order or (0, *self.space, 1)]
        return em.transpose(form(*operands), [axes.index(i) for i in range(len(axes))])


def _as_product(em, site, lhs, rhs):
    arranged = _Arranged(em, site, lhs, rhs)
    return arranged(arranged.forms.contract, (0, *arranged.space, 1), (*arranged.space, 1, 0))


def _as_sum(em, site, lhs, rhs):
    arranged = _Arranged(em, site, lhs, rhs)
    featured = arranged.case.featured
    order = (0, *arranged.space, 1) if featured else (0, 1, *arranged.space)
    return arranged(lambda x, w: emit_sum(arranged.forms, x, w, featured), order, (*arranged.space, 1, 0), order)


def _by_numpy(em, site, lhs, rhs):
    if not em.has_host_kernels(site.out):
        return NotImplemented
    arranged = _Arranged(em, site, lhs, rhs)
    return arranged(
        lambda x, w: emit_correlation(arranged.forms, x, w), (0, *arranged.space, 1), (*arranged.space, 1, 0)
    )


def _as_parts(em, site, lhs, rhs):
    arranged = _Arranged(em, site, lhs, rhs)
    return arranged(
        lambda x, w: emit_parts(arranged.forms, x, w),
        (0, *arranged.space, 1),
        (*arranged.space, 0, 1),
        (1, 0, *arranged.space),
    )


def _featurewise(em, site, lhs, rhs):
    arranged = _Arranged(em, site, lhs, rhs)
    return arranged(arranged.forms.featurewise, (0, *arranged.space, 1), (*arranged.space, 1, 0))


def _featurewise_gradient(em, site, lhs, rhs):
    arranged = _Arranged(em, site, lhs, rhs)
    return arranged(arranged.forms.featurewise_gradient, (1, *arranged.space, 0), (1, *arranged.space, 0))


def _to_more_features(em, site, lhs, rhs):
    """Convolve to additional features, by kernels of zeros, and drop them from the result."""
    out, numbers = site.out, site.params["dimension_numbers"]
    wide = make_aval(resized(out.shape, numbers[2][1], _WIDER), out.dtype)
    kernels = em.pad_to(rhs, resized(rhs.aval.shape, numbers[1][0], _WIDER), 0)
    return em.head(em.lower(conv_general_dilated_p, wide, lhs, kernels, **site.params), out.shape)


def _group_by_group(em, site, lhs, rhs):
    out, numbers, groups = (site.out, site.params["dimension_numbers"], site.params["batch_group_count"])
    forms = Forms(em, (), None)

    def group(x, axis, i):
        size = x.aval.shape[axis] // groups
        return forms.part(x, axis, i * size, size)

    axis = numbers[2][1]
    thin = make_aval(resized(out.shape, axis, out.shape[axis] // groups), out.dtype)
    params = {**site.params, "feature_group_count": 1, "batch_group_count": 1}
    parts = [
        em.lower(conv_general_dilated_p, thin, group(lhs, numbers[0][0], i), group(rhs, numbers[1][0], i), **params)
        for i in range(groups)
    ]
    return em.op("concatenate", out, *parts, attrs=f"dimension = {axis} : i64")


def _record(name: str, emit, applies, alone: bool = True) -> Rewrite:
    return Rewrite(name, (conv_general_dilated_p,), emit, applies, alone=alone)


REWRITES = (
    _record("convolutions_by_wider_dtypes", _by_working_dtype, _has_other_dtypes, alone=False),
    _record("convolutions_as_products", _as_product, _of_case(_is_product)),
    _record("short_convolutions_as_sums", _as_sum, _of_case(_is_short)),
    _record("correlations_by_numpy", _by_numpy, _of_case(_is_correlation)),
    _record("convolutions_to_few_features", _as_parts, _of_case(_is_to_few)),
    _record("featurewise_convolutions", _featurewise, _of_case(_is_featurewise)),
    _record("featurewise_kernel_gradients", _featurewise_gradient, _of_case(_is_featurewise_gradient)),
    _record("thin_convolutions_to_more_features", _to_more_features, _of_case(_is_thin)),
    _record("convolutions_group_by_group", _group_by_group, _of_case(_is_in_groups_of_rows)),
)
