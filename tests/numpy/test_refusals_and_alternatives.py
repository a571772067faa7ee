"""Arguments that NumPy or JAX refuse, and further ones that they take."""

import warnings

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, nn, random
from gradix.nn import initializers
from gradix.scipy import linalg, special

F0 = gradix.dtypes.float0

REFUSED = [
    (ValueError, "dtype must be floating", lambda: jnp.cov(jnp.ones((2, 3)), dtype=int)),
    (ValueError, "n must be a number", lambda: jnp.fft.fftfreq([1, 2])),
    (ValueError, "d must be a number", lambda: jnp.fft.rfftfreq(4, [1])),
    (TypeError, "for 2 arguments", lambda: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(jnp.ones(3))),
    (
        ValueError,
        "axes for argument 1",
        lambda: jnp.vectorize(lambda x, y: x, signature="(n),(n)->(n)")(jnp.ones(3), None),
    ),
    (TypeError, "not a valid array type", lambda: lax.stop_gradient(lambda x: x)),
    (TypeError, "must not be negative", lambda: lax.broadcast_shapes((-1,))),
    (TypeError, "must not be negative", lambda: jnp.broadcast_shapes((1, -1), (1, 1))),
    (ValueError, "must have coefficients", lambda: linalg.fiedler_companion(jnp.ones((3, 0)))),
    (
        ValueError,
        "impl or dtype",
        lambda: random.wrap_key_data(jnp.zeros(2, "uint32"), impl="rbg", dtype=random.key(0).dtype),
    ),
    (TypeError, "unrecognized PRNG", lambda: random.key(0, impl=object())),
    (ValueError, "unrecognized PRNG", lambda: random.key(0, impl="none")),
    (TypeError, "in_axes must be", lambda: gradix.pmap(lambda x: x, in_axes=False)),
    (TypeError, "out_axes must be", lambda: gradix.pmap(lambda x: x, out_axes=(True,))),
    (TypeError, "in_axes must be", lambda: gradix.vmap(lambda x: x, in_axes=False)(jnp.ones((1, 2)))),
    (
        ValueError,
        "cannot number",
        lambda: gradix.eval_shape(lambda x: lax.top_k(x, 2), gradix.ShapeDtypeStruct((2**31 + 1,), "float32")),
    ),
    (
        gradix.errors.ConcretizationTypeError,
        "num_classes must be known",
        lambda: gradix.jit(nn.one_hot)(jnp.int32(1), 3),
    ),
    (TypeError, "must have a stop", lambda: jnp.mgrid[::2j]),
    (ValueError, "ignore", lambda: jnp.ravel_multi_index((jnp.array([1]),), (3,), mode="none")),
    (TypeError, "at most 5", lambda: jnp.array(1, None, True, "K", 0, 1)),
]


@pytest.mark.parametrize("error, words, call", REFUSED)
def test_refused(error, words, call):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name", ["nin", "nout", "nargs", "identity"])
def test_a_shared_ufunc_cannot_be_changed(name):
    before = getattr(jnp.add, name)
    for f in (jnp.add, jnp.frompyfunc(max, 2, 1)):
        with pytest.raises(AttributeError):
            setattr(f, name, None)
    assert getattr(jnp.add, name) == before and jnp.add(1, 2) == 3


def test_grids_take_lines_without_a_stop():
    assert jnp.mgrid[3:].tolist() == [0, 1, 2] == jnp.arange(3).tolist()
    assert jnp.mgrid[:].shape == (0,) and [g.shape for g in jnp.ogrid[:, :3]] == [(0, 1), (1, 3)]
    assert jnp.mgrid[3:, :2].shape == (2, 3, 2)


def test_indices_may_be_taken_as_they_are():
    i, j = jnp.array([1, 5, -1]), jnp.array([2, 1, 1])
    assert jnp.ravel_multi_index((i, j), (3, 3), mode="ignore").tolist() == [5, 16, -2]


def test_array_by_position_warns():
    with pytest.warns(DeprecationWarning, match="by position"):
        x = jnp.array([1.0], None, False, "K", 2)
    assert x.shape == (1, 1)


def test_one_hot_of_floats_warns():
    with pytest.warns(DeprecationWarning, match="integers"):
        assert nn.one_hot(jnp.array([1.0, 0.0]), 2).tolist() == [[0, 1], [1, 0]]


