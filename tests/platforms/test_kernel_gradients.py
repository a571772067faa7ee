"""Compiled convolutions with few positions of a large kernel (gradients to small ones), and of few features to few."""

import itertools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


def whole(shape, seed):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype("float32")


def convolved(x, w, strides, pads, dilation):
    """The convolution of (batch, space, features) by (space, in, out), written as sums over places."""
    x = np.pad(x, [(0, 0), *[(max(a, 0), max(b, 0)) for a, b in pads], (0, 0)])
    x = x[(slice(None), *[slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pads, x.shape[1:-1])])]
    space = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[1:-1], w.shape, strides, dilation)]
    out = np.zeros((x.shape[0], *space, w.shape[-1]), x.dtype)
    for place in itertools.product(*[range(k) for k in w.shape[:-2]]):
        seen = x[
            (
                slice(None),
                *[slice(i * d, i * d + (m - 1) * s + 1, s) for i, d, m, s in zip(place, dilation, space, strides)],
            )
        ]
        out += seen @ w[place]
    return out


LAYOUTS = {
    1: [("NWC", "WIO", "NWC"), ("NCW", "OIW", "NCW")],
    2: [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")],
    3: [("NDHWC", "DHWIO", "NDHWC")],
}
CASES = [  # batch, space, features, kernel, strides, padding, dilation
    (2, (20, 18), (16, 24), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    (3, (20, 21), (17, 16), (3, 2), (2, 1), ((1, 0), (0, 2)), (1, 1)),
    (1, (30, 19), (16, 16), (2, 3), (1, 2), ((0, 0), (1, 1)), (2, 1)),
    (2, (25, 24), (16, 20), (5, 5), (1, 1), ((-1, 2), (3, -2)), (1, 1)),
    (2, (300,), (16, 16), (4,), (3,), ((2, 1),), (1,)),
    (2, (9, 10, 8), (16, 18), (2, 3, 2), (1, 1, 1), ((1, 0), (1, 1), (0, 0)), (1, 1, 1)),
    (4, (20, 20), (3, 16), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),  # 1600 positions
    (9, (20, 20), (1, 5), (5, 4), (2, 1), ((2, 2), (1, 2)), (1, 2)),
    (3, (20, 20), (13, 3), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    (0, (20, 18), (16, 24), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_convolution_and_its_gradients(case):
    batch, space, (inputs, outputs), kernel, strides, pads, dilation = case
    x, w = whole((batch, *space, inputs), 0), whole((*kernel, inputs, outputs), 1)
    y = convolved(x, w, strides, pads, dilation)
    ct = whole(y.shape, 2)
    slope_w = np.zeros_like(w)  # each element of the kernel on its own
    slope_x = np.zeros_like(x)
    padded = np.pad(x, [(0, 0), *[(max(a, 0), max(b, 0)) for a, b in pads], (0, 0)])
    back = np.zeros_like(padded)
    cut = [max(-a, 0) for a, _ in pads]
    for place in itertools.product(*[range(k) for k in kernel]):
        where = (
            slice(None),
            *[
                slice(c + i * d, c + i * d + (m - 1) * s + 1, s)
                for c, i, d, m, s in zip(cut, place, dilation, y.shape[1:-1], strides)
            ],
        )
        slope_w[place] = np.tensordot(padded[where], ct, (range(len(space) + 1),) * 2)
        back[where] += ct @ w[place].T
    slope_x[...] = back[(slice(None), *[slice(max(a, 0), max(a, 0) + n) for (a, _), n in zip(pads, space)])]
    for layout in LAYOUTS[len(space)]:

        def put(v, spec, own):
            return np.transpose(v, [own.index(a) for a in spec])

        owns = [LAYOUTS[len(space)][0][i] for i in range(3)]

        def f(x, w):
            return lax.conv_general_dilated(x, w, strides, pads, rhs_dilation=dilation, dimension_numbers=layout)

        xs, ws, cs = (put(v, spec, own) for v, spec, own in zip((x, w, ct), layout, owns))
        np.testing.assert_array_equal(np.asarray(gradix.jit(f)(xs, ws)), put(y, layout[2], owns[2]))
        got = gradix.jit(lambda x, w, c: gradix.vjp(f, x, w)[1](c))(xs, ws, cs)
        np.testing.assert_array_equal(np.asarray(got[0]), put(slope_x, layout[0], owns[0]))
        np.testing.assert_array_equal(np.asarray(got[1]), put(slope_w, layout[1], owns[1]))


@pytest.mark.x32
def test_a_nan_and_an_infinity_reach_the_places_that_meet_them():
    x, ct = whole((2, 20, 20, 16), 0), np.ones((2, 20, 20, 16), "float32")
    x[1, 0, 0, 3], x[0, 19, 10, 5] = np.nan, np.inf

    def slope(x, ct):
        w = jnp.zeros((3, 3, 16, 16))
        f = lambda w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))  # noqa: E731
        return gradix.vjp(f, w)[1](ct)[0]

    got = np.asarray(gradix.jit(slope)(x, ct))
    assert np.isnan(got[:2, :2, 3]).all() and np.isposinf(got[1:, :, 5]).all()
    assert np.isfinite(np.delete(got, [3, 5], 2)).all()
    assert np.isfinite(got[2, :, 3]).all() and np.isfinite(got[:, 2, 3]).all() and np.isfinite(got[0, :, 5]).all()


def test_gradients_to_kernels_under_vmap_and_to_second_order():
    x, w, ct = whole((3, 2, 12, 12, 16), 0), whole((3, 3, 16, 16), 1), whole((2, 12, 12, 16), 2)

    def loss(w, x):
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return (y * ct).sum()

    one = gradix.jit(gradix.grad(loss))
    stacked = np.stack([np.asarray(one(w, part)) for part in x])
    np.testing.assert_array_equal(np.asarray(gradix.jit(gradix.vmap(gradix.grad(loss), (None, 0)))(w, x)), stacked)
    moved = gradix.jit(lambda w, x: gradix.jvp(lambda x: gradix.grad(loss)(w, x), (x,), (x,))[1])(w, x[0])
    np.testing.assert_array_equal(np.asarray(moved), stacked[0])  # linear in x
