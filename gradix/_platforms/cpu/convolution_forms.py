"""Convolutions on the CPU as products of matrices, and as sums of elementwise products."""

from __future__ import annotations

import itertools
from math import prod
from typing import NamedTuple

from gradix._core.aval import make_aval
from gradix._stablehlo.attributes import i64_array


class Axis(NamedTuple):
    """One axis of space: the sizes of input, kernel and result, padding, stride and dilations."""

    size: int
    kernel: int
    result: int
    low: int
    high: int
    stride: int
    lhs_dilation: int
    rhs_dilation: int

    @property
    def inside(self) -> bool:
        """Whether the kernel covers only elements of the input, and no padding."""
        return self.lhs_dilation == 1 and self.low <= 0 and self.high <= 0

    @property
    def pointwise(self) -> bool:
        return self.kernel == 1 and (self.inside or self.stride == 1)

    @property
    def covered(self) -> bool:
        return self.result == 1 and self.inside


def resized(shape, axis: int, size: int) -> tuple:
    return (*shape[:axis], size, *shape[axis + 1 :])


class Forms:
    """Convolutions of inputs (batch, space, features), lowered to other operations."""

    def __init__(self, em, axes, product):
        self.em, self.axes, self.product = em, axes, product

    # -- words -------------------------------------------------------------------------------------

    def padded(self, x, low, high, interior):
        """`x` padded with zeros on the axes after the first that have an entry."""
        config = [(0, *v, *[0] * (x.aval.ndim - 1 - len(v))) for v in (low, high, interior)]
        if not any(map(any, config)):
            return x
        shape = [n + lo + hi + (n - 1) * i for n, lo, hi, i in zip(x.aval.shape, *config)]
        texts = [
            f"{name} = {i64_array(v)}"
            for name, v in zip(("edge_padding_low", "edge_padding_high", "interior_padding"), config)
        ]
        return self.em.op(
            "pad",
            make_aval(tuple(shape), x.aval.dtype),
            x,
            self.em.constant(0, make_aval((), x.aval.dtype)),
            attrs=", ".join(texts),
        )

    def every(self, x, starts, counts, steps):
        """A strided slice of the axes after the first; axes without an entry are kept whole."""
        rest = x.aval.shape[len(counts) + 1 :]
        starts, steps = (0, *starts, *[0] * len(rest)), (1, *steps, *[1] * len(rest))
        shape = (x.aval.shape[0], *counts, *rest)
        if shape == x.aval.shape:
            return x
        limits = [a + (n - 1) * s + 1 for a, n, s in zip(starts, shape, steps)]
        return self.em.op(
            "slice",
            make_aval(shape, x.aval.dtype),
            x,
            attrs=(
                f"start_indices = {i64_array(starts)}, limit_indices = {i64_array(limits)}, "
                f"strides = {i64_array(steps)}"
            ),
        )

    def part(self, x, axis: int, start: int, size: int):
        """`size` elements along an axis."""
        starts, shape = [0] * x.aval.ndim, resized(x.aval.shape, axis, size)
        starts[axis] = start
        limits = [a + n for a, n in zip(starts, shape)]
        return self.em.op(
            "slice",
            make_aval(shape, x.aval.dtype),
            x,
            attrs=(
                f"start_indices = {i64_array(starts)}, limit_indices = {i64_array(limits)}, "
                f"strides = {i64_array([1] * len(shape))}"
            ),
        )

    # -- forms -------------------------------------------------------------------------------------

    def contract(self, x, w):
        """One product of matrices, which contracts each axis of space as a whole or not at all."""
        em, after = self.em, [a.pointwise and not a.inside for a in self.axes]
        taken = [
            (0, a.size, 1)
            if late
            else (-a.low, a.result, a.stride)
            if a.pointwise
            else (-a.low, a.kernel, a.rhs_dilation)
            for a, late in zip(self.axes, after)
        ]
        x = self.every(x, *zip(*taken))
        whole = [i for i, a in enumerate(self.axes) if not a.pointwise]
        w = em.reshape(w, (*[self.axes[i].kernel for i in whole], *w.aval.shape[-2:]))
        kept = [n for i, (_, n, _) in enumerate(taken) if i not in whole]
        shape = (x.aval.shape[0], *kept, w.aval.shape[-1])
        y = self.product(
            make_aval(shape, x.aval.dtype), x, w, ([*[i + 1 for i in whole], x.aval.ndim - 1], [*range(len(whole) + 1)])
        )
        y = em.reshape(y, (shape[0], *[1 if i in whole else n for i, (_, n, _) in enumerate(taken)], shape[-1]))
        pads = [(a.low, a.high, a.lhs_dilation - 1) if late else (0, 0, 0) for a, late in zip(self.axes, after)]
        return self.padded(y, *zip(*pads))

    def featurewise(self, x, w):
        """Each feature on its own, as a sum of shifted inputs times elements of the kernel."""
        em = self.em
        x = self.padded(x, *zip(*[(a.low, a.high, a.lhs_dilation - 1) for a in self.axes]))
        taps = em.reshape(w, (prod(a.kernel for a in self.axes), x.aval.shape[-1]))
        total = None
        for number, places in enumerate(itertools.product(*[range(a.kernel) for a in self.axes])):
            seen = self.every(
                x,
                [i * a.rhs_dilation for i, a in zip(places, self.axes)],
                [a.result for a in self.axes],
                [a.stride for a in self.axes],
            )
            tap = em.reshape(self.part(taps, 0, number, 1), (x.aval.shape[-1],))
            term = em.op("multiply", seen.aval, seen, em.broadcast(tap, seen.aval.shape))
            total = term if total is None else em.op("add", term.aval, total, term)
        return total

    def featurewise_gradient(self, x, ct):
        """The cotangent of the kernel of `featurewise`.

        `x` and `ct` are (batch, space, features).
        """
        em, dtype = self.em, x.aval.dtype
        x = self.padded(x, *zip(*[(a.low, a.high, a.lhs_dilation - 1) for a in self.axes]))
        features, scalar = x.aval.shape[-1], make_aval((), dtype)
        rows = []
        for places in itertools.product(*[range(a.result) for a in self.axes]):
            seen = self.every(
                x,
                [i * a.stride for i, a in zip(places, self.axes)],
                [a.kernel for a in self.axes],
                [a.rhs_dilation for a in self.axes],
            )
            term = em.op("multiply", ct.aval, seen, ct)
            total = em.reduce(
                [term], [em.constant(0, scalar)], list(range(x.aval.ndim - 1)), [make_aval((features,), dtype)], "add"
            )[0]
            rows.append(em.reshape(total, (1, features)))
        shape = (1, *[a.result for a in self.axes], features)
        joined = (
            rows[0]
            if len(rows) == 1
            else em.op("concatenate", make_aval((len(rows), features), dtype), *rows, attrs="dimension = 0 : i64")
        )
        return em.reshape(joined, shape)
