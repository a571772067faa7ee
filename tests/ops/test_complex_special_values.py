"""Complex functions at zeros, infinities and NaN: as in C99 (annex G), on the host and compiled."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

NAN, INF = np.nan, np.inf
PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 100.0, -60.0, 800.0, 1e-30, 1e30, INF, -INF, NAN]
GRID = np.array([complex(x, y) for x in PARTS for y in PARTS])
NAMES = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arcsin",
    "arccos",
    "arctan",
    "arcsinh",
    "arccosh",
    "arctanh",
    "square",
    "sign",
    "abs",
]


def reference(name, z):
    with np.errstate(all="ignore"):
        want = np.array(getattr(np, name)(z))
        if name == "expm1":  # NumPy has NaN where the real part is infinite and the imaginary one 0, infinite or NaN
            real, imag = z.real.astype(want.real.dtype), z.imag
            ends = np.isinf(real) & ~np.isfinite(imag)
            want.real[ends] = np.expm1(real)[ends]
            want.imag[ends] = np.where(real > 0, NAN, 0)[ends]
            want.imag[imag == 0] = imag[imag == 0]
            want.real[imag == 0] = np.expm1(real)[imag == 0]
        if name == "log1p":  # NumPy loses small operands
            small = np.abs(z) < 1e-20
            want.real[small] = (z.real + z.imag**2 / 2)[small]
            want.real[z == 0] = z.real[z == 0]
            want.imag[small] = z.imag[small]
    return want


def parts(z):
    return (z.real, z.imag) if np.iscomplexobj(z) else (z,)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("engine", ["host", "compiled"])
def test_special_values(name, dtype, engine):
    z = GRID.astype(dtype)
    settled = np.isfinite(z)  # annex G leaves open signs of zeros beside a NaN, or of two infinite parts
    with gradix.enable_x64(dtype == "complex128"):
        f = getattr(jnp, name)
        got = np.asarray((f if engine == "host" else gradix.jit(f))(z))
    want = reference(name, z)
    size = (1e-5 if dtype == "complex64" else 1e-12) * np.abs(want)
    for g, w in zip(parts(got), parts(want)):
        with np.errstate(all="ignore"):
            near = (g == w) | (np.isnan(g) & np.isnan(w)) | (np.abs(g - w) <= size)
        assert near.all(), [(z[i], got[i], want[i]) for i in np.flatnonzero(~near)]
        signs = np.isnan(g) | (np.signbit(g) == np.signbit(w)) | ~settled
        assert signs.all(), [(z[i], got[i], want[i]) for i in np.flatnonzero(~signs)]


# By the standard, where NumPy has none or another value.
@pytest.mark.parametrize(
    "name, z, want",
    [
        ("expm1", INF + 0j, INF + 0j),
        ("expm1", complex(NAN, 0), complex(NAN, 0)),
        ("expm1", complex(-INF, NAN), -1 + 0j),
        ("expm1", complex(INF, NAN), complex(INF, NAN)),
        ("tanh", complex(0, INF), complex(0, NAN)),
        ("atanh", complex(INF, NAN), complex(0, NAN)),
        ("sign", complex(-INF, 3), -1 + 0j),
        ("sign", complex(NAN, 3), complex(NAN, NAN)),
        ("sign", complex(-0.0, -0.0), 0j),
    ],
)
@pytest.mark.parametrize("engine", ["host", "compiled"])
def test_values_of_the_standard(name, z, want, engine):
    f = getattr(jnp, name)
    got = np.asarray((f if engine == "host" else gradix.jit(f))(np.complex64(z)))
    for g, w in zip(parts(got), parts(np.complex64(want))):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("name", ["exp", "expm1", "exp2", "sinh", "cosh", "sin", "cos"])
def test_results_that_do_not_overflow_though_the_exponential_does(name):
    """e⁸⁹ is beyond float32, e⁸⁹ cos 1.57 is not."""
    grown = np.array([80.5, 88.9, 95, 120.7 if name == "exp2" else 81, -89, 3, 9], np.float32)
    turned = np.array([2, 1.57, 1.5707963, 0.5, 1.57, 0.3, 1e-3], np.float32)
    z = (turned + 1j * grown if name in ("sin", "cos") else grown + 1j * turned).astype("complex64")
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z.astype("complex128")).astype("complex64")
    got = np.asarray(gradix.jit(getattr(jnp, name))(z))
    for g, w in zip(parts(got), parts(want)):
        with np.errstate(all="ignore"):
            near = (g == w) | (np.abs(g - w) <= 1e-5 * np.maximum(np.abs(w), 1e-3))
        assert near.all(), (z[~near], got[~near], want[~near])


@pytest.mark.parametrize("name", NAMES)
def test_ordinary_values(name):
    rng = np.random.default_rng(0)
    z = (rng.normal(size=500) * 3 + 1j * rng.normal(size=500) * 3).astype("complex64")
    want = getattr(np, name)(z.astype("complex128"))
    got = np.asarray(gradix.jit(getattr(jnp, name))(z))
    assert (np.abs(got - want) / np.abs(want)).max() < 2e-6