def test_rank_promotion_in_vectorize():
    add = jnp.vectorize(lambda x, y: x + y)
    with gradix.numpy_rank_promotion("raise"):
        assert add(jnp.ones((2, 3)), 1.0).shape == add(jnp.ones((2, 3)), jnp.ones((1, 3))).shape == (2, 3)
        for f in (add, jnp.vectorize(lambda x, y: x + y, signature="(n),(n)->(n)")):
            with pytest.raises(ValueError, match="rank promotion"):
                f(jnp.ones((2, 3)), jnp.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert add(jnp.ones((2, 3)), jnp.ones(3)).shape == (2, 3)


def test_float0_arrays_are_made_of_nothing():
    made = [
        jnp.zeros((), F0),
        jnp.ones(3, F0),
        jnp.full(3, True, F0),
        jnp.empty((2, 0), F0),
        jnp.zeros_like(np.zeros(3, F0)),
    ]
    assert [(x.shape, x.dtype) for x in made] == [((), F0), ((3,), F0), ((3,), F0), ((2, 0), F0), ((3,), F0)]


def test_a_known_value_decides_under_derivatives():
    assert gradix.grad(lambda x: (jnp.split(jnp.arange(4.0), x)[1] * x).sum())(2.0) == 5
    assert [p.shape for p in jnp.split(jnp.ones(4), 2.0)] == [(2,), (2,)]
    seen = []

    def f(x):
        seen.append((gradix.core.is_concrete(x), gradix.core.concrete_or_error(int, x)))
        return x

    gradix.grad(f)(2.0)
    assert seen == [(True, 2)]
    gradix.jit(lambda x: seen.append(gradix.core.is_concrete(x)))(2.0)
    assert seen[1] is False


def test_transposes_of_integer_maps():
    t = gradix.linear_transpose
    assert t(lambda x: 2 * x, 1)(3) == (6,)
    (first,) = t(lambda x: x[::2], jnp.arange(3))(jnp.array([1, 2]))
    assert first.tolist() == [1, 0, 2] and first.dtype == jnp.arange(3).dtype
    assert [c.tolist() for c in t(lambda x, y: {"a": (x + y).sum()}, jnp.arange(2), jnp.arange(2))({"a": 5})] == [
        [5, 5]
    ] * 2
    for bad in (lambda: t(lambda x: 1.5 * x, 1), lambda: t(lambda x: x, True)):
        with pytest.raises(TypeError, match="integer -> integer"):
            bad()
    with pytest.raises(TypeError, match="structure"):
        t(lambda x: 2 * x, 1)((3,))


def test_the_zeta_function_in_its_second_argument():
    s, q = jnp.array([2.0, 3.0]), jnp.array([0.5, 2.0])
    got = gradix.vmap(gradix.grad(special.zeta, 1))(s, q)
    np.testing.assert_allclose(got, [-16.828796, -0.2469698], rtol=1e-5)


def test_the_zeta_function_in_its_exponent():
    """-Σ ln(q + k)·(q + k)⁻ˢ, where the sum has a limit and its terms are real."""
    zeta = gradix.grad(special.zeta)
    s, q = jnp.array([3.0, 7.0, 20.0, 3.0]), jnp.array([4.0, 2.0, 1.0, 1e-3])
    k = np.arange(20000.0)[:, None] + np.asarray(q)
    np.testing.assert_array_equal(gradix.grad(lambda s: special.zeta(s, q).sum())(s), gradix.vmap(zeta)(s, q))
    np.testing.assert_allclose(gradix.vmap(zeta)(s, q), -(np.log(k) * k ** -np.asarray(s)).sum(0), rtol=2e-5)
    np.testing.assert_allclose(zeta(1.01, 1.0), -9999.927, rtol=1e-3)
    np.testing.assert_allclose(gradix.grad(zeta)(3.0, 1.5), 0.2575689, rtol=1e-5)
    np.testing.assert_allclose(
        gradix.grad(zeta, 1)(3.0, 1.5), gradix.grad(gradix.grad(special.zeta, 1))(3.0, 1.5), rtol=1e-5
    )
    assert np.isnan(gradix.vmap(zeta)(jnp.array([1.0, 0.5, 2.0]), jnp.array([1.0, 1.0, -1.5]))).all()


def test_erfcx_of_complex_numbers():
    scipy_special = pytest.importorskip("scipy.special")
    z = np.array([1j, 1 + 1j, -1 - 2j, 0.3], "complex64")
    np.testing.assert_allclose(special.erfcx(jnp.asarray(z)), scipy_special.erfcx(z.astype(complex)), rtol=1e-4)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_scaled_draws_without_axes_of_inputs(shape):
    init = initializers.variance_scaling(1.0, "fan_in", "uniform", in_axis=[], out_axis=[])
    assert init(random.key(0), shape).shape == shape


@pytest.mark.parametrize("n", [2, 3, 5])
def test_rsf2csf_of_matrices_that_are_no_schur_forms(n):
    scipy_linalg = pytest.importorskip("scipy.linalg")
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, 4, n, n))
    got = linalg.rsf2csf(a.astype("float32"), b.astype("float32"))
    for i in range(4):
        for g, w in zip(got, scipy_linalg.rsf2csf(a[i], b[i])):
            np.testing.assert_allclose(g[i], w, rtol=1e-3, atol=1e-3)


