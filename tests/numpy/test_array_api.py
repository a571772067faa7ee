"""The namespace as the Python array API standard describes it, beyond what the other tests hold."""

import math

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


@pytest.fixture
def info():
    return jnp.__array_namespace_info__()


def test_the_namespace_is_found_from_an_array():
    x = jnp.ones(3)
    assert jnp.__array_api_version__ == "2024.12"
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is jnp
    with pytest.raises(ValueError, match="'2019.12' is not an available version.*2024.12"):
        x.__array_namespace__(api_version="2019.12")


def test_capabilities_and_devices(info):
    assert info.capabilities() == {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}
    assert info.default_device() is None
    devices = info.devices()
    assert devices[0] is None and list(devices[1:]) == gradix.devices()
    for device in devices:
        assert jnp.zeros(2, device=device).tolist() == [0, 0]


def test_dtypes_follow_the_width(info, x64):
    wide = 64 if x64 else 32
    defaults = {
        "real floating": f"float{wide}",
        "complex floating": f"complex{2 * wide}",
        "integral": f"int{wide}",
        "indexing": f"int{wide}",
    }
    assert {k: v.name for k, v in info.default_dtypes(device=None).items()} == defaults
    names = info.dtypes()
    assert all(dtype == np.dtype(name) for name, dtype in names.items())
    assert ("float64" in names) == ("int64" in names) == ("complex128" in names) == x64
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", *(["int64"] if x64 else [])}
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {
        "bool",
        "complex64",
        *(["complex128"] if x64 else []),
    }
    assert set(info.dtypes(kind="numeric")) == set(names) - {"bool"}
    for name, dtype in names.items():
        assert jnp.ones(2, dtype).dtype == dtype and jnp.isdtype(dtype, dtype), name
    with pytest.raises(ValueError, match="kind of dtype 'floats'.*'real floating'"):
        info.dtypes(kind="floats")


def test_nothing_is_taken_from_nothing():
    empty, rows = jnp.zeros(0), jnp.zeros((0, 3))
    none = jnp.zeros(0, int)
    assert gradix.jit(lambda x, i: x[i])(empty, none).shape == empty[none].shape == (0,)
    assert gradix.jit(lambda x, i: x[:, i])(rows, none).shape == (0, 0)
    assert jnp.take_along_axis(rows, jnp.zeros((0, 3), int), 0).shape == (0, 3)
    assert jnp.take_along_axis(jnp.ones((2, 3)), jnp.zeros((2, 0), int), 1).shape == (2, 0)
    assert jnp.repeat(empty, none).shape == (0,)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 2, 2)])
def test_equations_without_unknowns_or_without_a_stack(shape):
    a = jnp.zeros(shape)
    assert jnp.linalg.inv(a).shape == shape
    assert jnp.linalg.solve(a, jnp.zeros((*shape[:-1], 3))).shape == (*shape[:-1], 3)
    assert gradix.grad(lambda a: jnp.linalg.inv(a).sum())(a).shape == shape


def test_signs_of_zeros_in_division():
    x, y = jnp.array([0.0, -0.0, 0.0, -0.0]), jnp.array([-2.0, 3.0, 2.0, -3.0])
    for f in (jnp.floor_divide, gradix.jit(jnp.floor_divide)):
        assert np.signbit(f(x, y)).tolist() == [True, True, False, False]
    halves = jnp.array([-0.0, -0.4, -0.5, 0.5, 0.4, math.inf])
    for method in lax.RoundingMethod:
        f = lambda x, method=method: lax.round(x, method)
        assert np.signbit(f(halves)).tolist() == np.signbit(gradix.jit(f)(halves)).tolist() == [True] * 3 + [False] * 3


def test_dlpack_of_our_own_arrays_needs_no_copy():
    x = jnp.arange(3)
    assert jnp.from_dlpack(x, copy=False) is x and jnp.from_dlpack(x, copy=None) is x
    with pytest.raises(ValueError, match="copy=False"):
        jnp.from_dlpack(np.arange(3), copy=False)


PAIRS = np.array(
    [
        (x, y)
        for x in (0.0, -0.0, 1.0, -3.0, 7.5, math.inf, -math.inf, math.nan, 3e4)
        for y in (0.0, -0.0, 2.0, -3.0, 0.1, math.inf, -math.inf)
    ]
)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "divmod"])
@pytest.mark.parametrize("engine", ["host", "compiled"])
def test_quotients_and_remainders_have_numpys_signs_of_zero(name, dtype, engine):
    x, y = PAIRS.T.astype(jnp.dtype(dtype))
    with np.errstate(all="ignore"):
        want = np.asarray(getattr(np, name)(x, y), np.float64)
    f = getattr(jnp, name)
    found = np.asarray((f if engine == "host" else gradix.jit(f))(x, y), np.float64)
    np.testing.assert_array_equal(found, want)
    settled = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found)[settled], np.signbit(want)[settled])


@pytest.mark.parametrize("x, y, slope", [(6.0, 3.0, -2), (6.0, -3.0, 2), (-0.0, 2.0, 0), (5.0, 3.0, -1)])
def test_remainders_that_vanish_keep_their_derivatives(x, y, slope):
    assert gradix.grad(jnp.remainder, (0, 1))(x, y) == (1, slope)
    assert gradix.grad(jnp.floor_divide, (0, 1))(x, y) == (0, 0)


def test_small_integers_grow_and_positions_are_default_integers(x64):
    wide = 64 if x64 else 32
    row = jnp.arange(50)
    for name in ("int8", "uint8", "int16", "bool"):
        want = f"uint{wide}" if name[0] == "u" else f"int{wide}"
        for f in (jnp.cumulative_prod, jnp.cumulative_sum):
            assert f(jnp.ones(3, name)).dtype == gradix.jit(f)(jnp.ones(3, name)).dtype == want
    for edges in (row, row[:5], row[:0], row[:5].astype("float32")):
        for f in (jnp.searchsorted, lambda edges, x: jnp.digitize(x, edges)):
            x = jnp.ones(3, edges.dtype)
            assert f(edges, x).dtype == gradix.jit(f)(edges, x).dtype == f"int{wide}"


def test_an_axis_out_of_bounds_is_an_index_error_too():
    for kind in (ValueError, IndexError):
        with pytest.raises(kind, match="axis 3 is out of bounds"):
            jnp.expand_dims(jnp.ones(2), 3)
        with pytest.raises(kind, match="axis 2 is out of bounds"):
            jnp.sum(jnp.ones(2), 2)
