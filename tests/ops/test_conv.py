"""Convolution against plain loops, its adjoints and its batching, over random shapes and parameters."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import gradix
from gradix import lax, numpy as jnp

LAYOUTS = {
    0: [("NC", "OI", "NC"), ("CN", "IO", "NC")],
    1: [("NCW", "OIW", "NCW"), ("WNC", "WIO", "CNW")],
    2: [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("HCNW", "OWHI", "NWCH")],
}


def by_loops(x, w, strides, pads, lhs_dilation, rhs_dilation, layouts, feature_groups, batch_groups):
    """The definition, one result element at a time."""
    numbers = lax.conv_dimension_numbers(x.shape, w.shape, layouts)
    x, w = x.transpose(numbers.lhs_spec), w.transpose(numbers.rhs_spec)
    spread = [(n - 1) * d + 1 for n, d in zip(x.shape[2:], lhs_dilation)]
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], rhs_dilation)]
    places = [max((n + sum(p) - r) // s + 1, 0) for n, p, r, s in zip(spread, pads, reach, strides)]
    batch, out, inner = x.shape[0] // batch_groups, w.shape[0], w.shape[1]
    y = np.zeros((batch, out, *places))
    for n, o, *at in itertools.product(*map(range, y.shape)):
        group, row = o // (out // feature_groups), n + batch * (o // (out // batch_groups))
        group = group if feature_groups > 1 else 0
        for k in itertools.product(*map(range, w.shape[2:])):
            where = [p * s + j * d - low for p, s, j, d, (low, _) in zip(at, strides, k, rhs_dilation, pads)]
            if all(0 <= v < n and v % d == 0 for v, n, d in zip(where, spread, lhs_dilation)):
                inside = [v // d for v, d in zip(where, lhs_dilation)]
                seen = x[(row, slice(group * inner, (group + 1) * inner), *inside)]
                y[(n, o, *at)] += seen @ w[(o, slice(None), *k)]
    return y.transpose(np.argsort(numbers.out_spec))


def a_case(seed):
    """Random operands and parameters."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 3))
    layouts = LAYOUTS[n][rng.integers(len(LAYOUTS[n]))]
    features, batches = [(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 3)][rng.integers(6)]
    inner = int(rng.integers(1, 3))
    sizes = {
        "N": batches * int(rng.integers(1, 3)),
        "C": inner * features,
        "O": features * batches * int(rng.integers(1, 3)),
        "I": inner,
    }
    space = [c for c in layouts[1] if c not in "OI"]
    lhs = sizes | {c: int(rng.integers(3, 6)) for c in space}
    rhs = sizes | {c: int(rng.integers(1, 4)) for c in space}
    x, w = [rng.integers(-3, 4, [d[c] for c in layout]).astype(float) for d, layout in zip((lhs, rhs), layouts)]
    strides, spread, reach = [tuple(rng.integers(1, m, n).tolist()) for m in (4, 3, 3)]
    pads = tuple([tuple(p) for p in rng.integers(-1, 3, (n, 2)).tolist()])
    return x, w, (strides, pads, spread, reach, layouts, features, batches)


@pytest.mark.parametrize("seed", range(40))
def test_is_the_definition(seed):
    x, w, params = a_case(seed)
    with gradix.enable_x64():
        want = by_loops(x, w, *params)
        for f in (lax.conv_general_dilated, gradix.jit(lax.conv_general_dilated, static_argnums=tuple(range(2, 9)))):
            np.testing.assert_array_equal(f(x, w, *params), want)


@pytest.mark.parametrize("seed", range(40))
def test_adjoints(seed):
    x, w, params = a_case(seed)
    rng = np.random.default_rng(seed)
    with gradix.enable_x64():
        y, back = gradix.vjp(lambda x, w: lax.conv_general_dilated(x, w, *params), x, w)
        ct, tx, tw = [rng.integers(-3, 4, v.shape).astype(float) for v in (y, x, w)]
        for t, adjoint, moved in zip(
            (tx, tw), back(ct), (lax.conv_general_dilated(tx, w, *params), lax.conv_general_dilated(x, tw, *params))
        ):
            assert np.sum(np.asarray(moved) * ct) == np.sum(t * np.asarray(adjoint))


