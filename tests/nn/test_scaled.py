"""Products in few bits are near the products of the values, and exact where the values need no rounding."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import nn

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 4, 64)).astype("f4"), RNG.normal(size=(2, 5, 64)).astype("f4")
BATCHED = (((2,), (2,)), ((0,), (0,)))
WANT = np.einsum("bmk,bnk->bmn", A, B)
# The roundings of both operands and, for derivatives, of the cotangent: 2⁻⁴ relative with 3 bits after the point, 2⁻² with 1.
ERROR = {"mxfp8": 0.06, "nvfp4": 0.25}


def configs(mode, scale=None):
    return [nn.get_scaled_dot_general_config(mode, scale)] * 3


@pytest.mark.parametrize("mode", ERROR)
@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_near_the_product(mode, wrap):
    def f(a, b):
        return nn.scaled_dot_general(a, b, BATCHED, configs=configs(mode))

    np.testing.assert_allclose(wrap(f)(A, B), WANT, atol=ERROR[mode] * abs(WANT).max())
    got = wrap(gradix.grad(lambda a, b: (f(a, b) * WANT).sum(), (0, 1)))(A, B)
    for g, w in zip(got, (WANT @ B, np.swapaxes(WANT, 1, 2) @ A)):
        np.testing.assert_allclose(g, w, atol=3 * ERROR[mode] * abs(w).max())


@pytest.mark.parametrize("mode, scale", [("mxfp8", None), ("nvfp4", None), ("nvfp4", np.array([0.5], "f4"))])
def test_exact_for_values_of_the_dtype(mode, scale):
    values = RNG.choice([0, 0.5, 1, 1.5, 2, 3, 4, -6, 6], (3, 32)).astype("f4")
    values[:, ::16] = 6
    got = nn.scaled_dot_general(values, values, (((1,), (1,)), ((), ())), configs=configs(mode, scale))
    np.testing.assert_allclose(got, values @ values.T, rtol=1e-6)


def test_forms():
    few = configs("mxfp8")
    assert nn.scaled_dot_general(A[..., :31], B[..., :31], BATCHED, configs=few).shape == (2, 4, 5)
    out = nn.scaled_dot_general(A, B, (((2,), (2,)), ((), ())), "bfloat16", few)
    assert out.shape == (2, 4, 2, 5) and out.dtype == jnp.bfloat16
    mapped = gradix.vmap(lambda a: nn.scaled_dot_general(a, B, BATCHED, configs=few))(np.stack([A, 2 * A]))
    np.testing.assert_allclose(mapped[1], 2 * mapped[0], rtol=1e-5)
    np.testing.assert_allclose(nn.scaled_dot_general(A, B, BATCHED), WANT, rtol=1e-4, atol=1e-5)
    assert not np.asarray(nn.scaled_dot_general(0 * A, B, BATCHED, configs=configs("nvfp4"))).any()


def test_scaled_matmul():
    s, t = RNG.uniform(1, 2, (2, 4, 4)).astype("f4"), RNG.uniform(1, 2, (2, 5, 4)).astype("f4")
    want = np.einsum("bmk,bnk->bmn", A * s.repeat(16, 2), B * t.repeat(16, 2))
    np.testing.assert_allclose(nn.scaled_matmul(A, B, s, t), want, rtol=1e-4, atol=1e-4)
    assert nn.scaled_matmul(A, B, s, t, "bfloat16").dtype == jnp.bfloat16
    for args, pattern in (
        ((A[0], B, s, t), "three axes"),
        ((A, B[..., :30], s, t), "lhs and rhs"),
        ((A, B, s[..., :2], t), "scales"),
        ((A, B, s[:, :3], t), "first two sizes"),
        ((A, B, s[..., :3], t[..., :3]), "64 elements"),
    ):
        with pytest.raises(ValueError, match=pattern):
            nn.scaled_matmul(*args)


def test_wrong_configs():
    with pytest.raises(ValueError, match="fp4"):
        nn.get_scaled_dot_general_config("fp4")
    with pytest.raises(ValueError, match="three entries"):
        nn.scaled_dot_general(A, B, BATCHED, configs=configs("mxfp8")[:2])
    with pytest.raises(TypeError, match="int32"):
        nn.scaled_dot_general(A, B, BATCHED, "int32", configs("mxfp8"))
