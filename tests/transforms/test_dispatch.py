"""Where eager work runs makes no difference; and the checks for NaN and infinity."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._base.config import config
from gradix._runtime import dispatch

rng = np.random.default_rng(0)
V = rng.uniform(0.3, 1.7, 4).astype(np.float32)
M = rng.uniform(-1, 1, (3, 4)).astype(np.float32)
I = np.array([2, 0, 2], np.int32)

PROGRAMS = {
    "elementwise": lambda: jnp.sin(V) * jnp.exp(-V) + jnp.sqrt(V) / (1 + V**2),
    "special numbers": lambda: jnp.maximum(np.array([np.nan, np.inf, -0.0, 1]), np.array([1, np.nan, 0.0, -np.inf])),
    "integers": lambda: (np.arange(-5, 5) // jnp.array(3), np.arange(-5, 5) % jnp.array(-3), jnp.arange(5) << 2),
    "division by zero": lambda: (
        lax.div(np.arange(3), np.zeros(3, np.int32)),
        lax.rem(np.arange(3), np.zeros(3, np.int32)),
    ),
    "casts": lambda: (jnp.array([1e20, -1e20, np.nan, -2.7]).astype(int), jnp.array([300, -1]).astype("uint8")),
    "reductions": lambda: (
        M.sum(),
        jnp.mean(M, 0),
        jnp.var(M, 1),
        jnp.max(M, 1),
        jnp.argmin(M, 0),
        jnp.prod(M),
        jnp.any(M > 0),
    ),
    "shapes": lambda: (
        jnp.reshape(M, (4, 3)).T,
        jnp.concatenate([M, M], 1),
        jnp.pad(M, 1),
        jnp.flip(M, 0),
        jnp.tile(V, 2),
    ),
    "indexing": lambda: (jnp.asarray(M)[I], jnp.asarray(M)[:, ::-2], jnp.asarray(V)[10], jnp.zeros(4).at[I].add(1.0)),
    "sorting": lambda: (jnp.sort(M, 0), jnp.argsort(M, 1), jnp.searchsorted(jnp.sort(V), 0.9), jnp.cumsum(M, 1)),
    "products": lambda: (M @ V, jnp.dot(M, M.T), jnp.einsum("ij,j->i", M, V), jnp.outer(V, V)),
    "comparison": lambda: (M > 0, jnp.where(M > 0, M, -M), jnp.isnan(M), jnp.equal(V, V)),
    "complex": lambda: (jnp.exp(1j * V), jnp.abs(V + 2j), jnp.angle(V - 1j)),
    "bits": lambda: (gradix.random.bits(gradix.random.key(0), (5,)), gradix.random.normal(gradix.random.key(1), (3,))),
    "half": lambda: (V.astype("float16") * 3, jnp.asarray(V, "bfloat16").sum(), jnp.exp(jnp.asarray(V, "bfloat16"))),
    "loops": lambda: lax.scan(lambda c, x: (c * x, c + x), 1.0, V),
    "branches": lambda: [lax.cond(p, jnp.sin, jnp.cos, V) for p in (True, False)],
    "grad": lambda: gradix.grad(lambda x: (jnp.tanh(M @ x) ** 2).sum())(V),
    "hessian": lambda: gradix.hessian(lambda x: jnp.sum(x**3) * jnp.prod(x))(V),
    "vmap": lambda: gradix.vmap(lambda r: jnp.dot(r, V) / jnp.linalg.norm(r))(M),
    "jvp": lambda: gradix.jvp(lambda x: jnp.log1p(x) * x, (V,), (V,)),
    "empty": lambda: (jnp.zeros((0, 3)).sum(0), jnp.concatenate([jnp.zeros(0), V])),
}


def leaves(x):
    return gradix.tree_util.tree_leaves(x)


@pytest.mark.x32
@pytest.mark.parametrize("mode", ["xla", "host"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_engine_makes_no_difference(name, mode):
    want = leaves(PROGRAMS[name]())
    config.update("gradix_eager", mode)
    got = leaves(PROGRAMS[name]())
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        assert getattr(g, "weak_type", False) == getattr(w, "weak_type", False)
        g, w = np.asarray(g), np.asarray(w)
        if w.dtype.kind in "biu":
            np.testing.assert_array_equal(g, w)
        else:
            tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(w.dtype.name, 3e-6)
            kind = np.complex64 if w.dtype.kind == "c" else np.float32
            np.testing.assert_allclose(g.astype(kind), w.astype(kind), rtol=tolerance, atol=3e-6)


def test_no_warnings_from_numpy():
    with np.errstate(all="raise"):
        assert jnp.log(-1.0) != jnp.log(-1.0)
        assert np.geterr()["divide"] == "raise"
    with pytest.raises(FloatingPointError), np.errstate(all="raise"):
        np.log(-np.ones(1))


# -- checks ------------------------------------------------------------------------------------------------------------

WRAPS = {
    "eager": lambda f: f,
    "jit": gradix.jit,
    "jit of jit": lambda f: gradix.jit(gradix.jit(f)),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_debug_nans(wrap):
    f = wrap(lambda x: jnp.log(x) * 2)
    assert np.isnan(f(-1.0))
    with gradix.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in log"):
            f(-1.0)
        assert f(1.0) == 0 and np.isneginf(f(0.0))
    assert np.isnan(f(-1.0))


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_debug_infs(wrap):
    f = wrap(lambda x: 2 / jnp.asarray(x))
    with gradix.debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"invalid value \(inf\) encountered in div"):
            f(0.0)
        assert f(1.0) == 2


def test_debug_nans_in_derivatives():
    f = lambda x: jnp.sqrt(x) * 0.0  # 0 times an infinite slope
    assert np.isnan(gradix.grad(f)(0.0))
    with gradix.debug_nans(True):
        for g in (gradix.grad(f), gradix.jit(gradix.grad(f)), gradix.grad(gradix.jit(f))):
            with pytest.raises(FloatingPointError, match="nan"):
                g(0.0)


def test_debug_nans_of_a_donated_argument():
    f = gradix.jit(lambda x: jnp.log(x), donate_argnums=0)
    with gradix.debug_nans(True), pytest.raises(FloatingPointError, match="the jit-compiled function"):
        f(jnp.full(3, 2.0) - 3)


def test_parameters_that_cannot_be_hashed():
    with pytest.raises(TypeError, match="cannot be hashed.*tuples"):
        dispatch.compiled(lax.reduce_sum_p, (jnp.ones(3),), {"axes": [0]})
