"""vmap over no examples gives no results, of the types they would have."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

ROWS, PLACES = np.linspace(0.1, 0.9, 10, dtype=np.float32).reshape(2, 5), np.array([1, 2], np.int32)


def spd(a):
    return jnp.outer(a, a) + jnp.eye(5)


@pytest.mark.parametrize(
    "f",
    [
        lambda a, k: lax.dynamic_slice(a, (k,), (2,)),
        lambda a, k: a[k],
        lambda a, k: a.at[jnp.array([0, 1]) + k].add(1.0),
        lambda a, k: lax.dynamic_update_slice(a, a[:2], (k,)),
        lambda a, k: jnp.take(a, jnp.array([0, 1]) + k),
        lambda a, k: jnp.roll(a, k),
        lambda a, k: jnp.convolve(a, a),
        lambda a, k: lax.conv(a.reshape(1, 1, 5), a[:2].reshape(1, 1, 2), (1,), "SAME"),
        lambda a, k: jnp.linalg.solve(spd(a), a),
        lambda a, k: jnp.linalg.svd(spd(a)),
        lambda a, k: jnp.linalg.eig(spd(a)),
        lambda a, k: lax.top_k(a, 2),
        lambda a, k: (jnp.sort(a), jnp.argmax(a), jnp.median(a), jnp.cumsum(a)),
        lambda a, k: jnp.unique(a, size=3),
        lambda a, k: jnp.interp(a, a, a),
        lambda a, k: jnp.histogram(a, bins=3, range=(0, 1))[0],
        lambda a, k: lax.reduce_window(a, 0.0, lax.add, (2,), (1,), "VALID"),
        lambda a, k: lax.reduce(a, np.float32(0), lambda x, y: x + y * 2, (0,)),
        lambda a, k: lax.scan(lambda c, y: (c + y[k], c * y), 0.0, spd(a)),
        lambda a, k: lax.while_loop(lambda c: c[k] < 3, lambda c: c + a[k], a),
        lambda a, k: lax.cond(k > 0, lambda x: x[k], lambda x: x[0], a),
        lambda a, k: gradix.jit(lambda x: x[k])(a),
        lambda a, k: gradix.nn.relu(a)[k],
        lambda a, k: gradix.checkpoint(lambda x: jnp.sin(x)[k])(a),
        lambda a, k: gradix.grad(lambda x: (x[k] ** 2).sum())(a),
        lambda a, k: gradix.hessian(lambda x: jnp.sin(x[k] * x).sum())(a),
        lambda a, k: gradix.vmap(lambda x: x[k])(spd(a)),
        lambda a, k: gradix.random.permutation(gradix.random.fold_in(gradix.random.key(0), k), a),
        lambda a, k: gradix.random.split(gradix.random.key(k))[0],
        lambda a, k: (lax.psum(a[k], "rows"), lax.axis_index("rows"), a - lax.pmean(a, "rows")),
    ],
    ids=range(30),
)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_no_examples(f, compiled):
    mapped = gradix.vmap(f, axis_name="rows")
    mapped = gradix.jit(mapped) if compiled else mapped
    some, none = mapped(ROWS, PLACES), mapped(ROWS[:0], PLACES[:0])
    assert gradix.tree.structure(some) == gradix.tree.structure(none)
    for s, n in zip(gradix.tree.leaves(some), gradix.tree.leaves(none)):
        assert n.shape == (0, *s.shape[1:]) and n.dtype == s.dtype


def test_a_gradient_through_a_map_over_nothing():
    x = jnp.zeros((0, 5))
    assert gradix.grad(lambda x: gradix.vmap(lambda a, k: a[k])(x, PLACES[:0]).sum())(x).shape == (0, 5)


def test_what_is_wrong_with_one_example_is_wrong_with_none():
    with pytest.raises(TypeError, match="shape"):
        gradix.vmap(lambda a: a + jnp.ones(4))(ROWS[:0])
