"""Functions called again with new lambdas of the same code: nothing is compiled again, and each call means its own lambda."""

import functools

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._runtime import xla
from gradix.experimental import jet
from gradix.experimental.ode import odeint
from gradix.scipy.optimize import minimize
from gradix.scipy.sparse.linalg import cg

ROWS, FEW, A, K = jnp.arange(40000.0) / 40000, jnp.arange(5.0) / 5 + 0.1, jnp.eye(3) * 2 + 0.1, 2.0
SCALAR = gradix.ShapeDtypeStruct((), ROWS.dtype)


def _with_jvp(f):
    f = gradix.custom_jvp(f)
    f.defjvp(lambda p, t: (jnp.sin(p[0]), t[0] * K))
    return f


def _with_vjp(f):
    f = gradix.custom_vjp(f)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (g * r,))
    return f


ruled_jvp, ruled_vjp = _with_jvp(lambda x: jnp.sin(x)), _with_vjp(lambda x: jnp.sin(x))


@functools.partial(gradix.custom_vjp, nondiff_argnums=(0,))
def applied(f, x):
    return f(x)


applied.defvjp(lambda f, x: (f(x), x), lambda f, r, g: (g * f(r),))


@gradix.custom_batching.custom_vmap
def ruled_vmap(x):
    return jnp.sin(x)


@ruled_vmap.def_vmap
def _rule(size, batched, x):
    return jnp.sin(x), True


def scanned(body, x):
    return lax.scan(body, x[0] * 0, x)[0]


# Each makes its lambdas anew: `f(x)` is called several times.
CALLS = {
    "piecewise": lambda x: jnp.piecewise(x, [x > 0.5], [lambda x: x * K, lambda x: -x]),
    "vectorize": lambda x: jnp.vectorize(lambda x: x.sum() * K, signature="(n)->()")(x),
    "apply_along_axis": lambda x: jnp.apply_along_axis(lambda r: r.sum() * K, 0, x),
    "fromfunction": lambda x: jnp.fromfunction(lambda i: i * K, x.shape),
    "frompyfunc": lambda x: jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1)(x, x),
    "frompyfunc reduce": lambda x: jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1, identity=0).reduce(x),
    "reduce": lambda x: lax.reduce(x, x[0] * 0, lambda a, b: a + b * K, (0,)),
    "reduce of two": lambda x: lax.reduce(
        (x, x), (x[0] * 0, x[0] * 0), lambda a, b: (a[0] + b[0] * K, a[1] + b[1]), (0,)
    ),
    "reduce_window": lambda x: lax.reduce_window(x, x[0] * 0, lambda a, b: a + b * K, (2,), (1,), "VALID"),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * K + x, x),
    "while_loop": lambda x: lax.while_loop(lambda c: c.sum() < x.sum() * 4, lambda c: c * 2 + x, x),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda: x * K, lambda: -x),
    "switch": lambda x: lax.switch(1, [lambda x: x * K, lambda x: -x, lambda x: x], x),
    "scan": lambda x: scanned(lambda c, r: (c + r * K, r), x),
    "map": lambda x: lax.map(lambda r: r * K, x),
    "map of batches": lambda x: lax.map(lambda r: r * K, x, batch_size=1000),
    "associative_scan": lambda x: lax.associative_scan(lambda a, b: a * b + K * 0, x),
    "vmap in chunks": lambda x: gradix.vmap(lambda r: jnp.sin(r) * K, chunk_size=1000)(x),
    "custom_root": lambda x: lax.custom_root(
        lambda z: z**2 - x[1], x[0] + 1, lambda f, z: jnp.sqrt(x[1]) + 0 * z, lambda g, y: y / g(1.0)
    ),
    "custom_linear_solve": lambda x: lax.custom_linear_solve(
        lambda u: A @ u, x[:3], lambda mv, b: jnp.linalg.solve(A, b), symmetric=True
    ),
    "cg": lambda x: cg(lambda u: A @ u, x[:3])[0],
    "minimize": lambda x: minimize(lambda u: ((u - K) ** 2).sum(), x[:3], method="BFGS").x,
    "odeint": lambda x: odeint(lambda y, t: -y * K, x[:3], x[:3]),
    "grad": lambda x: gradix.grad(lambda x: (jnp.sin(x) * K).sum())(x),
    "jacobians": lambda x: (
        gradix.jacfwd(lambda x: jnp.sin(x) * K)(x[:3]) + gradix.jacrev(lambda x: jnp.sin(x) * K)(x[:3])
    ),
    "grad of scan": lambda x: gradix.grad(lambda x: scanned(lambda c, r: (jnp.sin(c) + r * K, r), x))(x),
    "grad of cond": lambda x: gradix.grad(
        lambda x: lax.cond(x.sum() > 0, lambda x: jnp.sin(x) * K, lambda x: -x, x).sum()
    )(x),
    "grad of checkpoint": lambda x: gradix.grad(lambda x: gradix.checkpoint(lambda x: jnp.sin(x) * K)(x).sum())(x),
    "checkpoint with names": lambda x: gradix.grad(
        lambda x: scanned(
            gradix.checkpoint(
                lambda c, r: (jnp.sin(c) + r * K, r), policy=gradix.checkpoint_policies.save_only_these_names("a")
            ),
            x,
        )
    )(x),
    "custom_jvp in scan": lambda x: gradix.grad(lambda x: scanned(lambda c, r: (ruled_jvp(c) + r, r), x))(x),
    "custom_vjp in scan": lambda x: gradix.grad(lambda x: scanned(lambda c, r: (ruled_vjp(c) + r, r), x))(x),
    "nondiff_argnums in scan": lambda x: gradix.grad(
        lambda x: scanned(lambda c, r: (applied(lambda a: a * K, c) + r, r), x)
    )(x),
    "custom_vmap in scan": lambda x: scanned(lambda c, r: (ruled_vmap(c) + r, r), x),
    "jet": lambda x: jet.jet(lambda x: jnp.sin(x) * K, (x,), ((x,),)),
    "composite": lambda x: lax.composite(lambda x: jnp.sin(x) * K, "a.b")(x),
}


