"""Arguments and values at the corners of functions of arrays."""

import io

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, ops


def test_derivatives_of_i0():
    x = jnp.array([-1.5, -0.0, 0.0, 2.0])
    np.testing.assert_allclose(gradix.vmap(gradix.grad(jnp.i0))(x), [-0.9816664, 0.0, 0.0, 1.5906368], rtol=2e-6)
    np.testing.assert_allclose(gradix.grad(gradix.grad(jnp.i0))(0.0), 0.5, rtol=1e-6)


def test_cov_of_one_row_has_its_columns_as_variables():
    with np.errstate(all="ignore"):
        got = jnp.cov(jnp.arange(4.0)[None], rowvar=False)
    assert got.shape == (4, 4) and bool(jnp.isnan(got).all())
    assert jnp.cov(jnp.arange(4.0), rowvar=False).shape == ()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_signs_of_zeros(dtype):
    x = jnp.array([-0.0, 0.0, -np.inf, np.nan, 3.0], dtype)
    for got in (jnp.sign(x), gradix.jit(jnp.sign)(x)):
        np.testing.assert_array_equal(np.asarray(got, "float32"), [0.0, 0.0, -1.0, np.nan, 1.0])
        np.testing.assert_array_equal(np.signbit(np.asarray(got, "float32")), [True, False, True, False, False])


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
@pytest.mark.parametrize("name", ["clz", "population_count"])
def test_bits_of_narrow_integers(name, dtype):
    width = int(dtype[-1])
    patterns = np.arange(2**width)
    x = jnp.array(patterns - (patterns >= 2 ** (width - 1)) * 2**width if dtype[0] == "i" else patterns).astype(dtype)
    texts = [f"{p:0{width}b}" for p in patterns]
    counts = [t.count("1") if name == "population_count" else len(t) - len(t.lstrip("0")) for t in texts]
    want = np.asarray(jnp.array(counts).astype(dtype).astype(int))
    np.testing.assert_array_equal(np.asarray(getattr(lax, name)(x).astype(int)), want)


@pytest.mark.parametrize("dtype, want", [("int4", -1), ("uint4", 15)])
def test_narrow_integers_divided_by_zero(dtype, want):
    x = jnp.array([1, 0, 3]).astype(dtype)
    assert lax.div(x, jnp.zeros_like(x)).astype(int).tolist() == [want] * 3


@pytest.mark.parametrize("axis", [range(2), [0, 1], (0, 1)])
def test_axes_are_any_sequence(axis):
    x = jnp.arange(6.0).reshape(2, 3)
    assert [float(f(x, axis=axis)) for f in (jnp.sum, jnp.max, jnp.mean)] == [15.0, 5.0, 2.5]


def test_bfloat16_is_loaded_as_it_was_saved():
    file = io.BytesIO()
    jnp.save(file, jnp.arange(3, dtype=jnp.bfloat16))
    file.seek(0)
    got = jnp.load(file)
    assert got.dtype == jnp.bfloat16 and got.tolist() == [0, 1, 2]


def test_data_of_lower_rank_than_segment_ids():
    ids = jnp.array([0, 1, 1])
    assert ops.segment_sum(2.0, ids, 3).tolist() == [2.0, 4.0, 0.0]
    assert ops.segment_max(jnp.ones(()), ids[None], 3).tolist() == [1.0, 1.0, -np.inf]
    assert ops.segment_sum(jnp.ones((1, 2)), ids, 2).tolist() == [[1.0, 1.0], [2.0, 2.0]]
    with pytest.raises(ValueError, match=r"data of shape \(3,\) and segment_ids of shape \(3, 2\)"):
        ops.segment_sum(jnp.ones(3), jnp.zeros((3, 2), int), 3)


def test_vectorize_hands_none_on():
    add = jnp.vectorize(lambda a, b: a if b is None else a + b)
    assert add(jnp.arange(3.0), None).tolist() == [0.0, 1.0, 2.0]
    total = jnp.vectorize(lambda a, b: a.sum() if b is None else a.sum() + b, signature="(n),()->()")
    assert total(jnp.ones((2, 3)), None).tolist() == [3.0, 3.0]


@gradix.tree_util.register_pytree_node_class
class Ket:
    """A vector in two parts, which has a shape as a whole."""

    def __init__(self, real, imag):
        self.real, self.imag = real, imag

    @property
    def shape(self):
        return self.real.shape

    def tree_flatten(self):
        return (self.real, self.imag), None

    @classmethod
    def tree_unflatten(cls, _, parts):
        return cls(*parts)


def test_vectorize_takes_trees_with_a_shape_as_results():
    out = jnp.vectorize(lambda x: Ket(x, 2 * x), signature="(n)->(n)")(jnp.ones((3, 2)))
    assert out.shape == (3, 2) and out.imag.tolist() == [[2.0, 2.0]] * 3
    with pytest.raises(ValueError, match=r"a result has shape \(2,\), but the axes \(\) in the signature"):
        jnp.vectorize(lambda x: Ket(x, x), signature="(n)->()")(jnp.ones((3, 2)))


