"""Functions as formulas of float vectors, on arrays large enough to use them, against NumPy's in higher precision."""

import math

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._base import config
from gradix._platforms.cpu.vectors.coefficients import HALF_PI
from gradix._platforms.cpu.vectors.trigonometric import LIMITS

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.rewritten]
RNG = np.random.default_rng(0)
SPECIAL = [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan]
NUMPY = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}
# the greatest error allowed, in units in the last place of the result: a fifth above what millions of points show with
# and without contraction to one rounding
ULPS = {
    "sin": 1.1,
    "cos": 1.1,
    "tan": 1.7,
    "asin": 1.45,
    "acos": 1.4,
    "atan": 1.45,
    "sinh": 2.0,
    "cosh": 1.8,
    "asinh": 1.75,
    "acosh": 2.9,
    "atanh": 1.6,
    "exp2": 1.35,
    "expm1": 2.5,
    "log1p": 1.8,
    "cbrt": 1.05,
    "rsqrt": 1.75,
}
ODD = ("sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "expm1", "log1p", "cbrt")
DTYPES = ["float32", "float64"]


def exact(name, *arrays):
    """NumPy's function in the next wider format."""
    wide = [a.astype("longdouble" if a.dtype == "float64" else "float64") for a in arrays]
    return 1 / np.sqrt(wide[0]) if name == "rsqrt" else getattr(np, NUMPY.get(name, name))(*wide)


def arguments(dtype, name=""):
    """Numbers of every exponent, of common size, beside special points, and special values."""
    word = f"u{np.dtype(dtype).itemsize}"
    any_bits = RNG.integers(0, np.iinfo(word).max, 20_000, dtype=word, endpoint=True).view(dtype)
    normal = np.finfo(dtype).tiny <= abs(any_bits)  # denormal operands are taken for zero
    near = np.concatenate(
        [v + np.arange(-20, 20) * np.finfo(dtype).eps for v in (1, -1, 0.5, -0.5, np.pi / 2, np.pi, np.log(2))]
    )
    common = np.concatenate(
        [RNG.uniform(-1, 1, 20_000), RNG.standard_normal(20_000) * 3, RNG.uniform(-100, 100, 20_000)]
    )
    x = np.concatenate([any_bits[normal], near.astype(dtype), common.astype(dtype), np.array(SPECIAL, dtype)])
    return x[~(abs(x) > LIMITS[np.dtype(dtype)])] if name in ("sin", "cos", "tan") else x


def assert_ulps(found, wanted, ulps):
    """Within so many units in the last place of the exact results; what is not a normal number is equal."""
    found = np.asarray(found)
    info, near = np.finfo(found.dtype), wanted.astype(found.dtype)
    normal = np.isfinite(near) & (abs(near) > info.tiny) & (abs(wanted) < info.max)
    rest = ~normal & (np.isnan(near) | np.isinf(near) & ~np.isfinite(wanted))
    np.testing.assert_array_equal(found[rest], near[rest])
    unit = np.exp2(np.floor(np.log2(abs(wanted[normal]))) - info.nmant)
    error = abs(found[normal].astype(wanted.dtype) - wanted[normal]) / unit
    assert not np.isnan(error).any()
    assert error.max(initial=0) <= ulps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ULPS)
def test_errors_are_bounded_everywhere(name, dtype):
    x = arguments(dtype, name)
    with gradix.enable_x64(True):
        found = np.asarray(gradix.jit(getattr(lax, name))(x))
    assert found.dtype == dtype
    assert_ulps(found, exact(name, x), ULPS[name])
    if name in ODD:
        np.testing.assert_array_equal(np.signbit(found[x == 0]), np.signbit(x[x == 0]))


def test_logarithms_in_double_precision():
    x = np.concatenate([arguments("float64"), 1 + RNG.standard_normal(20_000) * 1e-3])
    with gradix.enable_x64(True):
        assert_ulps(gradix.jit(lax.log)(x), np.log(x.astype("longdouble")), 1.25)