@pytest.fixture
def compiled(monkeypatch):
    """What is compiled, as a list of names that grows."""
    found, compile = [], xla.compile

    def counting(text, *args, **kwargs):
        found.append(text)
        return compile(text, *args, **kwargs)

    monkeypatch.setattr(xla, "compile", counting)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_compiled_again(name, compiled):
    for x in [FEW, *[ROWS] * (name not in ("frompyfunc reduce", "associative_scan"))]:
        CALLS[name](x), CALLS[name](x), CALLS[name](x)
        before = len(compiled)
        CALLS[name](x), CALLS[name](x)
        assert len(compiled) == before


def scan_of(callback):
    return lax.scan(lambda c, r: (c + gradix.pure_callback(callback, SCALAR, r), r), FEW[0] * 0, FEW[1:4])[0]


def test_functions_that_captured_a_loop_index():
    """The cell of an index that a program was made for holds another one later."""

    def run(numbers):
        return [float(scan_of(lambda r: r * k)) for k in numbers]  # noqa: B023 (is what is tested)

    one = float(FEW[1:4].sum())
    for numbers in ([1, 2], [1, 2], [1, 5, 2]):
        assert run(numbers) == pytest.approx([one * k for k in numbers])


def test_functions_that_write_to_what_they_captured():
    def into_dict():
        seen = {}
        gradix.block_until_ready(scan_of(lambda r: seen.setdefault("r", r)))
        return len(seen)

    def into_list():
        seen = []
        gradix.block_until_ready(scan_of(lambda r: (seen.append(r), r)[1]))
        return len(seen)

    def into_variable():
        count = 0

        def counting(r):
            nonlocal count
            count += 1
            return r

        gradix.block_until_ready(scan_of(counting))
        return count

    assert [into_dict(), into_dict(), into_list(), into_list(), into_variable(), into_variable()] == [1, 1, 3, 3, 3, 3]


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_rules_of_their_own(kind):
    def slope(k, x=FEW):
        if kind == "custom_jvp":
            f = gradix.custom_jvp(lambda x: x * 1)
            f.defjvp(lambda p, t: (p[0] * 1, t[0] * k))
        else:
            f = gradix.custom_vjp(lambda x: x * 1)
            f.defvjp(lambda x: (x * 1, None), lambda _, ct: (ct * k,))
        return float(gradix.grad(lambda z: lax.scan(lambda c, r: (f(c) + r, r), z, x[:2])[0])(x[0]))

    assert [slope(k) for k in (1.0, 2.0, 1.0, 3.0, 2.0)] == [1, 4, 1, 9, 4]


def test_a_rule_that_is_replaced():
    f = gradix.custom_jvp(lambda x: x * 1)

    def slope():
        return float(gradix.grad(lambda z: lax.scan(lambda c, r: (f(c) + r, r), z, FEW[:2])[0])(1.0))

    for k in (2.0, 3.0):
        f.defjvp(lambda p, t, k=k: (p[0] * 1, t[0] * k))
        assert slope() == k * k
