"""What loops keep for reverse mode: less than they would, with the same derivatives."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, nn

RNG = np.random.RandomState(0)
W = jnp.asarray(RNG.randn(5, 5).astype("f") * 0.3)
XS = jnp.asarray(RNG.rand(6, 5).astype("f"))
C = jnp.asarray(RNG.randn(5).astype("f"))


def layer(w, c, x):
    return jnp.tanh(c @ w + x) * 0.9 + c * 0.1, (c * c).sum()


def gated(w, c, x):
    h, m = c
    z = h @ w + x
    i, g = nn.sigmoid(z), jnp.tanh(z * 2)
    m2 = m * i + (1 - i) * g
    return (i * jnp.tanh(m2), m2), m2[0] * h


def branching(w, c, x):
    return jnp.where(c > 0, c * x, jnp.sqrt(jnp.abs(c) + x)) @ w, jnp.max(c)


def broadcasting(w, c, x):
    scale = jnp.broadcast_to(x.mean() + c[0], (5, 5)) * w
    return jnp.tanh(scale.sum(0) * c), scale.sum()


BODIES = {
    "layer": (layer, C),
    "gated": (gated, (C, C * 0.5)),
    "branching": (branching, C),
    "broadcasting": (broadcasting, C),
}


def total(tree):
    return sum(jnp.sum(jnp.sin(leaf)) for leaf in gradix.tree.leaves(tree))


def scanned(body, w, c, xs):
    return total(lax.scan(lambda c, x: body(w, c, x), c, xs))


def unrolled(body, w, c, xs):
    ys = []
    for x in xs:
        c, y = body(w, c, x)
        ys.append(y)
    return total((c, jnp.stack(ys)))


def second(f):
    return gradix.grad(
        lambda *a: sum(jnp.sum(g**2) for g in gradix.tree.leaves(gradix.grad(f, (0, 1, 2))(*a))), (0, 1, 2)
    )


@pytest.mark.parametrize("order", [lambda f: gradix.grad(f, (0, 1, 2)), second], ids=["first", "second"])
@pytest.mark.parametrize("name", BODIES)
def test_the_same_derivatives_as_without_a_loop(name, order):
    body, c = BODIES[name]
    got, want = (gradix.jit(order(lambda *a, f=f: f(body, *a)))(W, c, XS) for f in (scanned, unrolled))
    for g, w in zip(gradix.tree.leaves(got), gradix.tree.leaves(want)):
        np.testing.assert_allclose(g, w, rtol=1e-3, atol=2e-5)


def kept(f, *args):
    """How many arrays the backward loop reads a row of in each of its steps."""
    scans = [e for e in gradix.make_jaxpr(gradix.grad(f))(*args).jaxpr.eqns if e.primitive.name == "scan"]
    p = scans[-1].params
    return len(p["jaxpr"].in_avals) - p["num_consts"] - p["num_carry"]


def test_what_cheap_operations_make_is_not_kept():
    x, w = jnp.ones(7), jnp.ones((7, 7))
    loop = lambda body: lambda x: lax.scan(lambda c, _: (body(c), None), x, None, length=3)[0].sum()
    assert kept(loop(jnp.tanh), x) == 1  # y, of which 1 + y and 1 - y are made
    assert kept(loop(lambda c: jnp.tanh(c * w).sum(0)), x) == 1  # y, of 49 elements; c * w is not kept
    assert kept(loop(lambda c: jnp.exp(c) * jnp.sin(c)), x) <= 3


def test_what_is_larger_together_is_kept():
    """A sum of three arrays is one array to keep."""

    def body(c, x):
        a, b, d = jnp.sin(c), jnp.exp(-c), jnp.log1p(c * c)
        return c, x * (lax.stop_gradient(a) + lax.stop_gradient(b) + lax.stop_gradient(d))

    f = lambda x: lax.scan(lambda c, _: (c * 0.5, body(c, x)[1]), jnp.ones(7), None, length=3)[1].sum()
    assert kept(f, jnp.ones(7)) == 2  # the sum, and the cotangent of the result
    np.testing.assert_allclose(gradix.grad(f)(jnp.ones(7)), gradix.jit(gradix.grad(f))(jnp.ones(7)), rtol=1e-6)


def test_masks_of_what_is_not_finite():
    """A root that may be infinite keeps its mask, though what is made of it is computed again."""

    def f(x):
        def body(c, _):
            root = jnp.sqrt(c)
            return jnp.where(c > 0, (1 + root) * (1 - root), 0.0), None

        return lax.scan(body, x, None, length=1)[0].sum()

    for function in (gradix.grad(f), gradix.jit(gradix.grad(f))):
        np.testing.assert_allclose(function(jnp.array([0.0, 4.0])), [0.0, -1.0], rtol=1e-6)


def test_while_loops_keep_less_too():
    f = lambda x: lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, jnp.tanh(s[1]) * s[1]), (0, x))[1].sum()

    def g(x):
        for _ in range(4):
            x = jnp.tanh(x) * x
        return x.sum()

    np.testing.assert_allclose(gradix.jit(gradix.grad(f))(C), gradix.grad(g)(C), rtol=1e-5)


def test_memory_of_a_loop():
    w, x = jnp.ones((16, 64, 64)) / 64, jnp.ones((512, 64))
    f = lambda w, x: (lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x, w)[0] ** 2).sum()
    taken = gradix.jit(gradix.grad(f)).lower(w, x).compile().memory_analysis().temp_size_in_bytes
    assert taken < 2.4 * 16 * x.nbytes  # c and y of each step, and what one step needs


def tops(c, x):
    """A step whose derivative needs what is largest in each row; ties share it."""
    scores = jnp.round(jnp.sin(x * c[:, None]) * 4) / 4 + jnp.sin(x * c[:, None])
    return c * 0.5 + scores.max(-1), c


def test_comparisons_are_kept_as_they_are():
    """Of a comparison that was converted to floats, the truths are kept: a quarter of the bytes."""
    x, c = jnp.ones((3, 4, 8)) * jnp.arange(8.0), jnp.ones(4)
    loop = lambda c, x: total(lax.scan(tops, c, x))
    scan = [e for e in gradix.make_jaxpr(gradix.grad(loop))(c, x).jaxpr.eqns if e.primitive.name == "scan"][-1]
    rows = scan.params["jaxpr"].in_avals[scan.params["num_consts"] + scan.params["num_carry"] :]
    assert "bool" in {str(a.dtype) for a in rows if a.shape == (4, 8)}

    def plain(c, x):
        ys = []
        for row in x:
            c, y = tops(c, row)
            ys.append(y)
        return total((c, jnp.stack(ys)))

    for got, want in zip(gradix.grad(loop, (0, 1))(c, x), gradix.grad(plain, (0, 1))(c, x)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_truth_that_is_kept_twice():
    """Two residuals of one comparison, and the comparison itself as a result of each step."""

    def body(c, x):
        mask = x > c[:, None]
        wide = mask.astype("float32")
        return (c * (wide * x).sum(-1), (mask, c[:, None] * wide.astype("float16").astype("float32") * x * x))

    loop = lambda c, x: lax.scan(lambda c, x: (body(c, x)[0], body(c, x)[1][1]), c, x)[1].sum()
    kept = lambda c, x: (lambda m, y: (y * m).sum())(*lax.scan(body, c, x)[1])
    x, c = jnp.sin(jnp.arange(24.0)).reshape(2, 3, 4), jnp.ones(3) * 0.1
    for f in (loop, kept):
        gradient = gradix.grad(f, (0, 1))
        with gradix.disable_jit():
            want = gradient(c, x)
        for got, w in zip(gradix.jit(gradient)(c, x), want):
            np.testing.assert_allclose(got, w, rtol=1e-5, atol=1e-6)