def test_float0_takes_part_in_no_operation():
    zero = gradix.grad(lambda n: n + 0.0, allow_int=True)(1)
    for f in (lambda: zero + jnp.zeros(()), lambda: jnp.zeros(()) + zero, lambda: jnp.sin(zero)):
        with pytest.raises(TypeError, match="float0s do not support any operations by design.*allow_int"):
            f()


def test_arrays_of_any_shape_say_what_is_deleted():
    x, places = np.arange(5), np.array([[0, 1], [3, 3]])
    np.testing.assert_array_equal(jnp.delete(x, places), np.delete(x, places))
    np.testing.assert_array_equal(
        gradix.jit(lambda i: jnp.delete(x, i, assume_unique_indices=True))(places[:, :1]), [1, 2, 4]
    )


def test_diagonals_beyond_all_matrices_are_empty():
    for k in (2**100, -(2**100)):
        np.testing.assert_array_equal(jnp.eye(3, 4, k=k), np.zeros((3, 4)))
    np.testing.assert_array_equal(jnp.tril(jnp.ones((2, 2)), 2**100), np.ones((2, 2)))


def test_large_python_integers_become_floats():
    assert gradix.lax.convert_element_type(2**100, "float32") == np.float32(2.0**100)
    assert gradix.lax.convert_element_type(-(2**40), "complex64") == -(2.0**40)


def test_indices_that_default_integers_cannot_hold_are_refused():
    long, one = (gradix.ShapeDtypeStruct((n,), "float32") for n in (2**31, 1))
    with gradix.enable_x64(False), pytest.raises(OverflowError, match="2147483649 places.*int32.*jax_enable_x64"):
        gradix.eval_shape(jnp.searchsorted, long, one)
    with gradix.enable_x64(True):
        assert gradix.eval_shape(jnp.searchsorted, long, one).dtype == "int64"


def test_promised_indices_do_not_count_from_the_end():
    x, i = jnp.arange(4.0), jnp.array([2, 0])
    taken = lambda **options: gradix.make_jaxpr(lambda i: jnp.take_along_axis(x, i, 0, **options))(i)
    names = lambda closed: {e.primitive.name for e in closed.jaxpr.eqns}
    assert not {"lt", "select_n", "add"} & names(taken(mode="promise_in_bounds"))
    assert {"lt", "select_n", "add"} & names(taken(mode="promise_in_bounds", wrap_negative_indices=True))
    np.testing.assert_array_equal(jnp.take_along_axis(x, i - 3, 0), [3.0, 1.0])


def test_sums_of_integer_products_may_be_asked_for_as_integers():
    a, v = np.array([1, 2, 3]), np.array([0, 1])
    for f, want in ((jnp.convolve, np.convolve(a, v)), (jnp.correlate, np.correlate(a, v))):
        got = f(a, v, preferred_element_type="int8")
        np.testing.assert_array_equal(got, want)
        assert got.dtype == jnp.int8


def test_whether_lists_of_traced_numbers_are_complex():
    assert gradix.jit(lambda z: jnp.iscomplexobj([1.0, [z]]))(1j) and not gradix.jit(lambda x: jnp.iscomplexobj([x]))(
        1.0
    )


def test_the_only_window_over_a_scalar_holds_it():
    window = lambda x, f, start: gradix.lax.reduce_window(x, np.float32(start), f, (), (), "SAME")
    for f, start in ((gradix.lax.add, 0), (gradix.lax.max, -np.inf)):
        assert gradix.jit(lambda x: window(x, f, start))(np.float32(3)) == 3.0
        assert gradix.grad(lambda x: window(x, f, start))(np.float32(3)) == 1.0


def test_donated_names_need_a_signature():
    class Opaque:
        @property
        def __signature__(self):
            raise TypeError("there is none")

        def __call__(self, *args, **kwargs):
            return args

    with pytest.raises(ValueError, match="Getting the signature of function.*Pass donate_argnums instead"):
        gradix.jit(Opaque(), donate_argnames="x")(1.0)


def test_arrays_are_no_axes():
    with pytest.raises(TypeError, match="vmap out_axes must be an int, None, or"):
        gradix.vmap(lambda x: x, out_axes=(jnp.array([1.0, 2.0]),))
    with pytest.raises(TypeError, match="vmap in_axes must be an int, None, or"):
        gradix.vmap(lambda x: x, in_axes=(np.array([0]),))


def test_names_of_make_jaxpr():
    shown = gradix.make_jaxpr(test_names_of_make_jaxpr)
    assert shown.__name__ == shown.__qualname__ == "make_jaxpr(test_names_of_make_jaxpr)"
    inner = gradix.make_jaxpr(lambda x: x)
    assert inner.__name__ == "make_jaxpr(<lambda>)"
    assert inner.__qualname__ == "make_jaxpr(test_names_of_make_jaxpr.<locals>.<lambda>)"