@pytest.mark.parametrize("name", ["fft", "FFT", "ifft"])
def test_names_of_transforms(name):
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(lax.fft(x, name, (3,)), getattr(np.fft, name.lower())(np.asarray(x)), atol=1e-5)
    assert lax.fft(x.astype(complex), name, ()).tolist() == x.astype(complex).tolist()


NAN = np.nan


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit])
def test_sets_with_nan(wrap):
    a, b = jnp.array([1.0, NAN, NAN, 2.0]), jnp.array([NAN, 2.0, 3.0])
    np.testing.assert_array_equal(wrap(lambda: jnp.setxor1d(a, b, size=4))(), [1, 3, NAN, NAN])
    np.testing.assert_array_equal(wrap(lambda: jnp.setxor1d(a, b[1:], size=3))(), [1, 3, NAN])
    np.testing.assert_array_equal(wrap(lambda: jnp.setxor1d(b[1:], b[1:], size=1, fill_value=7))(), [7])


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit])
def test_sets_of_complex_numbers_have_one_nan(wrap):
    z = jnp.array([1 + 1j, complex(NAN, 1), complex(1, NAN), complex(NAN, NAN), 0])
    nan = complex(NAN, 0)
    values, places, inverse, counts = wrap(lambda: jnp.unique(z, True, True, True, size=3))()
    np.testing.assert_array_equal(values, np.array([0, 1 + 1j, nan], "complex64"))
    assert (places.tolist(), inverse.tolist(), counts.tolist()) == ([4, 0, 1], [1, 2, 2, 2, 0], [1, 1, 3])
    np.testing.assert_array_equal(wrap(lambda: jnp.setdiff1d(z, z[:1], size=2))(), np.array([0, nan], "complex64"))
    np.testing.assert_array_equal(wrap(lambda: jnp.setxor1d(z, z[:2], size=3))(), np.array([0, nan, nan], "complex64"))
    np.testing.assert_array_equal(
        wrap(lambda: jnp.union1d(z[:2], z[2:], size=3))(), np.array([0, 1 + 1j, nan], "complex64")
    )


def test_extrema_of_complex_numbers_pass_over_nan():
    """As XLA compares them: what is not greater does not win."""
    z = jnp.array([complex(NAN, 1), -1 + 0.5j, 2 - 3j])
    for f in (jnp.max, jnp.min, lambda z: jnp.maximum(z, z[::-1]), lambda z: jnp.maximum.accumulate(z)):
        np.testing.assert_array_equal(f(z), gradix.jit(f)(z))


def test_8_bit_floats_are_sorted_with_nan_last():
    x = jnp.array([NAN, 1.5, -0.0, -np.inf, 0.25, np.inf], "float8_e5m2")
    np.testing.assert_array_equal(jnp.sort(x).astype(float), [-np.inf, -0.0, 0.25, 1.5, np.inf, NAN])
    assert jnp.argsort(x).tolist() == [3, 2, 4, 1, 5, 0]
    assert float(jnp.nanmedian(x)) == 0.25 and jnp.isnan(jnp.median(x))


@pytest.mark.parametrize(
    "name, call",
    [
        ("matmul", lambda a, b: a @ b),
        ("matmul", jnp.matmul),
        ("dot", jnp.dot),
        ("inner", lambda a, b: jnp.inner(a, b.T)),
        ("tensordot", lambda a, b: jnp.tensordot(a, b, 1)),
        ("matmul", lambda a, b: jnp.stack([a, a]) @ b),
        ("matmul", lambda a, b: a @ b.astype("int32")),
        ("matmul", lambda a, b: gradix.jit(lambda a, b: a @ b)(a, b)),
    ],
)
def test_sizes_that_do_not_fit_are_told_in_terms_of_the_function(name, call):
    with pytest.raises(TypeError) as error:
        call(jnp.ones((3, 4)), jnp.ones((3, 4)))
    text = str(error.value)
    assert text.startswith(f"{name}: shapes ") and "(3, 4)" in text and "dot_general" not in text


def test_formats_of_narrow_types():
    assert [f"{jnp.asarray(2.5, d)} {jnp.asarray(2, d):.1f}" for d in ("bfloat16", "float8_e5m2")] == ["2.5 2.0"] * 2
    assert f"{jnp.bfloat16(2)}" == "2.0" and f"{jnp.asarray(3, 'int4')}" == "3"


@pytest.mark.parametrize(
    "call",
    [
        "jnp.zeros(3, x)",
        "x.astype(x)",
        "jnp.sum(x, dtype=x)",
        "jnp.vstack(x, x)",
        "jnp.hstack([x], x)",
        "gradix.jit(lambda x: jnp.zeros(2, x))(x)",
    ],
)
def test_an_array_is_no_dtype(call):
    with pytest.raises(ValueError, match="x.dtype"):
        eval(call, {"x": jnp.ones(3), "jnp": jnp, "gradix": gradix})
    with pytest.raises(TypeError, match="is an array"):
        jnp.zeros(3, np.ones(3))
