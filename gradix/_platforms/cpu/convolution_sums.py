"""Convolutions of few terms, as sums of shifted inputs times elements of the kernel.

XLA makes one vectorized loop of such a sum, along the last axis of the result. If that axis is the
features, an element of the input is multiplied by all features of a kernel place at once. If it is
an axis of space, an element of the kernel is multiplied by a whole row. A convolution from many
features to few is one product of the input and all kernel places, and a sum of its shifted parts.
"""

from __future__ import annotations

import itertools
from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._platforms.cpu.kernel_loops import apart

_POSITIONS, _WORK = 512, 720  # the least positions, and the most of what `is_short` counts
# From so many multiplications on a call of NumPy pays.
_PRODUCTS = 1 << 17
_FLOATS = (np.dtype("float32"), np.dtype("float64"))
# The limits of convolutions to few features: the features, and kernel places times features.
_OUTPUTS, _PARTS = 3, 27


def is_short(dtype, terms: int, outputs: int, positions: int, stride: int, featured: bool) -> bool:
    """Whether a convolution with so many terms is quicker as a sum than by XLA's libraries.

    Each term takes a load and an operation on all outputs. XLA does not vectorize a loop of too
    many operations, nor one over elements that are not neighbours.
    """
    if not (np.issubdtype(dtype, np.integer) or dtype in _FLOATS):
        return False
    if positions < _POSITIONS or terms * (outputs + (4 if featured else 8)) > _WORK:
        return False
    return featured and outputs > 1 or stride == 1


def emit_sum(forms, x, w, featured: bool):
    """The sum over the places of a kernel and over features.

    Args:
        x: (batch, space, features) where `featured`, else (batch, features, space).
        w: (space, features, outputs).
    """
    em, axes = forms.em, forms.axes
    rows, result, space = x.aval.shape[0], [a.result for a in axes], len(axes)
    *places, features, outputs = w.aval.shape
    out = make_aval((rows, *result, outputs) if featured else (rows, outputs, *result), x.aval.dtype)
    # the number of axes between batch and space, and the axis of the outputs
    first, own = (0, space + 1) if featured else (1, 1)

    def put(values, feature):
        return [*values, feature] if featured else [feature, *values]

    def padded(x):
        return forms.padded(
            x, put([a.low for a in axes], 0), put([a.high for a in axes], 0), put([a.lhs_dilation - 1 for a in axes], 0)
        )

    def write(x, w):
        w, total = em.reshape(w, (prod(places) * features, outputs)), None
        for number, (*place, feature) in enumerate(itertools.product(*map(range, places), range(features))):
            seen = forms.every(
                x,
                put([i * a.rhs_dilation for i, a in zip(place, axes)], feature),
                put(result, 1),
                put([a.stride for a in axes], 1),
            )
            seen = em.broadcast_in_dim(
                em.reshape(seen, (rows, *result)), out, [0, *range(first + 1, first + 1 + space)]
            )
            element = em.reshape(forms.part(w, 0, number, 1), (outputs,))
            term = em.op("multiply", out, seen, em.broadcast_in_dim(element, out, [own]))
            total = term if total is None else em.op("add", out, total, term)
        return total

    return apart(em, "shifted_sum", out, lambda x, w: write(padded(x), w), x, w)


def is_to_few(axes, outputs: int, positions: int, featured: bool) -> bool:
    """Whether so few output features are quicker as a product and a sum of its parts.

    The product has space last. Where features came last they would have to be moved, which takes
    more time than the product saves.
    """
    if any(a.stride != 1 or a.lhs_dilation != 1 for a in axes) or featured:
        return False
    return outputs <= _OUTPUTS and outputs * prod(a.kernel for a in axes) <= _PARTS and positions >= _POSITIONS


def emit_parts(forms, x, w):
    """The summed product of `x` (batch, space, features) and `w` (space, outputs, features)."""
    em, axes = forms.em, forms.axes
    *places, outputs, features = w.aval.shape
    rows, *space = x.aval.shape[:-1]
    found = forms.product(
        make_aval((prod(places) * outputs, rows, *space), x.aval.dtype),
        em.reshape(w, (prod(places) * outputs, features)),
        x,
        ([1], [x.aval.ndim - 1]),
    )
    found = em.reshape(found, (prod(places), outputs, rows, *space))
    out = make_aval((outputs, rows, *[a.result for a in axes]), x.aval.dtype)

    pads = [[0, 0, 0, *v] for v in ([a.low for a in axes], [a.high for a in axes])]
    padded = make_aval(tuple([n + lo + hi for n, lo, hi in zip(found.aval.shape, *pads)]), x.aval.dtype)
    found = apart(
        em, "padded", padded, lambda found: forms.padded(found, *[v[1:] for v in pads], [0] * (len(axes) + 2)), found
    )

    def write(found):
        total = None
        for number, place in enumerate(itertools.product(*map(range, places))):
            part = forms.every(
                forms.part(found, 0, number, 1),
                [0, 0, *[i * a.rhs_dilation for i, a in zip(place, axes)]],
                [outputs, rows, *[a.result for a in axes]],
                [1] * (len(axes) + 2),
            )
            part = em.reshape(part, out.shape)
            total = part if total is None else em.op("add", out, total, part)
        return total

    return apart(em, "parts", out, write, found)


def is_correlation(out, axes, inputs: int, features: int) -> bool:
    """Whether a convolution is one of vectors, which NumPy does much faster than the library."""
    if len(axes) != 1 or not inputs == features == axes[0].stride == 1 or out.dtype not in _FLOATS:
        return False
    return out.size * axes[0].kernel >= _PRODUCTS


def emit_correlation(forms, x, w):
    """The convolution of `x` (rows, space, 1) and `w` (space, 1, 1), by NumPy."""
    em, (axis,), rows = forms.em, forms.axes, x.aval.shape[0]
    x = forms.padded(x, [axis.low], [axis.high], [axis.lhs_dilation - 1])
    w = forms.padded(em.reshape(w, (1, axis.kernel, 1)), [0], [0], [axis.rhs_dilation - 1])
    (found,) = em.host_kernel(
        "correlate",
        [make_aval((rows, axis.result), x.aval.dtype)],
        *[em.reshape(v, v.aval.shape[:2]) for v in (x, w)],
        batch=0,
    )
    return em.reshape(found, (rows, axis.result, 1))
