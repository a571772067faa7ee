"""rax: a scorer of documents, trained by losses over lists and pairs, and judged by a metric."""

import jax
import jax.numpy as jnp
import rax

PACKAGES = ("rax",)


def setup():
    keys = jax.random.split(jax.random.key(0), 3)
    features = jax.random.normal(keys[0], (16, 10, 8))
    labels = jnp.floor(3 * jax.nn.sigmoid(features @ jax.random.normal(keys[1], (8,))))
    where = jnp.arange(10) < jnp.arange(3, 19)[:, None].clip(max=10)

    def scored(w):
        return jnp.tanh(features @ w["in"]) @ w["out"]

    def loss(w):
        scores = scored(w)
        given = dict(where=where)
        return (
            rax.softmax_loss(scores, labels, **given)
            + rax.pairwise_logistic_loss(scores, labels, lambdaweight_fn=rax.dcg_lambdaweight, **given)
            + 0.1 * rax.listmle_loss(scores, labels, **given)
        )

    @jax.jit
    def step(w):
        value, slope = jax.value_and_grad(loss)(w)
        return jax.tree.map(lambda a, b: a - 0.05 * b, w, slope), value - rax.ndcg_metric(
            scored(w), labels, where=where
        )

    return step, {"in": 0.3 * jax.random.normal(keys[2], (8, 16)), "out": jnp.ones(16) / 4}