@pytest.mark.parametrize("seed", range(40))
def test_vmap_is_the_loop(seed):
    x, w, params = a_case(seed)
    rng = np.random.default_rng(seed)
    a, b = [[(0, None), (None, 0), (0, 0)], [(1, None), (None, x.ndim), (x.ndim, 1)]][seed % 2][seed % 3]
    if a is not None:
        x = np.stack([x, rng.integers(-3, 4, x.shape)], a)
    if b is not None:
        w = np.stack([w, rng.integers(-3, 4, w.shape)], b)
    with gradix.enable_x64():
        got = gradix.vmap(lambda x, w: lax.conv_general_dilated(x, w, *params), in_axes=(a, b))(x, w)
        rows = [[v if i is None else np.take(v, k, i) for v, i in ((x, a), (w, b))] for k in range(2)]
        np.testing.assert_array_equal(got, np.stack([by_loops(*row, *params) for row in rows]))


@pytest.mark.parametrize(
    "dtype, preferred",
    [
        ("float16", None),
        (ml_dtypes.bfloat16, "float32"),
        ("int8", "int32"),
        ("bool", None),
        ("complex64", None),
        ("uint8", None),
    ],
)
def test_dtypes(dtype, preferred):
    rng = np.random.default_rng(0)
    x, w = [rng.integers(0, 3, s).astype(dtype) for s in ((2, 3, 6), (4, 3, 2))]

    def f(x, w):
        return lax.conv_general_dilated(x, w, (1,), "VALID", preferred_element_type=preferred)

    want = by_loops(x.real.astype(np.int64), w.real.astype(np.int64), (1,), ((0, 0),), (1,), (1,), None, 1, 1)
    for got in (f(x, w), gradix.jit(f)(x, w)):
        assert got.dtype == np.dtype(preferred or dtype)
        np.testing.assert_array_equal(np.asarray(got), want.astype(got.dtype))


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID"])
def test_padding_by_name(padding):
    x, w = np.ones((1, 1, 7)), np.ones((1, 1, 3))
    pads = lax.padtype_to_pads((7,), (5,), (2,), padding)
    np.testing.assert_array_equal(
        lax.conv_general_dilated(x, w, (2,), padding, rhs_dilation=(2,)),
        lax.conv_general_dilated(x, w, (2,), pads, rhs_dilation=(2,)),
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv_transpose_is_the_adjoint(padding):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 8, 3)), rng.normal(size=(3, 3, 4))
    with gradix.enable_x64():
        layouts = "NHC", "HIO", "NHC"
        y, back = gradix.vjp(lambda x: lax.conv_general_dilated(x, w, (2,), padding, dimension_numbers=layouts), x)
        ct = rng.normal(size=y.shape)
        got = np.asarray(lax.conv_transpose(ct, w, (2,), padding, transpose_kernel=True))
        adjoint = np.asarray(back(ct)[0])
        start = 0 if padding == "VALID" else (got.shape[1] - adjoint.shape[1]) // 2
        n = min(got.shape[1] - start, adjoint.shape[1])
        np.testing.assert_allclose(got[:, start : start + n], adjoint[:, :n], atol=1e-12)


def test_patches_and_local_kernels():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 6, 5)).astype(np.float32)
    patches = np.asarray(lax.conv_general_dilated_patches(x, (3, 2), (1, 1), "VALID"))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (2, 3))
    np.testing.assert_array_equal(patches, windows.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, 4, 4))
    w = rng.normal(size=(7, 18, 4, 4)).astype(np.float32)
    got = lax.conv_general_dilated_local(x, w, (1, 1), "VALID", (3, 2))
    np.testing.assert_allclose(got, np.einsum("nihw,oihw->nohw", patches, w), rtol=1e-4, atol=1e-5)


