"""Small answers in which programs and NumPy's users are exact: dtypes of indices, kinds of errors, homes of names."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._base.config import override


def test_flat_indices_have_the_dtype_of_the_indices_where_it_holds_them():
    small = np.array([1, 2], "i1")
    assert jnp.ravel_multi_index((small, small), (3, 4)).dtype == np.int8
    wide = jnp.ravel_multi_index((small, small), (3, 400))
    assert wide.dtype == np.int32
    assert wide.tolist() == [401, 802]


def test_grids_mix_dtypes_under_the_strict_mode():
    with gradix.numpy_dtype_promotion("strict"):
        assert jnp.mgrid[0:4:0.5, 0:3].shape == (2, 8, 3)


def test_integers_out_of_bounds_are_refused_where_an_option_asks():
    x = jnp.arange(6.0).reshape(2, 3)
    with override("jax_check_static_indices", True):
        for index in (5, -3, (1, 3), (slice(None), 3), (..., 3), (np.array([0]), 3)):
            with pytest.raises(IndexError, match="out of bounds"):
                x[index]
            with pytest.raises(IndexError, match="out of bounds"):
                gradix.jit(lambda x: x[index])(x)
        assert x.at[5].get(mode="clip").tolist() == [3.0, 4.0, 5.0]
        assert np.isnan(x.at[5].get(mode="fill")).all()
        assert x.at[5].set(1.0).tolist() == x.tolist()
        assert x[1, 2] == 5.0 and x[-2, -3] == 0.0


def test_issubdtype_refuses_arrays_of_keys_and_of_numpy():
    with pytest.raises(ValueError, match="keys.dtype"):
        jnp.issubdtype(gradix.random.key(0), gradix.dtypes.prng_key)
    with pytest.raises(TypeError, match="x.dtype"):
        jnp.issubdtype(np.ones(3), np.floating)
    assert jnp.issubdtype(jnp.ones(3), np.floating)


def test_names_are_at_home_where_users_find_them():
    for name in ("r_", "c_", "mgrid", "ogrid"):
        assert getattr(jnp, name).__module__ == "gradix.numpy"
    for name in ("matrix_transpose", "vecdot"):
        assert getattr(jnp.linalg, name).__module__ == "gradix.numpy.linalg"
        assert getattr(jnp, name).__module__ == "gradix.numpy"


def test_metadata_of_a_static_field_has_the_last_word():
    from gradix.tree import static

    assert static(metadata={"static": False}).metadata["static"] is False
    assert static(metadata={"a": 1}).metadata == {"a": 1, "static": True}


def test_bounds_with_axes_of_size_one_give_them_to_one_uniform_number():
    key = gradix.random.key(0)
    alone = gradix.random.uniform(key, (), "float32", 0.0, 2.0)
    boxed = gradix.random.uniform(key, (), "float32", jnp.zeros(1), jnp.full(1, 2.0))
    assert boxed.shape == (1,) and boxed[0] == alone
    with pytest.raises(TypeError, match="broadcast"):
        gradix.random.uniform(key, (), "float32", jnp.zeros(2), 1.0)
    with pytest.raises(TypeError, match="broadcast"):
        gradix.random.uniform(key, (3,), "float32", jnp.zeros((1, 1)), 1.0)


def test_associative_scan_takes_the_leaves_whatever_the_tree():
    sums = gradix.lax.associative_scan(lambda a, b: [a[0] + b[0]], (jnp.ones(3),))
    assert isinstance(sums, tuple) and sums[0].tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="must return the leaves"):
        gradix.lax.associative_scan(lambda a, b: a[0] + b[0], (jnp.ones(3), jnp.ones(3)))


def test_gradients_along_one_axis_are_an_array_however_the_axis_is_named():
    x = np.arange(12.0, dtype="float32").reshape(3, 4) ** 2
    for axis in (1, (1,), [1]):
        np.testing.assert_allclose(jnp.gradient(x, axis=axis), np.gradient(x, axis=axis))
    assert jnp.gradient(x, axis=()) == [] and len(jnp.gradient(x)) == 2


def test_bins_of_two_columns_may_differ_in_number():
    x, bins = np.arange(5.0, dtype="float32"), [np.array([0, 1, 3, 5]), np.array([0, 2, 3, 4, 6])]
    for have, want in zip(jnp.histogram2d(x, x, bins=bins), np.histogram2d(x, x, bins=bins)):
        np.testing.assert_array_equal(have, want)


def test_spacings_of_half_precision_are_those_of_numpy():
    x = np.array([-16, 16, -17, 65504, -65504, 0, -0.0, 1e-7, -1e-7, 0.1, np.inf, -np.inf, np.nan], "float16")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(jnp.spacing(x), np.spacing(x))


def test_powers_by_an_integer_array_that_is_known_are_those_by_the_integer():
    for exponent in (jnp.int32(3), jnp.uint8(3), np.int32(3)):
        program = gradix.make_jaxpr(lambda x: jnp.power(x, exponent))(np.int8(2))  # noqa: B023
        assert [str(e.primitive) for e in program.eqns] == ["integer_pow"]
        assert jnp.power(np.int8(2), exponent).dtype == np.int8 and jnp.power(np.int8(2), exponent) == 8
    assert gradix.jit(jnp.power)(np.int8(2), jnp.int32(3)).dtype == np.int32


def test_values_that_become_arrays_are_asked_for_their_dtype_and_ends():
    class Held:
        def __init__(self, values):
            self.values = values

        def __jax_array__(self):
            return jnp.asarray(self.values)

    assert jnp.iscomplexobj(Held([1j])) and jnp.isrealobj(Held([1.0]))
    assert jnp.trim_zeros(Held([0, 1, 0])).tolist() == [1]


def test_bits_of_dtypes_that_arrays_do_not_have():
    import ml_dtypes

    names = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float8_e8m0fnu": 8, "int2": 2, "bfloat16": 16}
    assert {n: gradix.dtypes.itemsize_bits(getattr(ml_dtypes, n)) for n in names} == names


@pytest.mark.parametrize("named", [{"copy": False}, {"order": "C"}, {"ndmin": 2}], ids=str)
def test_arguments_of_array_by_position_and_by_name_are_refused(named):
    (name,) = named
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match=f"got {name} by position and by name"):
        jnp.array([1.0], None, True, "K", 0, **named)
    with pytest.warns(DeprecationWarning):
        assert jnp.array([1.0], None, True, ndmin=2).shape == (1, 1)


PARTED = [
    (slice(None), [0, 1], ..., [1, 0]),
    (slice(None), [0, 1], ..., 1),
    (slice(None), 1, ..., [0, 1]),
    ([0, 1], ..., [0, 1], slice(None)),
    (slice(None), [0, 1], [1, 0], ...),
    (slice(None), [0, 1], ..., None, [1, 0]),
]


@pytest.mark.parametrize("index", PARTED, ids=str)
def test_dots_for_no_axis_part_index_arrays(index):
    index = tuple(np.array(i) if isinstance(i, list) else i for i in index)
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    want, changed = x[index], x.copy()
    changed[index] = np.arange(want.size).reshape(want.shape)
    for wrap in (lambda f: f, gradix.jit):
        np.testing.assert_array_equal(wrap(lambda x: x[index])(jnp.asarray(x)), want)
        values = jnp.arange(want.size, dtype="float32").reshape(want.shape)
        np.testing.assert_array_equal(wrap(lambda x, v: x.at[index].set(v))(jnp.asarray(x), values), changed)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 3), (1, 2, 1)], ids=str)
def test_integers_apart_from_a_traced_mask_put_what_it_selects_first(shape):
    x, mask = np.zeros((2, 4, 3, 5), np.float32), np.array([True, False, True, True])
    values = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    for index in (lambda m: (slice(None), m, ..., 0), lambda m: (slice(None), m, slice(None), -1)):
        want = x.copy()
        want[index(mask)] = values
        got = gradix.jit(lambda x, m, v, index=index: x.at[index(m)].set(v))(x, mask, values)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "index",
    [
        lambda m: (1, m),
        lambda m: (-1, slice(None), m[:3]),
        lambda m: (0, None, m),
        lambda m: (0, ..., m[:3], 2),
        lambda m: (slice(1), 2, m[:3], 1),
        lambda m: (None, 1, m, 0, ...),
        lambda m: (1, ..., m[:3, None] & m[None, :3]),
    ],
)
def test_integers_before_a_traced_mask(index):
    x, mask = np.arange(72, dtype=np.float32).reshape(2, 4, 3, 3), np.array([True, False, True, True])
    want, none = x[index(mask)], x[index(np.zeros_like(mask))].shape
    for values in (np.float32(7), np.random.default_rng(0).random([n or 1 for n in none], np.float32)):
        for how in ("set", "add"):
            changed = x.copy()
            changed[index(mask)] = values if how == "set" else want + values
            got = gradix.jit(lambda x, m, v, how=how: getattr(x.at[index(m)], how)(v))(x, mask, values)
            np.testing.assert_array_equal(got, changed)
