"""numpy.fft as NumPy's: every function, norm, axis and length."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(4, 5, 6, 3))
COMPLEX = REAL + 1j * RNG.normal(size=REAL.shape)


@pytest.fixture(autouse=True)
def _wide():
    with gradix.enable_x64(True):
        yield


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis(name, norm):
    x = REAL if name in ("rfft", "ihfft") else COMPLEX
    for kw in ({}, {"n": 7, "axis": 1}, {"n": 3, "axis": 0}):
        got = getattr(jnp.fft, name)(x, norm=norm, **kw)
        np.testing.assert_allclose(got, getattr(np.fft, name)(x, norm=norm, **kw), atol=1e-10)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_several_axes(name):
    x = REAL if name == "rfft" else COMPLEX
    for suffix, kw in (
        ("n", {}),
        ("n", {"axes": (2, 0)}),
        ("n", {"s": (3, 8), "axes": (-2, -1)}),
        ("2", {"norm": "ortho"}),
    ):
        got = getattr(jnp.fft, name + suffix)(x, **kw)
        np.testing.assert_allclose(got, getattr(np.fft, name + suffix)(x, **kw), atol=1e-10)


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        np.testing.assert_allclose(jnp.fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(jnp.fft.rfftfreq(n, 0.5), np.fft.rfftfreq(n, 0.5))
    np.testing.assert_array_equal(jnp.fft.fftshift(REAL, (0, 1)), np.fft.fftshift(REAL, (0, 1)))
    np.testing.assert_array_equal(jnp.fft.ifftshift(REAL), np.fft.ifftshift(REAL))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: jnp.fft.fft(REAL, norm="half"), "half"),
        (lambda: jnp.fft.fft(REAL, n=0), "positive"),
        (lambda: jnp.fft.rfft(COMPLEX), "must be real"),
        (lambda: jnp.fft.fftn(REAL, axes=(1, 1)), "names an axis twice"),
        (lambda: jnp.fft.fft2(REAL, axes=(1,)), "axes must be two"),
        (lambda: jnp.fft.fft(REAL, axis=(1, 2)), "fftn"),
    ],
)
def test_wrong_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_frequencies_of_odd_arguments():
    assert jnp.fft.fftfreq(4.0).tolist() == jnp.fft.fftfreq(np.int64(4)).tolist() == [0, 0.25, -0.5, -0.25]
    assert jnp.fft.fftfreq(-4).shape == jnp.fft.rfftfreq(-4).shape == (0,)
    assert jnp.fft.rfftfreq(jnp.array(4), -0.5).tolist() == [0, -0.5, -1]
    for function in (jnp.fft.fftfreq, jnp.fft.rfftfreq):
        with pytest.raises(TypeError, match="must be real"):
            function(4, 1j)
        with pytest.raises(TypeError):
            function(4.5)
