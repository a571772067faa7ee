"""Kernels that are ready to use, against plain functions: values and gradients."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.pallas.ops.gpu import attention as gpu, layer_norm, rms_norm, softmax
from gradix.experimental.pallas.ops.tpu import example_kernel, flash_attention as tpu, matmul
from tests.same import assert_same

pytestmark = pytest.mark.x32
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def alike(f, g, *args, rtol=2e-5):
    """Values, and gradients by all arguments."""
    assert_same(f(*args), g(*args), rtol)
    every = tuple(range(len(args)))
    for a, b in zip(
        *[gradix.jit(gradix.grad(lambda *t, h=h: (h(*t) * jnp.cos(h(*t))).sum(), every))(*args) for h in (f, g)]
    ):
        assert_same(a, b, 5 * rtol)


@pytest.mark.parametrize("axis", [-1, 0])
def test_softmax(axis):
    alike(lambda x: softmax.softmax(x, axis=axis), lambda x: gradix.nn.softmax(x, axis), normal(3, 5))
    assert_same(softmax.softmax(normal(4)).sum(), 1)


@pytest.mark.parametrize("module, name", [(layer_norm, "layer_norm"), (rms_norm, "rms_norm")])
def test_normalisations(module, name):
    plain = getattr(module, name + "_reference")
    alike(getattr(module, name), plain, normal(2, 3, 6), normal(6), normal(6))
    if name == "layer_norm":
        y = np.asarray(layer_norm.layer_norm(normal(2, 6), np.ones(6, "f"), np.zeros(6, "f")))
        assert_same([y.mean(-1), y.var(-1)], [[0, 0], [1, 1]], 1e-3)


@pytest.mark.parametrize("n, causal, has_segments", [(8, False, False), (10, True, True)])
def test_attention_of_heads(n, causal, has_segments):
    q, k, v = (normal(2, n, 2, 4) for _ in range(3))
    ids = np.sort(RNG.integers(0, 2, (2, n)), -1) if has_segments else None
    kw = dict(segment_ids=ids, causal=causal, sm_scale=0.5)
    sizes = gpu.BlockSizes(block_q=4, block_k=4)
    alike(lambda *t: gpu.mha(*t, block_sizes=sizes, **kw), lambda *t: gpu.mha_reference(*t, **kw), q, k, v)
    out, lse = gpu.mha(q, k, v, None, block_sizes=sizes, return_residuals=True)
    assert_same(lse, gradix.nn.logsumexp(jnp.einsum("bqhd,bkhd->bhqk", q, k), -1))
    assert out.shape == q.shape


def test_attention_with_a_bias_and_other_lengths():
    q, k, v, bias = normal(1, 2, 6, 4), normal(1, 2, 9, 4), normal(1, 2, 9, 4), normal(1, 2, 6, 9)
    sizes = tpu.BlockSizes(4, 4, 4, 1)
    alike(
        lambda *t: tpu.flash_attention(*t, sm_scale=0.5, block_sizes=sizes),
        lambda *t: tpu.mha_reference(*t, sm_scale=0.5),
        q,
        k,
        v,
        bias,
    )
    ids = tpu.SegmentIds(np.zeros((1, 6), int), np.array([[0] * 5 + [1] * 4]))
    assert_same(tpu.flash_attention(q, k, v, None, ids), tpu.mha_reference(q, k[:, :, :5], v[:, :, :5], None))


def test_products():
    x, y = normal(8, 12), normal(12, 4)
    alike(lambda x, y: matmul.matmul(x, y, block_shape=(4, 2), block_k=6), jnp.matmul, x, y)
    assert (
        matmul.matmul(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), block_shape=(4, 4), out_dtype=jnp.float32).dtype
        == jnp.float32
    )
    assert_same(
        matmul.matmul(np.ones((2, 4), "int8"), np.full((4, 2), 100, "int8"), block_shape=(2, 2)), np.full((2, 2), 400)
    )
    with pytest.raises(ValueError, match="whole blocks"):
        matmul.matmul(x, y, block_shape=(3, 2))
    assert_same(example_kernel.double(x), 2 * x)


def test_the_gradient_of_attention_takes_less_memory_than_that_of_all_scores():
    q, k, v = (normal(1, 2, 256, 16) for _ in range(3))
    sizes = tpu.BlockSizes(64, 64, 64, 1)

    def temporaries(f):
        return gradix.jit(gradix.grad(lambda *t: (f(*t) ** 2).sum(), (0, 1, 2))).memory(q, k, v).temporaries

    assert temporaries(lambda *t: tpu.flash_attention(*t, block_sizes=sizes)) < 0.8 * temporaries(
        lambda *t: tpu.mha_reference(*t, None)
    )
