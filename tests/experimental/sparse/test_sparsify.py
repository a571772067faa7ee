"""`sparsify`: functions of ordinary arrays on sparse ones, through calls, loops and branches."""

import numpy as np
import pytest

import gradix
from gradix import lax, numpy as jnp
from gradix.experimental import sparse
from tests.experimental.sparse.cases import array, same

V = np.arange(4, dtype="f")
FUNCTIONS = {
    "product": lambda m: 2 * m.T @ V[:3],
    "einsum": lambda m: jnp.einsum("ij,kj->ik", m, jnp.ones((2, 4))),
    "zero at zero": lambda m: jnp.sin(jnp.tanh(m)) - jnp.expm1(m) + jnp.abs(m) ** 3,
    "linear": lambda m: -m + m * 3 - m / 2,
    "times an array": lambda m: m * V + V[:3, None] * m,
    "sums": lambda m: (m.sum(), m.sum(0), m.sum(1, keepdims=True), jnp.mean(m, 1)),
    "shapes": lambda m: (
        m.reshape(-1),
        jnp.ravel(m.T),
        jnp.expand_dims(m, 0),
        jnp.squeeze(m[:1]),
        jnp.broadcast_to(m, (2, 3, 4)),
    ),
    "parts": lambda m: (
        m[0],
        m[:, 1:],
        m[::2],
        jnp.flip(m),
        m[jnp.array([2, 0])],
        m[:, jnp.array([2, 0])],
        jnp.split(m, 2, 1)[1],
    ),
    "joined": lambda m: (jnp.concatenate([m, m], 1), jnp.stack([m, m])),
    "padded": lambda m: jnp.pad(m, ((1, 2), (0, 1))),
    "diagonal": lambda m: jnp.diagonal(m[:, :3]),
    "cast": lambda m: m.astype("int32"),
    "dense where told": lambda m: jnp.cos(sparse.todense(m)) + m,
    "two sparse arrays": lambda m: (m @ m.T, m * m, m + m),
    "jit": gradix.jit(lambda m: m.T * 2),
    "cond": lambda m: lax.cond(True, lambda: m @ V, lambda: m @ (2 * V)),
    "fori": lambda m: lax.fori_loop(0, 3, lambda i, x: m.T @ (m @ x) / 10, V),
    "while": lambda m: lax.while_loop(
        lambda c: (m @ c[1]).sum() < 1e3, lambda c: (c[0] + 1, c[1] * 2), (0, jnp.ones(4))
    ),
    "scan": lambda m: lax.scan(lambda c, x: (m.T @ (m @ c) / 10 + x, c), jnp.ones(4), jnp.arange(3.0)),
    "carry": lambda m: lax.fori_loop(0, 2, lambda i, x: x * 2, m),
    "custom derivative": lambda m: gradix.nn.relu(sparse.todense(m)).sum() + m.sum(),
    "gradient inside": lambda m: gradix.grad(lambda x: jnp.sum((m @ x) ** 2))(jnp.ones(4)),
    "trees": lambda m: {"m": m, "v": V},
    "checkpoint": lambda m: gradix.checkpoint(lambda m: m @ V)(m),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", [sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSC])
def test_gives_what_the_ordinary_array_gives(name, form):
    _, whole = array((3, 4), nse=8)
    f, m = FUNCTIONS[name], form.fromdense(whole)
    expected, found = f(jnp.asarray(whole)), sparse.sparsify(f)(m)
    leaves = gradix.tree.leaves(found, is_leaf=lambda x: isinstance(x, sparse.JAXSparse))
    for a, b in zip(gradix.tree.leaves(expected), leaves, strict=True):
        same(b, a)


def test_under_other_transformations():
    m, whole = array((3, 4), nse=8)
    f = sparse.sparsify(lambda m, v: jnp.sum(jnp.sin(m @ v)))
    same(gradix.grad(f, 1)(m, V), gradix.grad(lambda v: jnp.sin(whole @ v).sum())(V))
    same(gradix.jit(f)(m, V), np.sin(whole @ V).sum())
    same(gradix.vmap(f, (None, 0))(m, np.stack([V, 2 * V])), [np.sin(whole @ V).sum(), np.sin(whole @ V * 2).sum()])
    by_whole = gradix.grad(lambda w: jnp.sin(w @ V).sum())(jnp.asarray(whole))
    same(sparse.grad(f)(m, V).data, sparse.bcoo_extract(m, by_whole, assume_unique=True).data)
    same(sparse.sparsify(f, use_tracer=True)(m, V), np.sin(whole @ V).sum())
    assert not isinstance(sparse.sparsify(jnp.sum)(m), sparse.JAXSparse)
    same(sparse.sparsify(jnp.sin)(V), np.sin(V))


@pytest.mark.parametrize(
    "f",
    [
        jnp.cos,
        jnp.exp,
        lambda m: m + 1,
        lambda m: 1 / m,
        lambda m: m.max(),
        lambda m: jnp.where(m > 0, m, 0),
        lambda m: jnp.pad(m, 1, constant_values=1),
        lambda m: m**0.5,
    ],
)
def test_full_results_are_refused(f):
    with pytest.raises(NotImplementedError, match="todense"):
        sparse.sparsify(f)(array((3, 4))[0])


def test_rows_are_joined_to_matrices():
    """The new axis of a row is a batch axis, which matrices beside it do not have."""
    parts = [np.arange(1.0, 9, dtype="f").reshape(2, 4), V, np.ones((3, 4), "f")]
    got = sparse.sparsify(jnp.vstack)([sparse.BCOO.fromdense(p) for p in parts])
    assert got.n_batch == 0
    np.testing.assert_array_equal(got.todense(), np.vstack(parts))