def test_shapes():
    layouts = ("NHWC", "HWIO", "NHWC")
    assert lax.conv_general_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (1, 1), "SAME", layouts) == (2, 8, 8, 4)
    assert lax.conv_transpose_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (2, 2), "SAME", layouts) == (2, 16, 16, 4)
    assert lax.conv_shape_tuple((2, 3, 8, 8), (4, 3, 3, 3), (1, 1), ((0, 0), (0, 0))) == (2, 4, 6, 6)


X, W = np.ones((2, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)


@pytest.mark.parametrize(
    "params, error, words",
    [
        ({"window_strides": (1,)}, ValueError, "same number of dimensions"),
        ({"window_strides": (0, 1)}, ValueError, "positive"),
        ({"padding": "ALL"}, RuntimeError, "padding type"),
        ({"padding": [(1, 1)]}, TypeError, "expected 2, got 1"),
        ({"padding": 1}, ValueError, "string or a sequence"),
        ({"lhs_dilation": (2, 2)}, ValueError, "conv_transpose"),
        ({"feature_group_count": 2}, ValueError, "2 does not divide 3"),
        ({"batch_group_count": 3}, ValueError, "divide 2"),
        ({"feature_group_count": 0}, ValueError, "positive integer"),
        ({"rhs": W[0]}, TypeError, "4 and 3"),
        ({"rhs": W[:, :2]}, ValueError, "3 // 1 != 2"),
        ({"rhs": W.astype(np.float16)}, TypeError, "float32, float16"),
        ({"dimension_numbers": ("NHWC", "HWIO")}, TypeError, "length 3"),
        ({"dimension_numbers": ("NHWX", "HWIO", "NHWC")}, TypeError, "exactly once"),
        ({"dimension_numbers": ("NHWC", "XWIO", "NHWC")}, TypeError, "spatial characters"),
        ({"padding": [(0, 0), (-9, -9)]}, ValueError, "negative padding"),
        ({"preferred_element_type": np.float16}, TypeError, "narrower"),
    ],
)
def test_errors(params, error, words):
    with pytest.raises(error, match=words):
        lax.conv_general_dilated(**{"lhs": X, "rhs": W, "window_strides": (1, 1), "padding": "SAME", **params})


@pytest.mark.parametrize(
    "dtype, wanted, words",
    [
        ("float32", "int32", "incompatible"),
        ("float32", "complex64", "incompatible"),
        ("int8", "bool", "incompatible"),
        ("int8", "complex64", "incompatible"),
        ("int8", "uint8", "signedness"),
        ("float32", "float16", "narrower"),
    ],
)
def test_results_of_other_kinds_are_refused(dtype, wanted, words):
    x = jnp.ones((1, 2, 3), dtype)
    with pytest.raises(TypeError, match=words):
        lax.conv_general_dilated(x, x, (1,), "SAME", preferred_element_type=wanted)


def test_half_precision_of_another_kind_is_rounded_twice():
    x = jnp.array([[[1.6, 2.7], [-3.4, 100.0]]]).astype("bfloat16")
    convolve = lambda x: lax.conv_general_dilated(x, x[0][:, :, None], (1,), "SAME", preferred_element_type="float16")  # noqa: E731
    for found in (convolve(x), gradix.jit(convolve)(x)):
        np.testing.assert_array_equal(found, convolve(x).astype("bfloat16").astype("float16"))


def test_padding_of_numpy_sizes_is_of_python_integers():
    for padding in ("SAME", "SAME_LOWER", "VALID"):
        pads = lax.padtype_to_pads(np.array([8, 8]), np.array([3, 3]), np.array([2, 2]), padding)
        assert pads == lax.padtype_to_pads((8, 8), (3, 3), (2, 2), padding)
        assert {type(n) for pair in pads for n in pair} == {int}