@pytest.mark.parametrize(
    "name, reference, ulps", [("erfc", scipy.special.erfc, 3.5), ("lgamma", scipy.special.gammaln, 1.5)]
)
def test_special_functions(name, reference, ulps):
    x = np.concatenate([arguments("float32"), RNG.uniform(0, 3, 20_000).astype("float32")])
    found, wanted = np.asarray(gradix.jit(getattr(lax, name))(x)), reference(x.astype("float64"))
    wanted[x == -np.inf] = 2 if name == "erfc" else np.inf
    assert_ulps(found, wanted, ulps)


def test_the_error_function_in_double_precision():
    """Against math.erf, whose own error is below one unit in the last place."""
    x = np.concatenate(
        [RNG.uniform(-6, 6, 3000), RNG.standard_normal(1000) * 1e-3, 0.75 + np.arange(-9, 9) * 1e-16, SPECIAL]
    )
    wanted = np.array([math.erf(v) for v in x])
    with gradix.enable_x64(True):
        found = np.asarray(gradix.jit(lax.erf)(x))
    assert_ulps(found, wanted, 3)
    np.testing.assert_array_equal(np.signbit(found[x == 0]), np.signbit(x[x == 0]))


def test_the_inverse_error_function_in_double_precision():
    """Against SciPy's, which is right to about two units in the last place; up to the last number before 1."""
    near = 1 - np.exp2(-RNG.uniform(1, 53, 3000))
    x = np.concatenate(
        [RNG.uniform(-1, 1, 3000), near, -near, RNG.standard_normal(1000) * 1e-5, [1 - 2.0**-53, 1e-300], SPECIAL]
    )
    with gradix.enable_x64(True):
        found = np.asarray(gradix.jit(lax.erf_inv)(x))
    assert_ulps(found, scipy.special.erfinv(x), 7)
    np.testing.assert_array_equal(np.signbit(found[x == 0]), np.signbit(x[x == 0]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_reductions_are_right_beside_multiples_of_half_pi(name, dtype):
    """Where all leading bits cancel; the exact rest is known from π in more pieces."""
    limit = LIMITS[np.dtype(dtype)]
    k = np.unique(np.concatenate([np.arange(1, 3000), RNG.integers(3000, int(limit / np.pi * 2), 3000)]))
    x = (k * (np.pi / 2)).astype(dtype)
    x = x[x < limit]
    with gradix.enable_x64(True):
        found = gradix.jit(getattr(lax, name))(x)
    if dtype == "float32":
        assert_ulps(found, exact(name, x), ULPS[name])
    else:  # a long double's own reduction need not be that exact
        np.testing.assert_allclose(found, getattr(np, name)(x), rtol=7e-16)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_arguments_beyond_the_reduction(name, dtype):
    """Of an array with huge arguments those alone are computed another way."""
    x = arguments(dtype)
    x = np.concatenate([x, np.array([3.4e38, -1e20, 1e7, 12345.678, 30001, 2e6, 1.1e8], dtype)])
    few = np.where(np.arange(x.size) % 1000, np.clip(x, -100, 100), x)
    with gradix.enable_x64(True):
        function = gradix.jit(getattr(lax, name))
        for y in (x, few):
            assert_ulps(function(y), exact(name, y) if dtype == "float32" else getattr(np, name)(y), 2)


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["sin", "tan"])
def test_huge_arguments_are_found_beside_nan(name, dtype):
    """Wherever the NaN is: it must not hide them from the search."""
    huge = np.array([6e4 if dtype == "float16" else 1e30], dtype)
    wanted = float(getattr(np, name)(huge.astype("longdouble"))[0])
    with gradix.enable_x64(True):
        function = gradix.jit(getattr(lax, name))
        for size in (3000, 70_001):
            for at, nans in ((0, [-1]), (-1, [0]), (size // 2, [0, -1]), (17, range(100, size))):
                x = np.full(size, 0.25, dtype)
                x[list(nans)] = np.nan
                x[at] = huge[0]
                found = np.asarray(function(x))[[at, nans[0]]].astype("float64")
                np.testing.assert_allclose(found, [wanted, np.nan], rtol=float(ml_dtypes.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_pieces_of_half_pi_are_short(dtype):
    """Their products with the greatest quotient are exact, and up to the last three a rest below 1 is, too."""
    fraction = np.finfo(dtype).nmant
    *pieces, last = HALF_PI[fraction]
    k = LIMITS[np.dtype(dtype)] / (np.pi / 2)
    for piece in pieces:
        digits = f"{int(abs(piece) * 2**140):b}".rstrip("0")
        assert len(digits) + int(np.ceil(np.log2(k))) <= fraction + 1
    assert sum(HALF_PI[fraction]) == pytest.approx(np.pi / 2, rel=1e-15)
    assert all(piece % 2.0 ** -(fraction + 1) == 0 for piece in pieces[:-2])
    assert 0 < abs(last) < abs(pieces[-1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_angles(dtype):
    x, y = [v.reshape(-1) for v in np.meshgrid(*[np.array(SPECIAL, dtype)] * 2)]
    with gradix.enable_x64(True):
        atan2 = gradix.jit(lax.atan2)
        found = np.asarray(atan2(np.tile(y, 30), np.tile(x, 30)))[: y.size]
        y2, x2 = [
            RNG.permutation(np.concatenate([RNG.standard_normal(40_000), np.exp(RNG.uniform(-60, 60, 20_000))])).astype(
                dtype
            )
            for _ in range(2)
        ]
        assert_ulps(atan2(y2, x2), exact("arctan2", y2, x2), 1.6)
    np.testing.assert_allclose(found, np.arctan2(y, x), rtol=4 * np.finfo(dtype).eps)
    known = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(np.arctan2(y, x)[known]))


def test_powers_of_every_pair_of_special_values():
    values = np.array([*SPECIAL, 1e10, -1e10, 1.5, -1.5, 0.3, 16777217], "float32")
    x, y = [np.tile(v.reshape(-1), 8) for v in np.meshgrid(values, values)]
    found, wanted = np.asarray(gradix.jit(lax.pow)(x, y)), x.astype("float64") ** y.astype("float64")
    assert_ulps(found, wanted, 0.6)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


def test_powers():
    x, y = np.exp(RNG.uniform(-40, 40, 60_000)).astype("float32"), RNG.uniform(-30, 30, 60_000).astype("float32")
    assert_ulps(gradix.jit(lax.pow)(x, y), x.astype("float64") ** y.astype("float64"), 0.6)
    whole = np.round(y)
    assert_ulps(gradix.jit(lax.pow)(-x, whole), (-x).astype("float64") ** whole, 0.6)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["sin", "tan", "asin", "cbrt", "exp", "expm1", "log", "acosh", "sqrt", "rsqrt"])
def test_half_precisions_are_rounded_once(name, dtype):
    x = np.concatenate(
        [RNG.uniform(0.01, 3, 5000), RNG.uniform(1e3, 6e4, 500) if name in ("sin", "tan", "log") else []]
    ).astype(dtype)
    wanted = exact(name, x.astype("float32")).astype(dtype)
    found = np.asarray(gradix.jit(getattr(lax, name))(x))
    assert found.dtype == wanted.dtype
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            found.astype("float64"), wanted.astype("float64"), rtol=float(ml_dtypes.finfo(dtype).eps)
        )


@pytest.mark.parametrize("name", ULPS)
def test_the_host_agrees(name):
    x = RNG.uniform(0.01, 0.99, 4096).astype("float32") + np.float32(name == "acosh")
    compiled = np.asarray(gradix.jit(getattr(lax, name))(x))
    with config.Setting("gradix_eager", "")("host"):
        host = np.asarray(getattr(lax, name)(jnp.asarray(x)))
    np.testing.assert_array_max_ulp(compiled, host, 8)  # NumPy's own vectors may be off by 4
