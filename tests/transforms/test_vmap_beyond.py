"""vmap by the names of arguments, past what is no array, and in chunks."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

A = jnp.arange(3.0)


@pytest.mark.parametrize(
    "call, wanted",
    [
        (lambda: gradix.vmap(lambda a, b: a + b, in_axes={"b": None})(A, 1.0), [1, 2, 3]),
        (lambda: gradix.vmap(lambda a, b: a + b, in_axes={"b": None})(b=1.0, a=A), [1, 2, 3]),
        (lambda: gradix.vmap(lambda a, *, b: a + b["k"], in_axes={"b": {"k": None}})(A, b={"k": 1.0}), [1, 2, 3]),
        (lambda: gradix.vmap(lambda *a: a[0] + a[1], in_axes={"a": 0})(A, A), [0, 2, 4]),
        (lambda: gradix.vmap(lambda a, **k: a + k["z"], in_axes={"z": None})(A, z=2.0), [2, 3, 4]),
        (lambda: gradix.vmap(lambda a, b: a @ b, in_axes={"b": 1, "a": None})(A, jnp.ones((3, 2))), [3, 3]),
    ],
)
def test_by_name(call, wanted):
    np.testing.assert_allclose(call(), wanted)


def test_unknown_names_are_told():
    with pytest.raises(TypeError, match=r"names 'd', but .* has the arguments a, b"):
        gradix.vmap(lambda a, b: a, in_axes={"d": 0})(A, A)


def test_what_is_no_array_passes():
    marker, seen = object(), []

    def f(x, *rest):
        seen.extend(rest)
        return x

    given = ["a", jnp.sin, marker, {"deep": ["b"]}]
    gradix.vmap(f)(A, *given)
    assert seen == given and seen[2] is marker
    del seen[:]
    gradix.vmap(f, in_axes=(0, None, None))(A, 3, 2.5)
    assert [type(x) for x in seen] == [int, float]
    with pytest.raises(ValueError, match="rank"):
        gradix.vmap(f)(A, 3)


X = np.random.default_rng(0).normal(size=(10, 4)).astype("f4")


def chunked_and_plain(f, in_axes=0, out_axes=0, k=3):
    return [gradix.vmap(f, in_axes, out_axes, chunk_size=c) for c in (k, None)]


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 10, 11])
@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit, lambda f: gradix.vmap(f, 2)], ids=["eager", "jit", "vmap"])
def test_chunks_equal_the_whole(k, wrap):
    x = np.stack([X, X + 1], 2) if wrap is not gradix.jit and wrap(abs) is not abs else X

    def f(row):
        return {"s": jnp.sin(row).sum(), "v": row[::-1] * 2, "same": 7.0}

    got, want = [wrap(g)(x) for g in chunked_and_plain(f, 0, {"s": 0, "v": 1, "same": None}, k)]
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-6)
        assert gradix.typeof(got[name]) == gradix.typeof(want[name]) and type(got[name]) is type(want[name])


def test_chunks_with_other_axes_and_passed_values():
    def f(a, b, kind, w):
        return (a * b["k"]).sum() * w if kind == "up" else a

    got, want = [g(X.T, {"k": X}, "up", 2.0) for g in chunked_and_plain(f, (1, 0, None, None))]
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("jac", [gradix.jacfwd, gradix.jacrev, gradix.hessian])
@pytest.mark.parametrize("k", [1, 2, 3, 6, 7])
def test_chunked_derivatives(jac, k):
    def f(p):
        y = jnp.outer(jnp.sin(p["a"]), p["b"]) ** 2
        return {"m": y, "s": y.sum()}, {"aux": p["a"] * 2}

    p = {"a": jnp.arange(1.0, 4.0), "b": jnp.arange(1.0, 4.0)}
    got, want = jac(f, has_aux=True, chunk_size=k)(p), jac(f, has_aux=True)(p)
    for g, w in zip(gradix.tree.leaves(got), gradix.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)
    under = gradix.jit(lambda p: jac(f, has_aux=True, chunk_size=k)(p)[0])(p)
    np.testing.assert_allclose(gradix.tree.leaves(under)[0], gradix.tree.leaves(want[0])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("of", [lambda f: f, lambda f: gradix.grad(lambda w, x: f(w, x).sum())], ids=["plain", "grad"])
def test_chunks_take_the_memory_of_a_chunk(of):
    def f(w, x):
        return jnp.tanh(jnp.outer(jnp.tanh(x), w) @ jnp.ones((256, 1))).sum()

    w, x = jnp.ones(256), jnp.ones((64, 256))
    used = []
    for k in (None, 4):
        g = gradix.jit(of(gradix.vmap(f, (None, 0), chunk_size=k)))
        used.append(g.lower(w, x).compile().memory_analysis().temp_size_in_bytes)
    assert used[1] < used[0] / 4, used


def _outer(x):
    return jnp.sin(jnp.outer(x, jnp.full(2000, 0.01)))


def _vector(x):
    return (jnp.cumsum(_outer(x), 0) ** 2).sum(1)


WIDE = {
    "vmap": (lambda k: gradix.vmap(lambda x: (jnp.tanh(_outer(x)) ** 2).sum(), chunk_size=k), jnp.ones((64, 32))),
    "grad of vmap": (
        lambda k: gradix.grad(lambda x: (gradix.vmap(_vector, chunk_size=k)(x) ** 3).sum()),
        jnp.ones((64, 32)),
    ),
    "vmap of grad": (lambda k: gradix.vmap(gradix.grad(lambda x: _vector(x).sum()), chunk_size=k), jnp.ones((64, 32))),
    "jacfwd": (lambda k: gradix.jacfwd(_vector, chunk_size=k), jnp.ones(64)),
    "jacrev": (lambda k: gradix.jacrev(_vector, chunk_size=k), jnp.ones(64)),
    "hessian": (lambda k: gradix.hessian(lambda x: _vector(x).sum(), chunk_size=k), jnp.ones(64)),
    "grad of jacfwd": (
        lambda k: gradix.grad(lambda x: (gradix.jacfwd(_vector, chunk_size=k)(x) ** 2).sum()),
        jnp.ones(64),
    ),
    "grad of jacrev": (
        lambda k: gradix.grad(lambda x: (gradix.jacrev(_vector, chunk_size=k)(x) ** 2).sum()),
        jnp.ones(64),
    ),
}


@pytest.mark.parametrize("name", WIDE)
def test_memory_is_that_share_of_the_whole_and_a_constant(name):
    make, x = WIDE[name]
    used = {k: gradix.jit(make(k)).lower(x).compile().memory_analysis().temp_size_in_bytes for k in (None, 1, 16)}
    constant = used[1] + 4 * 64 * 64 * 32  # one example's, and the results
    assert used[16] <= 1.35 * 16 / 64 * used[None] + constant, used


def test_errors():
    with pytest.raises(ValueError, match="chunk_size must be positive, got 0"):
        gradix.vmap(jnp.sin, chunk_size=0)
    with pytest.raises(TypeError, match="chunk_size must be a positive int"):
        gradix.jacfwd(jnp.sin, chunk_size=1.5)
    with pytest.raises(ValueError, match="named axis 'i'"):
        gradix.vmap(jnp.sin, axis_name="i", chunk_size=2)
