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
    with pytest.raises(NotImplementedError, match="exponent"):
        gradix.grad(special.zeta)(2.0, 1.5)


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
