"""Attention under masks of heads, against a plain function; the masks against those of JAX."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.pallas.ops.tpu import splash_attention as splash
from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

pytestmark = pytest.mark.x32
RNG = np.random.default_rng(0)
SIZES = splash.BlockSizes(4, 4)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def plain(q, k, v, mask, segments=None, cap=None, sinks=None):
    s = jnp.einsum("hqd,hkd->hqk", q, jnp.repeat(k, len(q) // len(k), 0))
    s = s if cap is None else cap * jnp.tanh(s / cap)
    seen = mask if segments is None else mask & (segments.q[:, None] == segments.kv[None])
    s = jnp.where(seen, s, -1e30)
    extra = [] if sinks is None else [jnp.broadcast_to(sinks[:, None, None], (*s.shape[:2], 1))]
    p = gradix.nn.softmax(jnp.concatenate([s, *extra], -1))[..., : s.shape[-1]]
    return jnp.einsum("hqk,hkd->hqd", p, jnp.repeat(v, len(q) // len(v), 0))


def mask_of(heads, n, m):
    kinds = [masks.CausalMask((n, m), m - n), masks.LocalMask((n, m), (2, 1), offset=1) | masks.CausalMask((n, m))]
    return masks.MultiHeadMask([kinds[h % 2] for h in range(heads)])


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_attention_under_masks_and_its_gradient(kv_heads):
    mask = mask_of(4, 6, 9)
    attend = splash.make_splash_mha(mask, head_shards=1, q_seq_shards=1, block_sizes=SIZES)
    q, k, v = normal(4, 6, 8), normal(kv_heads, 9, 8), normal(kv_heads, 9, 5)
    want = lambda *t: plain(*t, mask[:, :, :])  # noqa: E731
    np.testing.assert_allclose(attend(q, k, v), want(q, k, v), rtol=1e-4, atol=1e-5)
    slopes = [gradix.jit(gradix.grad(lambda *t, f=f: (f(*t) ** 2).sum(), (0, 1, 2)))(q, k, v) for f in (attend, want)]
    for a, b in zip(*slopes):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    pairs = [np.stack([x, 2 * x]) for x in (q, k, v)]
    np.testing.assert_allclose(gradix.vmap(attend)(*pairs)[0], want(q, k, v), rtol=1e-4, atol=1e-5)


def test_segments_caps_sinks_and_residuals():
    mask = mask_of(2, 8, 8)[:, :, :]
    ids = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    segments = splash.SegmentIds(ids, ids)
    q, k, v = (normal(2, 8, 4) for _ in range(3))
    sinks = np.array([0.3, -1.0], np.float32)
    make = gradix.tree_util.Partial(splash.make_splash_mha_single_device, block_sizes=SIZES)
    capped = make(mask, attn_logits_soft_cap=0.5, save_residuals=True)
    out, (lse,) = capped(q, k, v, segments)
    np.testing.assert_allclose(out, plain(q, k, v, mask, segments, 0.5), rtol=1e-4, atol=1e-5)
    s = 0.5 * np.tanh(np.einsum("hqd,hkd->hqk", q, k) / 0.5)
    seen = mask & (ids[:, None] == ids)
    np.testing.assert_allclose(lse, np.log(np.where(seen, np.exp(s), 0).sum(-1)), rtol=1e-4, atol=1e-5)
    got = make(mask)(q, k, v, segments, sinks)
    np.testing.assert_allclose(got, plain(q, k, v, mask, segments, None, sinks), rtol=1e-4, atol=1e-5)


def test_heads_that_share_keys_and_values():
    mask = mask_of(2, 8, 8)
    q, k, v = normal(2, 8, 4), normal(8, 4), normal(8, 4)
    attend = splash.make_splash_mqa_single_device(mask, block_sizes=SIZES)
    np.testing.assert_allclose(attend(q, k, v), plain(q, k[None], v[None], mask[:, :, :]), rtol=1e-4, atol=1e-5)


def test_masks_equal_those_of_jax():
    theirs = pytest.importorskip("jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask")
    for make in (
        lambda m: m.CausalMask((5, 7)),
        lambda m: m.CausalMask((5, 7), 2),
        lambda m: m.LocalMask((5, 7), (1, None), 0),
        lambda m: m.LocalMask((5, 7), (None, 2), 1),
        lambda m: m.FullMask((5, 7)),
        lambda m: m.ChunkedCausalMask((6, 6), 4),
        lambda m: m.CausalMask((5, 7)) & m.LocalMask((5, 7), (2, 2), 0),
        lambda m: m.NumpyMask(np.eye(5, 7, dtype=bool)) | m.LocalMask((5, 7), (0, 1), 0),
    ):
        ours, want = make(masks), make(theirs)
        assert ours.shape == want.shape
        for rows, columns in ((slice(0, 5), slice(0, 6)), (slice(1, 3), slice(2, 5))):
            np.testing.assert_array_equal(ours[rows, columns], want[rows, columns])
        assert ours == make(masks) and hash(ours) == hash(make(masks))
    assert masks.CausalMask((5, 5)) != masks.CausalMask((5, 5), 1)
    np.testing.assert_array_equal(masks.make_causal_mask((3, 4), 1), theirs.make_causal_mask((3, 4), 1))
    window = ((4, 4), (1, 0))
    np.testing.assert_array_equal(masks.make_local_attention_mask(*window), theirs.make_local_attention_mask(*window))
    np.testing.assert_array_equal(
        masks.make_chunk_attention_mask((4, 4), 2), theirs.make_chunk_attention_mask((4, 4), 2)
    )


def test_wrong_masks_are_told():
    with pytest.raises(ValueError, match="one shape"):
        masks.MultiHeadMask([masks.FullMask((2, 2)), masks.FullMask((2, 3))])
    with pytest.raises(ValueError, match="cannot be joined"):
        masks.FullMask((2, 2)) & masks.FullMask((2, 3))
    with pytest.raises(ValueError, match="booleans"):
        masks.NumpyMask(np.ones((2, 2)))
    with pytest.raises(NotImplementedError, match="with | and &"):
        bool(masks.FullMask((2, 2)))
    with pytest.raises(ValueError, match=r"\(2, 8, 8\).*q has shape \(3, 8, 4\)"):
        splash.make_splash_mha_single_device(mask_of(2, 8, 8))(*(normal(3, 8, 4) for _ in range(3)))
