"""Compiled convolutions of few terms, which the CPU gets as sums of shifted products."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._base import config
from tests.platforms.test_convolution_products import LAYOUTS, check, operands
from tests.platforms.test_kernel_gradients import whole

pytestmark = pytest.mark.rewritten


@pytest.mark.parametrize("layouts", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "features, kernel, outputs, strides, pads, lhs_dilation, rhs_dilation, sums",
    [
        (1, (3, 3), 6, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), (True, True)),
        (3, (3, 2), 8, (2, 1), ((1, 0), (2, 1)), (1, 1), (1, 2), (True, True)),
        (2, (2, 3), 5, (1, 1), ((-1, 2), (3, -2)), (2, 1), (2, 1), (True, True)),
        (2, (3, 3), 8, (1, 2), ((1, 1), (0, 1)), (1, 1), (1, 1), (True, False)),  # neighbours in the features only
        (4, (3, 3), 15, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), (True, False)),  # 36 terms of 15
        (4, (3, 3), 17, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), (False, False)),
        (1, (11, 11), 1, (1, 1), ((5, 5), (4, 6)), (1, 1), (1, 1), (True, True)),
        (1, (13, 13), 1, (1, 1), ((6, 6), (6, 6)), (1, 1), (1, 1), (False, False)),
    ],
    ids=str,
)
def test_few_terms(layouts, features, kernel, outputs, strides, pads, lhs_dilation, rhs_dilation, sums):
    featured = layouts[2].index("C") == 3
    check(
        *operands((2, 36, 35, features), (*kernel, features, outputs), layouts),
        layouts,
        sums[not featured],
        strides,
        pads,
        lhs_dilation,
        rhs_dilation,
    )


@pytest.mark.parametrize(
    "size, kernel, pads, lhs_dilation, rhs_dilation",
    [
        (4200, 10, (0, 0), 1, 1),
        (5000, 100, (99, 99), 1, 1),
        (9000, 7, (3, -4), 1, 2),
        (3000, 5, (1, 2), 2, 3),
        (4105, 10, (0, 0), 1, 1),
        (1000, 12, (11, 11), 1, 1),
        (6000, 6, (2000, 1000), 1, 205),
    ],
    ids=str,
)
def test_long_vectors(size, kernel, pads, lhs_dilation, rhs_dilation):
    x, w = whole((2, 1, size), 0), whole((1, 1, kernel), 1)
    run = gradix.jit(lambda x, w: lax.conv_general_dilated(x, w, (1,), [pads], (lhs_dilation,), (rhs_dilation,)))
    spread = np.zeros((2, (size - 1) * lhs_dilation + 1), "f4")
    spread[:, ::lhs_dilation] = x[:, 0]
    spread = np.pad(spread, ((0, 0), [max(p, 0) for p in pads]))
    spread = spread[:, max(-pads[0], 0) : spread.shape[1] - max(-pads[1], 0)]
    holed = np.zeros((kernel - 1) * rhs_dilation + 1, "f4")
    holed[::rhs_dilation] = w[0, 0]
    np.testing.assert_array_equal(run(x, w)[:, 0], [np.correlate(row, holed, "valid") for row in spread])
    assert "stablehlo.convolution" not in run.lower(x, w).as_text()
    alone = run.lower(x[:1], w).as_text()  # one call of a library, or of NumPy where that pays
    assert ("gradix_host_correlate" in alone) == (kernel * len(run(x[:1], w)[0, 0]) >= 1 << 17)
    assert ("stablehlo.convolution" in alone) == ("gradix_host_correlate" not in alone)
    np.testing.assert_array_equal(run(x[:1], w), run(x, w)[:1])


@pytest.mark.parametrize("size, features, summed", [(64, 1, True), (64, 2, True), (16, 4, False), (16, 3, False)])
def test_transposed_convolutions_with_many_zeros_are_the_librarys(size, features, summed):
    x, w = whole((4, size, size, features), 0), whole((3, 3, features, features), 1)
    run = gradix.jit(lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"))
    assert ("stablehlo.convolution" not in run.lower(x, w).as_text()) == summed
    spread = np.zeros((4, 2 * size + 1, 2 * size + 1, features))
    spread[:, 1:-1:2, 1:-1:2] = x
    spread = np.pad(spread, ((0, 0), (1, 0), (1, 0), (0, 0)))
    want = sum(spread[:, i : i + 2 * size, j : j + 2 * size] @ w[i, j] for i in range(3) for j in range(3))
    np.testing.assert_array_equal(run(x, w), want)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve_and_correlate(mode):
    x, w = whole((5000,), 0), whole((50,), 1)
    np.testing.assert_array_equal(gradix.jit(lambda x, w: jnp.convolve(x, w, mode))(x, w), np.convolve(x, w, mode))
    np.testing.assert_array_equal(gradix.jit(lambda x, w: jnp.correlate(x, w, mode))(x, w), np.correlate(x, w, mode))


@pytest.mark.parametrize("size, kernel", [(20_000, 50), (70_000, 9), (3000, 2500)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_vectors_are_left_to_numpy(size, kernel, dtype):
    with gradix.enable_x64(dtype == "float64"):
        x, w = whole((size,), 0).astype(dtype), whole((kernel,), 1).astype(dtype)
        run = gradix.jit(jnp.convolve)
        assert "gradix_host_correlate" in run.lower(x, w).as_text() and run(x, w).dtype == dtype
        np.testing.assert_array_equal(run(x, w), np.convolve(x, w))
        _, pull = gradix.vjp(run, x, w)
        ct = whole((size + kernel - 1,), 2).astype(dtype)
        of_x, of_w = pull(ct)
        np.testing.assert_array_equal(of_x, np.correlate(ct, w, "valid"))
        np.testing.assert_array_equal(of_w, np.correlate(ct, x, "valid"))
        with config.Setting("gradix_host_kernels", "")(False):
            plain = gradix.jit(lambda x, w: jnp.convolve(x, w))
            assert "gradix_host" not in plain.lower(x, w).as_text()
            np.testing.assert_array_equal(plain(x, w), run(x, w))


def test_numbers_that_are_none_stay_where_they_are_met():
    x, w = whole((40_000,), 0), whole((10,), 1)
    x[7], x[39_000] = np.nan, np.inf
    found = np.asarray(gradix.jit(jnp.convolve)(x, w + 20))
    assert np.isnan(found[7:17]).all() and np.isinf(found[39_000:39_010]).all()
    assert np.isfinite(np.delete(found, [*range(7, 17), *range(39_000, 39_010)])).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float64", "bfloat16", "float16", "complex64", "bool"])
def test_dtypes(dtype):
    """Integers wrap, truths are any; what is no sum is as it was."""
    with gradix.enable_x64(dtype == "float64"):
        x, w = whole((2, 20, 21, 2), 0), whole((3, 3, 2, 5), 1)
        x, w = (jnp.asarray(v if dtype != "uint8" else abs(v)).astype(dtype) for v in (x, w))
        run = gradix.jit(
            lambda x, w: lax.conv_general_dilated(
                x * 9 if dtype == "int8" else x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        )
        found = run(x, w)
        wide = np.pad(np.asarray(x).astype("complex128"), ((0, 0), (1, 1), (1, 1), (0, 0))) * (
            9 if dtype == "int8" else 1
        )
        wanted = sum(
            wide[:, i : i + 20, j : j + 21] @ np.asarray(w).astype("complex128")[i, j]
            for i in range(3)
            for j in range(3)
        )
        assert str(found.dtype) == dtype
        exact = wanted != 0 if dtype == "bool" else wanted
        if dtype in ("int8", "uint8", "int32"):
            exact = wanted.real.astype("int64").astype(dtype)
        np.testing.assert_array_equal(np.asarray(found).astype("complex128"), exact.astype("complex128"))
        few = dtype in ("int8", "uint8", "int32", "float64", "bool")
        assert ("stablehlo.convolution" not in run.lower(x, w).as_text()) == few


@pytest.mark.x32
def test_a_nan_and_an_infinity_reach_the_places_that_meet_them():
    x = whole((2, 20, 20, 1), 0)
    x[1, 0, 0], x[0, 10, 19] = np.nan, np.inf
    got = np.asarray(
        gradix.jit(
            lambda x: lax.conv_general_dilated(
                x, jnp.ones((3, 3, 1, 4)), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        )(x)
    )
    assert np.isnan(got[1, :2, :2]).all() and np.isposinf(got[0, 9:12, 18:]).all()
    assert np.isfinite(got).sum() == got.size - 4 * 4 - 4 * 6
    line = whole((2, 1, 9000), 1)
    line[0, 0, 5000] = np.nan
    got = np.asarray(gradix.jit(lambda x: lax.conv(x, jnp.ones((1, 1, 7)), (1,), "VALID"))(line))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(got)), np.arange(4994, 5001))


def test_gradients_and_vmap():
    x, w, ct = whole((3, 2, 24, 24, 1), 0), whole((3, 3, 1, 4), 1), whole((2, 24, 24, 4), 2)

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    slopes = gradix.grad(lambda x, w: (f(x, w) * ct).sum(), (0, 1))
    with gradix.disable_jit():
        wanted = slopes(x[0], w)
    for found, exact in zip(gradix.jit(slopes)(x[0], w), wanted):
        np.testing.assert_array_equal(found, exact)
    np.testing.assert_array_equal(gradix.jit(gradix.vmap(f, (0, None)))(x, w), np.stack([f(part, w) for part in x]))
    ws = np.stack([w, 2 * w])
    np.testing.assert_array_equal(
        gradix.jit(gradix.vmap(f, (None, 0)))(x[0], ws), np.stack([f(x[0], one) for one in ws])
    )


@pytest.mark.parametrize("layouts", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "features, kernel, outputs, strides, pads, rhs_dilation, sums",
    [
        (80, (3, 3), 1, (1, 1), ((1, 1), (1, 1)), (1, 1), (False, True)),
        (15, (4, 6), 1, (1, 1), ((2, 1), (0, 3)), (1, 2), (False, True)),
        (40, (3, 3), 3, (1, 1), ((-1, 2), (3, -2)), (2, 1), (False, True)),
        (40, (3, 3), 4, (1, 1), ((1, 1), (1, 1)), (1, 1), (False, False)),
        (40, (3, 3), 3, (1, 2), ((1, 1), (1, 1)), (1, 1), (False, False)),
    ],
    ids=str,
)
def test_many_features_to_few(layouts, features, kernel, outputs, strides, pads, rhs_dilation, sums):
    featured = layouts[2].index("C") == 3
    check(
        *operands((2, 26, 25, features), (*kernel, features, outputs), layouts),
        layouts,
        sums[not featured],
        strides,
        pads,
        rhs_dilation=rhs_dilation,
    )
