"""Kernels as users write them, against plain functions: a norm and its gradient, segments, a stencil, ranks, int8."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import tpu as pltpu

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


# -- layer norm, with a kernel for its gradient ----------------------------------------------------


def norm_kernel(x, gain, shift, o, mean, scale):
    mu = x[...].mean(-1, keepdims=True)
    rstd = lax.rsqrt(jnp.square(x[...] - mu).mean(-1, keepdims=True) + 1e-5)
    o[...] = (x[...] - mu) * rstd * gain[...] + shift[...]
    mean[...], scale[...] = mu[:, 0], rstd[:, 0]


def norm_gradient_kernel(x, gain, mean, scale, g, dx, dgain, dshift):
    @pl.when(pl.program_id(0) == 0)
    def _():
        dgain[...] = jnp.zeros_like(dgain)
        dshift[...] = jnp.zeros_like(dshift)

    y = (x[...] - mean[...][:, None]) * scale[...][:, None]
    dgain[...] += (g[...] * y).sum(0)
    dshift[...] += g[...].sum(0)
    dy = g[...] * gain[...]
    along = (dy * y).mean(-1, keepdims=True)
    dx[...] = (dy - dy.mean(-1, keepdims=True) - y * along) * scale[...][:, None]


@gradix.custom_vjp
def norm(x, gain, shift):
    return norm_forward(x, gain, shift)[0]


def norm_forward(x, gain, shift, b=4):
    n, d = x.shape
    rows, row, one = (
        pl.BlockSpec((b, d), lambda i: (i, 0)),
        pl.BlockSpec((d,), lambda i: 0),
        pl.BlockSpec((b,), lambda i: i),
    )
    o, mean, scale = pl.pallas_call(
        norm_kernel,
        [S.like(x), S((n,), x.dtype), S((n,), x.dtype)],
        grid=pl.cdiv(n, b),
        in_specs=[rows, row, row],
        out_specs=[rows, one, one],
    )(x, gain, shift)
    return o, (x, gain, mean, scale)


def norm_backward(kept, g, b=4):
    x, gain, mean, scale = kept
    n, d = x.shape
    rows, row, one = (
        pl.BlockSpec((b, d), lambda i: (i, 0)),
        pl.BlockSpec((d,), lambda i: 0),
        pl.BlockSpec((b,), lambda i: i),
    )
    return tuple(
        pl.pallas_call(
            norm_gradient_kernel,
            [S.like(x), S.like(gain), S.like(gain)],
            grid=n // b,
            in_specs=[rows, row, one, one, rows],
            out_specs=[rows, row, row],
        )(x, gain, mean, scale, g)
    )


norm.defvjp(norm_forward, norm_backward)


def plain_norm(x, gain, shift):
    y = x - x.mean(-1, keepdims=True)
    return y * lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + 1e-5) * gain + shift


def test_layer_norm_and_its_gradient():
    args = normal(12, 16), normal(16), normal(16)
    np.testing.assert_allclose(norm(*args), plain_norm(*args), rtol=1e-5, atol=1e-5)

    def slope(f):
        return gradix.jit(gradix.grad(lambda *a: (f(*a) ** 3).sum(), (0, 1, 2)))(*args)

    derived = slope(lambda *a: norm_forward(*a)[0])  # the derivative of the forward kernel
    for own, other, want in zip(slope(norm), derived, slope(plain_norm)):
        np.testing.assert_allclose(own, want, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(other, want, rtol=1e-4, atol=1e-4)


# -- sums of segments, whose block of the result a prefetched number chooses ------------------------


def segment_kernel(ids, x, o):
    i = pl.program_id(0)

    @pl.when((i == 0) | (ids[i] != ids[jnp.maximum(i - 1, 0)]))
    def _():
        o[...] = jnp.zeros_like(o)

    o[...] += x[...]


def segment_sum(x, ids, n):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=x.shape[:1],
        in_specs=[pl.BlockSpec((None, x.shape[1]), lambda i, ids: (i, 0))],
        out_specs=pl.BlockSpec((None, x.shape[1]), lambda i, ids: (ids[i], 0)),
    )
    return pl.pallas_call(segment_kernel, S((n, x.shape[1]), x.dtype), grid_spec=spec)(ids, x)


def test_sums_of_sorted_segments():
    x, ids = normal(9, 3), np.array([0, 0, 1, 1, 1, 3, 4, 4, 4], np.int32)
    want = gradix.ops.segment_sum(x, ids, 5)
    filled = np.array([0, 1, 3, 4])
    for f in (segment_sum, gradix.jit(segment_sum, static_argnums=2)):
        np.testing.assert_allclose(f(x, ids, 5)[filled], want[filled], rtol=1e-6)
    g = gradix.grad(lambda x: (segment_sum(x, ids, 5)[filled] ** 2).sum())(x)
    np.testing.assert_allclose(g, 2 * want[ids], rtol=1e-6)
    many = np.stack([ids, np.sort(ids // 2)])
    batched = gradix.vmap(lambda i: segment_sum(x, i, 5))(many)
    np.testing.assert_allclose(batched[1, :3], gradix.ops.segment_sum(x, many[1], 5)[:3], rtol=1e-6)


# -- a stencil in two dimensions: blocks that overlap, with padding --------------------------------


def stencil_kernel(x, o):
    i, j = pl.program_id(0) * o.shape[0], pl.program_id(1) * o.shape[1]
    n, m = pl.num_programs(0) * o.shape[0], pl.num_programs(1) * o.shape[1]
    r = i - 1 + lax.broadcasted_iota(jnp.int32, x.shape, 0)
    c = j - 1 + lax.broadcasted_iota(jnp.int32, x.shape, 1)
    a = jnp.where((r >= 0) & (r < n) & (c >= 0) & (c < m), x[...], 0)
    o[...] = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]


def stencil(x, b=4):
    halo = pl.BlockSpec((pl.Element(b + 2, (1, 1)),) * 2, lambda i, j: (i * b, j * b))
    own = pl.BlockSpec((b, b), lambda i, j: (i, j))
    grid = x.shape[0] // b, x.shape[1] // b
    return pl.pallas_call(stencil_kernel, S.like(x), grid=grid, in_specs=[halo], out_specs=own)(x)


def plain_stencil(x):
    a = jnp.pad(x, 1)
    return a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * x


def test_a_stencil_over_overlapping_blocks():
    x = normal(8, 12)
    np.testing.assert_allclose(stencil(x), plain_stencil(x), rtol=1e-5, atol=1e-5)
    slopes = [gradix.grad(lambda x, f=f: (f(x) ** 2).sum())(x) for f in (stencil, plain_stencil)]
    np.testing.assert_allclose(*slopes, rtol=1e-4, atol=1e-4)
    steps = [lax.fori_loop(0, 5, lambda _, x, f=f: x + 0.1 * f(x), x) for f in (stencil, plain_stencil)]
    np.testing.assert_allclose(*steps, rtol=1e-4, atol=1e-4)


# -- the largest of each row -----------------------------------------------------------------------


def top_kernel(x, values, places):
    def turn(i, left):
        at = left.argmax(-1)
        is_it = lax.broadcasted_iota(jnp.int32, left.shape, 1) == at[:, None]
        values[:, i] = left.max(-1)
        places[:, i] = at
        return jnp.where(is_it, -jnp.inf, left)

    lax.fori_loop(0, values.shape[1], turn, x[...])


def top(x, k, b=2):
    rows, kept = pl.BlockSpec((b, x.shape[1]), lambda i: (i, 0)), pl.BlockSpec((b, k), lambda i: (i, 0))
    out = S((x.shape[0], k), x.dtype), S((x.shape[0], k), jnp.int32)
    return pl.pallas_call(top_kernel, out, grid=pl.cdiv(x.shape[0], b), in_specs=[rows], out_specs=(kept, kept))(x)


def test_the_largest_of_each_row():
    x = normal(7, 10)  # the last block reaches beyond the end
    for f in (top, gradix.jit(top, static_argnums=1)):
        for found, want in zip(f(x, 3), lax.top_k(x, 3)):
            np.testing.assert_array_equal(found, want)
    weights = np.arange(1.0, 4.0, dtype=np.float32)
    slopes = [gradix.grad(lambda x, f=f: (f(x, 3)[0] * weights).sum())(x) for f in (top, lax.top_k)]
    np.testing.assert_array_equal(*slopes)


# -- a product in 8 bits, with a scale for each row and column -------------------------------------


def int8_kernel(x, y, x_scale, y_scale, o, acc):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc[...] = jnp.zeros_like(acc)

    acc[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.int32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o[...] = acc[...].astype(o.dtype) * x_scale[...] * y_scale[...]


def int8_product(x, y, x_scale, y_scale, b=8):
    (n, k), m = x.shape, y.shape[1]
    return pl.pallas_call(
        int8_kernel,
        S((n, m), x_scale.dtype),
        grid=(n // b, m // b, k // b),
        in_specs=[
            pl.BlockSpec((b, b), lambda i, j, k: (i, k)),
            pl.BlockSpec((b, b), lambda i, j, k: (k, j)),
            pl.BlockSpec((b, 1), lambda i, j, k: (i, 0)),
            pl.BlockSpec((1, b), lambda i, j, k: (0, j)),
        ],
        out_specs=pl.BlockSpec((b, b), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((b, b), jnp.int32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y, x_scale, y_scale)


def quantized(x, axis):
    scale = np.abs(x).max(axis, keepdims=True) / 127
    return np.round(x / scale).astype(np.int8), scale


def test_a_product_in_8_bits():
    a, b = normal(16, 32), normal(32, 24)
    (x, xs), (y, ys) = quantized(a, 1), quantized(b, 0)
    want = (x.astype(np.int32) @ y.astype(np.int32)) * xs * ys
    np.testing.assert_allclose(int8_product(x, y, xs, ys), want, rtol=1e-5)
    np.testing.assert_allclose(want, a @ b, atol=0.2)

    def loss(xs, ys):
        return (int8_product(x, y, xs, ys) ** 2).sum()

    dx, dy = gradix.jit(gradix.grad(loss, (0, 1)))(xs, ys)
    np.testing.assert_allclose(dx, (2 * want**2 / xs).sum(1, keepdims=True), rtol=1e-4)
    np.testing.assert_allclose(dy, (2 * want**2 / ys).sum(0, keepdims=True), rtol=1e-4)
