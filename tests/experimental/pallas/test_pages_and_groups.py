"""Attention over pages and products in groups, against plain functions; names that are refused."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.pallas import fuser
from gradix.experimental.pallas.ops.gpu import paged_attention as gpu_pages
from gradix.experimental.pallas.ops.tpu import megablox, ragged_paged_attention
from gradix.experimental.pallas.ops.tpu.paged_attention import paged_attention

pytestmark = pytest.mark.x32
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def test_attention_over_pages_and_its_gradient():
    batch, heads, groups, size, page, count = 2, 4, 2, 8, 4, 3
    q, k, v = normal(batch, heads, size), normal(groups, 10, page, size), normal(groups, 10, page, 5)
    lengths = np.array([6, 12], np.int32)
    where = np.array([[7, 4, 0], [1, 2, 9]], np.int32)

    def plain(q, k, v, cap=None):
        keys, values = (x[:, where].reshape(groups, batch, count * page, -1) for x in (k, v))
        s = jnp.einsum("bgrd,gbkd->bgrk", q.reshape(batch, groups, -1, size), keys)
        s = s if cap is None else cap * jnp.tanh(s / cap)
        p = gradix.nn.softmax(jnp.where(np.arange(count * page) < lengths[:, None, None, None], s, -jnp.inf))
        return jnp.einsum("bgrk,gbkd->bgrd", p, values).reshape(batch, heads, -1)

    def kernel(q, k, v, **kw):
        return paged_attention(q, k, v, lengths, where, pages_per_compute_block=1, **kw)

    np.testing.assert_allclose(kernel(q, k, v), plain(q, k, v), rtol=1e-4, atol=1e-5)
    got = kernel(q, k, v, attn_logits_soft_cap=0.7)
    np.testing.assert_allclose(got, plain(q, k, v, 0.7), rtol=1e-4, atol=1e-5)
    slopes = [gradix.jit(gradix.grad(lambda *t, f=f: (f(*t) ** 2).sum(), (0, 1, 2)))(q, k, v) for f in (kernel, plain)]
    for a, b in zip(*slopes):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match=r"lengths of shape \(1,\)"):
        paged_attention(q, k, v, lengths[:1], where)


def test_products_in_groups():
    sizes, x, w = np.array([2, 0, 3, 1], np.int32), normal(7, 4), normal(4, 4, 3)
    group = np.repeat(np.arange(4), sizes)
    want = np.concatenate([np.einsum("mk,mkn->mn", x[:6], w[group]), np.zeros((1, 3))])
    np.testing.assert_allclose(megablox.gmm(x, w, sizes), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(megablox.gmm(x, w.swapaxes(1, 2), sizes, transpose_rhs=True), want, rtol=1e-5, atol=1e-5)
    slope = gradix.grad(lambda w: (megablox.gmm(x, w, sizes) ** 2).sum())(w)
    each = np.stack([2 * x[:6][group == g].T @ want[:6][group == g] for g in range(4)])
    np.testing.assert_allclose(slope, each, rtol=1e-4, atol=1e-4)
    got = megablox.tgmm(np.ascontiguousarray(x.T), 2 * want.astype(np.float32), sizes)
    np.testing.assert_allclose(got, each, rtol=1e-4, atol=1e-4)


def test_some_of_the_groups_and_rows_that_stay():
    sizes, x, w, old = np.array([2, 1, 3, 1], np.int32), normal(7, 4), normal(2, 4, 3), normal(7, 3)
    got = gradix.jit(megablox.gmm)(x, w, sizes, group_offset=np.array([1], np.int32), existing_out=old)
    want = np.concatenate([old[:2], x[2:3] @ w[0], x[3:6] @ w[1], old[6:]])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "use, way_out",
    [
        (lambda: fuser.fuse(lambda x: x), "XLA fuses"),
        (lambda: ragged_paged_attention.ragged_paged_attention(1), "paged_attention for one query"),
        (lambda: gpu_pages.paged_attention(1), "runs on any platform"),
    ],
)
def test_what_is_refused_tells_the_way_out(use, way_out):
    with pytest.raises(NotImplementedError, match=way_out):
        use()
