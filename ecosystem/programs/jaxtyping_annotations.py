"""jaxtyping: shapes checked when functions are called and traced, by beartype."""

import jax
import jax.numpy as jnp
from beartype import beartype
from jaxtyping import Array, Float, Int, PyTree, jaxtyped

PACKAGES = ("jaxtyping", "beartype", "wadler-lindig")


@jaxtyped(typechecker=beartype)
def attend(q: Float[Array, "n d"], k: Float[Array, "m d"], v: Float[Array, "m e"]) -> Float[Array, "n e"]:
    return jax.nn.softmax(q @ k.T / q.shape[-1] ** 0.5) @ v


@jaxtyped(typechecker=beartype)
def total(tree: PyTree[Float[Array, "..."]], n: Int[Array, ""]) -> Float[Array, ""]:
    return sum(jnp.sum(x) for x in jax.tree.leaves(tree)) * n


def setup():
    keys = jax.random.split(jax.random.key(0), 3)
    k, v = jax.random.normal(keys[1], (6, 4)), jax.random.normal(keys[2], (6, 4))
    try:
        attend(k, v[:, :2], v)
        raise AssertionError("a shape that does not fit was accepted")
    except Exception as e:
        assert type(e).__name__ == "TypeCheckError", e

    @jax.jit
    def step(q):
        q = attend(q, k, v)
        return q, total({"q": q}, jnp.int32(2))

    return step, jax.random.normal(keys[0], (5, 4))
