"""The convolutions that the CPU gets as products: of kernels of one place or as large as the input, and of features in groups."""

import itertools

import numpy as np
import pytest

import gradix
from gradix import lax
from tests.ops.test_conv import by_loops

pytestmark = pytest.mark.rewritten

LAYOUTS = [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("HCNW", "OHWI", "NWCH")]


def operands(x_shape, w_shape, layouts, seed=0):
    """Small whole numbers, so that sums in any order are exact; shapes are given as NHWC and HWIO."""
    rng = np.random.default_rng(seed)
    x, w = (rng.integers(-4, 5, shape).astype("float32") for shape in (x_shape, w_shape))
    return x.transpose(["NHWC".index(c) for c in layouts[0]]), w.transpose(["HWIO".index(c) for c in layouts[1]])


def check(
    x,
    w,
    layouts,
    direct,
    strides=(1, 1),
    pads=((0, 0), (0, 0)),
    lhs_dilation=(1, 1),
    rhs_dilation=(1, 1),
    feature_groups=1,
    batch_groups=1,
):
    """That the compiled convolution is the definition's, and whether XLA's convolution is in it."""

    def run(x, w):
        return lax.conv_general_dilated(
            x, w, strides, pads, lhs_dilation, rhs_dilation, layouts, feature_groups, batch_groups
        )

    lowered = gradix.jit(run).lower(x, w)
    np.testing.assert_array_equal(
        lowered.compile()(x, w),
        by_loops(x, w, strides, pads, lhs_dilation, rhs_dilation, layouts, feature_groups, batch_groups),
    )
    assert ("stablehlo.convolution" not in lowered.as_text()) == direct


@pytest.mark.parametrize("layouts", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "strides, pads, lhs_dilation, direct",
    [
        ((1, 1), ((0, 0), (0, 0)), (1, 1), True),
        ((2, 3), ((0, 0), (-1, -2)), (1, 1), True),
        ((1, 1), ((1, 2), (0, 0)), (1, 1), True),
        ((1, 1), ((-1, 0), (2, -3)), (2, 3), True),
        ((2, 1), ((0, 0), (1, 0)), (1, 2), True),
        ((2, 2), ((1, 1), (0, 0)), (1, 1), False),
        ((2, 1), ((0, 0), (0, 0)), (2, 1), False),
    ],
    ids=str,
)
def test_kernels_of_one_place(layouts, strides, pads, lhs_dilation, direct):
    check(*operands((2, 7, 8, 3), (1, 1, 3, 4), layouts), layouts, direct, strides, pads, lhs_dilation)


@pytest.mark.parametrize("layouts", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "size, kernel, pads, rhs_dilation, direct",
    [
        ((5, 6), (5, 6), ((0, 0), (0, 0)), (1, 1), True),
        ((5, 6), (5, 1), ((0, 0), (0, 0)), (1, 1), True),
        ((6, 5), (3, 3), ((0, -1), (0, 0)), (2, 2), True),
        ((6, 6), (5, 4), ((0, -1), (-1, -1)), (1, 1), True),
        ((6, 6), (5, 7), ((0, -1), (1, 0)), (1, 1), False),
        ((6, 6), (5, 5), ((0, 0), (0, 0)), (1, 1), False),
    ],
    ids=str,
)
def test_kernels_as_large_as_the_input(layouts, size, kernel, pads, rhs_dilation, direct):
    check(*operands((2, *size, 3), (*kernel, 3, 4), layouts), layouts, direct, pads=pads, rhs_dilation=rhs_dilation)


@pytest.mark.parametrize("layouts", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "strides, pads, lhs_dilation, rhs_dilation",
    [
        ((1, 1), ((1, 1), (0, 2)), (1, 1), (1, 1)),
        ((2, 3), ((1, -1), (0, 0)), (1, 1), (2, 1)),
        ((1, 2), ((2, 2), (1, 1)), (2, 1), (1, 2)),
    ],
    ids=str,
)
def test_features_on_their_own(layouts, strides, pads, lhs_dilation, rhs_dilation):
    check(
        *operands((2, 6, 7, 5), (3, 2, 1, 5), layouts),
        layouts,
        True,
        strides,
        pads,
        lhs_dilation,
        rhs_dilation,
        feature_groups=5,
    )


@pytest.mark.parametrize("layouts", LAYOUTS, ids=str)
@pytest.mark.parametrize("batch, features, groups, direct", [(4, 4, 4, True), (4, 8, 4, False), (6, 6, 3, False)])
def test_batches_in_groups(layouts, batch, features, groups, direct):
    for pads, rhs_dilation in itertools.product((((1, 1), (0, 1)), ((0, 0), (-1, 0))), ((1, 1), (2, 1))):
        check(
            *operands((batch, 6, 6, 3), (3, 4, 3, features), layouts),
            layouts,
            direct,
            pads=pads,
            rhs_dilation=rhs_dilation,
            batch_groups=groups,
        )


@pytest.mark.parametrize(
    "kernel, groups, strides",
    [
        ((1, 1, 4, 6), 1, (1, 1)),
        ((1, 1, 4, 6), 1, (2, 2)),
        ((3, 3, 1, 4), 4, (1, 1)),
        ((3, 3, 1, 4), 4, (2, 2)),
        ((3, 3, 2, 6), 2, (1, 1)),
    ],
    ids=str,
)
def test_gradients_compiled_and_on_the_host(kernel, groups, strides):
    x, w = operands((2, 8, 8, 4), kernel, LAYOUTS[0])

    def loss(x, w):
        y = lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=LAYOUTS[0], feature_group_count=groups)
        return (y * y).sum()

    slopes = gradix.grad(loss, (0, 1))
    for found, wanted in zip(gradix.jit(slopes)(x, w), slopes(x, w)):
        np.testing.assert_array_equal(found, wanted)


def test_no_batched_groups_are_left_to_xla():
    x, w = operands((2, 8, 8, 4), (3, 3, 2, 6), LAYOUTS[0])
    slope = gradix.grad(
        lambda w: lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=LAYOUTS[0], feature_group_count=2
        ).sum()
    )
    assert "batch_group_count = 2" not in gradix.jit(slope).lower(w).as_text()


def test_one_axis_and_three():
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-4, 5, s).astype("float32") for s in ((2, 4, 9), (4, 1, 5)))
    found = gradix.jit(lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", feature_group_count=4))(x, w)
    np.testing.assert_array_equal(found, [[np.correlate(row, k[0], "same") for row, k in zip(rows, w)] for rows in x])
    x, w = (rng.integers(-4, 5, s).astype("float32") for s in ((2, 4, 3, 4, 5), (6, 4, 1, 1, 1)))
    found = gradix.jit(lambda x, w: lax.conv(x, w, (1, 1, 1), "VALID"))(x, w)
    np.testing.assert_array_equal(found, np.einsum("nchwd,oc->nohwd", x, w[:, :, 0, 0, 0]))


@pytest.mark.parametrize("dtype", ["bfloat16", "int32", "complex64"])
def test_other_dtypes(dtype):
    x, w = operands((2, 5, 5, 4), (3, 3, 1, 4), LAYOUTS[0])
    found = gradix.jit(
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "VALID", dimension_numbers=LAYOUTS[0], feature_group_count=4
        )
    )(x.astype(dtype), w.astype(dtype))
    wanted = by_loops(x, w, (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), LAYOUTS[0], 4, 1)
    assert str(found.dtype) == dtype
    np.testing.assert_allclose(np.asarray(found).astype("complex64"), wanted, rtol=2**-8)
