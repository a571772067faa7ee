"""Attention over pages and products in groups, against plain functions; names that are refused."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
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


@pytest.mark.parametrize("scaled", [(), (0,), (0, 1)], ids=["plain", "keys", "both"])
def test_attention_over_pages_of_a_gpu_with_factors_of_keys_and_values(scaled):
    batch, heads, groups, size, page, count = 3, 4, 2, 8, 4, 3
    q, pages = normal(batch, heads, size), [normal(groups, 9, page, size) for _ in range(2)]
    where, lengths = RNG.permutation(9).reshape(batch, count).astype(np.int32), np.array([5, 12, 1], np.int32)
    scales = [1 + normal(groups, 9, page) ** 2 if i in scaled else None for i in (0, 1)]
    whole = [x if c is None else x * c[..., None] for x, c in zip(pages, scales)]
    k, v = [np.moveaxis(x[:, where].reshape(groups, batch, count * page, size), 0, 2) for x in whole]
    for cap in (None, 0.7):
        want = gpu_pages.paged_attention_reference(q, k, v, lengths, attn_logits_soft_cap=cap)
        with gradix.numpy_rank_promotion("raise"):
            got = gpu_pages.paged_attention(q, *pages, where, lengths, *scales, attn_logits_soft_cap=cap)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    one = np.exp(np.einsum("hd,td->ht", q[0, :2], k[0, :5, 0]))
    want = (one / one.sum(-1, keepdims=True)) @ v[0, :5, 0]
    np.testing.assert_allclose(gpu_pages.paged_attention(q, *pages, where, lengths, *scales)[0, :2], want, rtol=1e-3)
    full = np.full(batch, count * page, np.int32)
    got = gpu_pages.paged_attention(q, *pages, where, None, *scales)
    np.testing.assert_allclose(got, gpu_pages.paged_attention_reference(q, k, v, full), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"block_tables of shape \(1, 3\)"):
        gpu_pages.paged_attention(q, *pages, where[:1], lengths)


@pytest.mark.parametrize("window", [None, 3])
def test_attention_of_ragged_queries_over_pages_and_its_gradient(window):
    heads, groups, size, page = 4, 2, 8, 4
    q, pages = normal(9, heads, size), normal(8, page, 2 * groups, size)
    lengths, starts = np.array([6, 3, 9, 1], np.int32), np.array([0, 2, 5, 8, 8], np.int32)
    where, count = np.array([[7, 4, 0], [1, 0, 0], [2, 5, 3], [6, 0, 0]], np.int32), np.array([3], np.int32)
    unseen = np.ones((8, page), bool)
    for row, n in zip(where, lengths):
        for i in range(n):
            unseen[row[i // page], i % page] = False
    args = (lengths, where, starts, count)
    options = {"sm_scale": 0.5, "sliding_window": window, "soft_cap": 2.0, "k_scale": 1.5, "v_scale": 0.5}
    ragged, plain = ragged_paged_attention.ragged_paged_attention, ragged_paged_attention.ref_ragged_paged_attention
    with gradix.numpy_rank_promotion("raise"):
        want = plain(q, pages, *args, **options)
        ragged(q, pages, *args, **options)
    assert want.shape == (8, heads, size)
    filled = np.where(unseen[..., None, None], np.nan, pages)  # what lies beyond a sequence does not matter
    for x in (pages, filled):
        got = gradix.jit(lambda q, x: ragged(q, x, *args, **options))(q, x)
        np.testing.assert_allclose(got[:8], want, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(got[8:], 0)
    slopes = [gradix.grad(lambda *t, f=f: (f(*t, *args, **options)[:8] ** 2).sum(), (0, 1)) for f in (ragged, plain)]
    for a, b in zip(slopes[0](q, filled), slopes[1](q, pages)):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    s = np.einsum("d,td->t", q[7, 0], pages[where[2], :, 0].reshape(-1, size)[:9])
    first = 0 if window is None else 9 - window
    p = np.where(np.arange(9) >= first, np.exp(s - s.max()), 0)
    want = (p / p.sum()) @ pages[where[2], :, 1].reshape(-1, size)[:9]
    got = ragged(q, pages, *args, sliding_window=window)[7, 0]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_ragged_queries_that_do_not_fit_are_refused():
    q, pages, where = normal(4, 2, 8), normal(3, 2, 2, 8), np.array([[0, 1]], np.int32)
    one, ends = np.array([1], np.int32), np.array([0, 2], np.int32)
    module = ragged_paged_attention
    module.dynamic_validate_inputs(q, pages, 4 * one, where, ends, one)
    for words, args in {
        r"kv_pages of shape \(3, 2, 3, 8\)": (q, normal(3, 2, 3, 8), one, where, ends, one),
        r"cu_q_lens of shape \(1,\)": (q, pages, one, where, ends[:1], one),
        "integers as kv_lens": (q, pages, one.astype(np.float32), where, ends, one),
        "sequence 0 has 2 queries and 1 tokens": (q, pages, one, where, ends, one),
        "sequence 0 has 5 tokens, but its pages hold 4": (q, pages, 5 * one, where, ends, one),
        "counts 6 queries, but q has 4": (q, pages, one, where, 3 * ends, one),
        "num_seqs is 2": (q, pages, one, where, ends, 2 * one),
    }.items():
        with pytest.raises(ValueError, match=words):
            module.dynamic_validate_inputs(*args)
    with pytest.raises(ValueError, match="positive sliding_window, got 0"):
        module.ragged_paged_attention(q, pages, one, where, ends, one, sliding_window=0)
