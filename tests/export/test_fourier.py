"""Fourier transforms, and what is made of them, over axes of symbolic size: the results of the plain functions."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export
from tests.export.common import SIZES, arrays_of, assert_same, function_of, specs_of

REAL = (
    ("(jnp.fft.fft(x), jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), x.shape[0]))", ("a",)),
    ("(jnp.fft.fft2(x), jnp.fft.rfft2(x), jnp.fft.ifft(x, axis=0))", ("a, b",)),
    ("jax.grad(lambda t: (jnp.abs(jnp.fft.rfft(t)) ** 2 * jnp.arange(t.shape[0] // 2 + 1)).sum())(x)", ("a",)),
    ("jax.grad(lambda t: (jnp.fft.irfft(jnp.fft.rfft(t) * 2j, n=t.shape[0]) ** 2).sum())(x)", ("a",)),
    ("(jax.vmap(jnp.fft.fft)(x), jax.jvp(jnp.fft.ifft, (x + 0j,), (y + 0j,))[1])", ("a, b", "a, b")),
)
LESS_COMMON = (
    (
        "(jnp.fft.fft(x, n=2 * x.shape[0]), jnp.fft.fft(x, n=x.shape[0] // 2 + 1, norm='ortho'), jnp.fft.rfft(x, n=16))",
        ("a",),
    ),
    ("(jnp.fft.fftn(x), jnp.fft.ifftn(x, norm='forward'), jnp.fft.fft(x, axis=1))", ("a, b, 2, c",)),
    ("(jnp.fft.hfft(x + 0j, n=2 * x.shape[0]), jnp.fft.irfft2(y + 0j, s=(y.shape[0], 2 * y.shape[1])))", ("a", "a, b")),
    ("(jax.scipy.fft.dctn(x, norm='ortho'), jax.scipy.fft.idctn(x))", ("a, b",)),
    ("(jax.scipy.signal.fftconvolve(x, x), jax.scipy.signal.fftconvolve(x, y, mode='same'))", ("a", "3")),
    ("jax.hessian(lambda t: (jnp.abs(jnp.fft.fft(t)) ** 4).sum())(x)", ("a",)),
)


def check(text, shapes, all_sizes):
    f = function_of(text, len(shapes))
    exported = export.deserialize(export.export(gradix.jit(f))(*specs_of(shapes)).serialize())
    for sizes in all_sizes:
        args = arrays_of(shapes, sizes)
        assert_same(exported.call(*args), gradix.jit(f)(*args), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("text", "shapes"), REAL)
def test_transforms_of_open_axes(text, shapes):
    check(text, shapes, SIZES[:2])


@pytest.mark.slow
@pytest.mark.parametrize(("text", "shapes"), (*REAL, *LESS_COMMON))
def test_transforms_of_open_axes_at_all_sizes(text, shapes):
    check(text, shapes, SIZES)


@pytest.mark.parametrize(
    "n", [5, pytest.param(1024, marks=pytest.mark.slow), pytest.param(100_003, marks=pytest.mark.slow)]
)
def test_long_transforms_are_exact_to_rounding(n):
    """The chirp's phases are whole numbers modulo 2n, so that long transforms lose no digits."""
    exported = export.export(gradix.jit(jnp.fft.fft))(
        gradix.ShapeDtypeStruct(export.symbolic_shape("n"), jnp.complex64)
    )
    x = np.exp(1j * np.arange(n) ** 2).astype("c8")
    want = np.fft.fft(x.astype("c16"))
    assert np.abs(exported.call(x) - want).max() < 2e-6 * np.abs(want).max()
