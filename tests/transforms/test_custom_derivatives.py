"""custom_jvp, custom_vjp, custom_gradient: the rules are used under every transformation, and checked."""

import functools
import math

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.dtypes import float0
from gradix.errors import UnexpectedTracerError
from tests.same import assert_same

x3 = np.arange(3, dtype=np.float32) + 1


@gradix.custom_jvp
def f(x, y):
    return jnp.sin(x) * y


@f.defjvp
def f_jvp(primals, tangents):  # recognisably not the derivative
    (x, y), (tx, ty) = primals, tangents
    return f(x, y), 10 * tx + 100 * ty * x


@gradix.custom_vjp
def g(x, y):
    return jnp.sin(x) * y


g.defvjp(lambda x, y: (jnp.sin(x) * y, (x, y)), lambda res, ct: (ct * 10 * res[1], ct * 100))


# -- custom_jvp --------------------------------------------------------------------------------------------------------


def test_custom_jvp_is_used_everywhere():
    assert_same(f(1.0, 2.0), 2 * np.sin(1))
    assert_same(gradix.jvp(f, (1.0, 2.0), (1.0, 1.0))[1], 110)
    assert_same(gradix.grad(f, (0, 1))(3.0, 2.0), (10, 300))
    assert_same(gradix.jit(gradix.grad(f))(1.0, 2.0), 10)
    assert_same(gradix.grad(gradix.jit(f), 1)(3.0, 2.0), 300)
    assert_same(gradix.vmap(gradix.grad(f, (0, 1)), in_axes=(0, None))(x3, 2.0), (np.full(3, 10), 100 * x3))
    assert_same(
        gradix.grad(lambda x, y: gradix.vmap(f, in_axes=(0, None))(x, y).sum(), (0, 1))(x3, 2.0), (np.full(3, 10), 600)
    )
    assert_same(gradix.linearize(f, 1.0, 2.0)[1](1.0, 0.0), 10)
    assert_same(gradix.grad(gradix.checkpoint(f))(1.0, 2.0), 10)
    assert_same(gradix.grad(lambda x: f(y=2.0, x=x))(1.0), 10)
    assert_same(gradix.grad(gradix.grad(f, 1), 0)(3.0, 2.0), 100)
    assert_same(gradix.hessian(f, (0, 1))(3.0, 2.0), ((0, 0), (100, 0)))


@pytest.mark.parametrize("wrap", [lambda h: h, gradix.jit], ids=["eager", "jit"])
def test_custom_jvp_inside_control_flow(wrap):
    assert_same(wrap(gradix.grad(lambda x: lax.scan(lambda c, t: (f(c, t), c), x, x3)[0]))(1.0), 1000)
    assert_same(wrap(gradix.grad(lambda x: lax.cond(x > 0, lambda x: f(x, 2.0), lambda x: x, x)))(1.0), 10)


def test_custom_jvp_of_trees_integers_and_none():
    h = gradix.custom_jvp(lambda p, n: ({"o": p["a"] * n, "n": n}, None))
    h.defjvp(lambda p, t: (h(*p), ({"o": t[0]["a"] * 9, "n": t[1]}, None)))
    assert_same(gradix.grad(lambda p: h(p, 3)[0]["o"])({"a": 1.0}), 9)
    seen = []
    k = gradix.custom_jvp(lambda x, n: x * n)
    k.defjvp(lambda p, t: seen.append(t[1].dtype) or (k(*p), t[0]))
    assert_same((gradix.grad(k)(1.0, 2), gradix.jit(gradix.grad(k))(1.0, 2)), (1, 1))
    assert seen == [float0, float0]


def test_defjvps():
    h = gradix.custom_jvp(lambda x, y, z: x * y * z)
    h.defjvps(lambda t, out, x, y, z: t * 1000, None, lambda t, out, x, y, z: t * out)
    assert_same(gradix.grad(h, (0, 1, 2))(2.0, 3.0, 4.0), (1000, 0, 24))
    assert_same(
        gradix.jit(gradix.vmap(gradix.grad(h, (0, 2)), in_axes=(0, None, None)))(x3, 1.0, 2.0),
        (np.full(3, 1000), 2 * x3),
    )


def test_nondiff_arguments_may_be_functions_and_traced_values():
    @functools.partial(gradix.custom_jvp, nondiff_argnums=(0,))
    def apply(n, x):
        return n(x) if callable(n) else n * x

    apply.defjvp(lambda n, p, t: (apply(n, *p), 7 * t[0] if callable(n) else 7 * n * t[0]))
    assert_same(gradix.jit(gradix.vmap(gradix.grad(lambda x: apply(jnp.sin, x))))(x3), np.full(3, 7))
    each = lambda n, x: gradix.grad(lambda x: apply(n, x))(x)
    assert_same(gradix.jit(each)(2.0, 3.0), 14)
    assert_same(gradix.vmap(each)(x3, x3), 7 * x3)
    total = lambda y: gradix.vmap(lambda n, x: apply(n, x * y))(x3, x3).sum()
    assert_same(
        (gradix.grad(total)(2.0), gradix.jit(gradix.grad(total))(2.0), gradix.grad(gradix.jit(total))(2.0)),
        (98, 98, 98),
    )
    with pytest.raises(UnexpectedTracerError, match="nondiff_argnums"):
        gradix.grad(lambda n: apply(n, 1.0))(2.0) + gradix.grad(lambda n: apply(n, n))(2.0)


# -- custom_vjp --------------------------------------------------------------------------------------------------------


def test_custom_vjp_is_used_everywhere():
    assert_same(g(1.0, 2.0), 2 * np.sin(1))
    assert_same(gradix.grad(g, (0, 1))(1.0, 2.0), (20, 100))
    assert_same(gradix.vjp(g, 1.0, 2.0)[1](3.0), (60, 300))
    assert_same(gradix.jacrev(g)(1.0, 2.0), 20)
    assert_same(gradix.jit(gradix.grad(g, (0, 1)))(1.0, 2.0), (20, 100))
    assert_same(gradix.grad(gradix.jit(g))(1.0, 2.0), 20)
    assert_same(gradix.vmap(gradix.grad(g, (0, 1)), in_axes=(0, None))(x3, 2.0), (np.full(3, 20), np.full(3, 100)))
    assert_same(
        gradix.grad(lambda x, y: gradix.vmap(g, in_axes=(0, None))(x, y).sum(), (0, 1))(x3, 2.0), (np.full(3, 20), 300)
    )
    assert_same(gradix.grad(gradix.grad(g), 1)(1.0, 2.0), 10)
    assert_same(gradix.grad(gradix.grad(gradix.jit(g)), 1)(1.0, 2.0), 10)
    assert_same(gradix.jacfwd(gradix.grad(g), 1)(1.0, 2.0), 10)


@pytest.mark.parametrize("wrap", [lambda h: h, gradix.jit], ids=["eager", "jit"])
def test_custom_vjp_inside_other_functions(wrap):
    outer = {
        "checkpoint": gradix.checkpoint,
        "jit": gradix.jit,
        "checkpoint of jit": lambda h: gradix.checkpoint(gradix.jit(h)),
        "scan": lambda h: lambda x: lax.scan(lambda c, _: (h(c), None), x, None, length=1)[0],
        "checkpoint of scan": lambda h: gradix.checkpoint(lambda x: lax.scan(lambda c, _: (h(c), None), x, None, 1)[0]),
        "cond": lambda h: lambda x: lax.cond(x < 9, h, jnp.cos, x),
        "vmap": lambda h: lambda x: gradix.vmap(h)(x[None])[0],
        "custom_root": lambda h: lambda x: lax.custom_root(lambda y: y - h(x), 0.0, lambda f, y: h(x), lambda f, b: b),
    }
    for name, around in outer.items():
        got = wrap(gradix.grad(around(lambda x: g(x, 2.0))))(jnp.asarray(1.0))
        np.testing.assert_allclose(got, 20, err_msg=name)


def test_two_mapped_axes():
    rows = gradix.vmap(gradix.vmap(g, in_axes=(None, 0)), in_axes=(0, None))
    w = np.arange(9, dtype=np.float32).reshape(3, 3)
    want = (10 * w @ x3, 100 * w.sum(0))
    grad = gradix.grad(lambda x, y: (rows(x, y) * w).sum(), (0, 1))
    assert_same((grad(x3, x3), gradix.jit(grad)(x3, x3)), (want, want))


@pytest.mark.parametrize("zero", [None, np.zeros((), float0)], ids=["None", "float0"])
def test_integer_arguments(zero):
    h = gradix.custom_vjp(lambda x, n: x * n)
    h.defvjp(lambda x, n: (x * n, n), lambda n, ct: (ct * n, zero))
    assert_same((gradix.grad(h)(1.0, 2), gradix.jit(gradix.grad(h))(1.0, 2)), (2, 2))
    ns = np.arange(3)
    total = lambda x: gradix.vmap(h)(x, ns).sum()
    assert_same((gradix.grad(total)(x3), gradix.grad(gradix.jit(total))(x3)), (ns, ns))


def test_none_stands_for_zeros_anywhere():
    h = gradix.custom_vjp(lambda p, y: p["a"] * y + p["b"][0])
    h.defvjp(lambda p, y: (h(p, y), y), lambda y, ct: ({"a": ct * y, "b": None, "none": None}, None))
    assert_same(gradix.grad(h, (0, 1))({"a": 1.0, "b": (2.0, x3), "none": None}, 3.0), ({"a": 3, "b": (0, x3 * 0)}, 0))


def test_integer_results_have_float0_cotangents():
    seen = []
    h = gradix.custom_vjp(lambda x: (x, x.astype(int)))
    h.defvjp(lambda x: (h(x), None), lambda _, ct: seen.append(ct[1].dtype) or (ct[0] * 5,))
    assert gradix.grad(lambda x: h(x)[0])(1.5) == 5 and seen == [float0]


class Tag:
    factor = 4


def test_residuals_may_be_anything():
    h = gradix.custom_vjp(lambda x: x * 2)
    h.defvjp(lambda x: (x * 2, (Tag(), "abc", x, None)), lambda res, ct: (ct * res[0].factor * len(res[1]),))
    assert_same(
        (gradix.grad(h)(1.0), gradix.jit(gradix.grad(h))(1.0), gradix.grad(lambda x: gradix.vmap(h)(x).sum())(x3)),
        (12, 12, np.full(3, 12)),
    )


def test_nondiff_arguments():
    h = gradix.custom_vjp(lambda x, k, y: k(x) * y, nondiff_argnums=(1,))
    h.defvjp(lambda x, k, y: (k(x) * y, (x, y)), lambda k, res, ct: (ct * 7 * res[0], ct * 3))
    assert_same(gradix.grad(lambda x, y: h(x, jnp.sin, y), (0, 1))(2.0, 3.0), (14, 3))


def test_rules_run_only_in_reverse_mode():
    log = []
    h = gradix.custom_vjp(lambda x: log.append("call") or x * 2)
    h.defvjp(lambda x: log.append("fwd") or (x * 2, None), lambda _, ct: log.append("bwd") or (ct * 2,))
    h(1.0)
    assert log == ["call"]
    gradix.grad(h)(1.0)
    assert log == ["call", "fwd", "bwd"]


def test_a_loop_of_unknown_length_gets_a_reverse_rule():
    h = gradix.custom_vjp(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * 2, x))
    h.defvjp(lambda x: (h(x), x), lambda x, ct: (ct * x,))
    assert gradix.grad(h)(3.0) == 3 and gradix.jit(gradix.grad(h))(3.0) == 3


def test_defaults_and_methods():
    def scaled(x, k=3.0):
        return x * k

    h = gradix.custom_vjp(scaled)
    h.defvjp(lambda x, k: (x * k, k), lambda k, ct: (ct * k * 10, ct))
    assert gradix.grad(h)(1.0) == 30
    assert h.__name__ == "scaled" and h(2.0) == 6


def test_custom_gradient():
    h = gradix.custom_gradient(lambda x: (x**2, lambda ct: (4 * ct * x,)))
    assert_same((h(3.0), gradix.grad(h)(3.0), gradix.jit(gradix.vmap(gradix.grad(h)))(x3)), (9, 12, 4 * x3))
    assert gradix.grad(gradix.custom_gradient(lambda x, y: (x * y, lambda ct: (ct, 2 * ct))), (0, 1))(3.0, 4.0) == (
        1,
        2,
    )
    assert gradix.grad(gradix.custom_gradient(lambda x: (x**2, lambda ct: 4 * ct * x)))(3.0) == 12


# -- values the rules close over ---------------------------------------------------------------------------------------


def closing(kind, a, x):
    if kind == "jvp":
        h = gradix.custom_jvp(lambda x: x * a)
        h.defjvp(lambda p, t: (h(*p), 5 * a * t[0]))
    else:
        h = gradix.custom_vjp(lambda x: x * a)
        h.defvjp(lambda x: (x * a, None), lambda _, ct: (ct * 5 * a,))
    return h(x)


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_closures(kind):
    h = functools.partial(closing, kind)
    assert_same(
        (gradix.grad(h, 1)(3.0, 2.0), gradix.jit(gradix.grad(h, 1))(3.0, 2.0), gradix.vmap(gradix.grad(h, 1))(x3, x3)),
        (15, 15, 5 * x3),
    )
    for call in (lambda: gradix.grad(h, (0, 1))(3.0, 2.0), lambda: gradix.jit(gradix.grad(h, (0, 1)))(3.0, 2.0)):
        with pytest.raises(UnexpectedTracerError, match="closes over"):
            call()


# -- errors ------------------------------------------------------------------------------------------------------------


def jvp_of(rule, wrap=lambda h: h):
    h = gradix.custom_jvp(lambda x: x)
    h.defjvp(rule)
    return lambda: gradix.grad(lambda x: jnp.sum(wrap(h)(x)))(1.0)


def vjp_of(fwd, bwd, wrap=lambda h: h, fun=lambda x: x, arg=1.0):
    h = gradix.custom_vjp(fun)
    h.defvjp(fwd, bwd)
    return lambda: gradix.grad(lambda x: jnp.sum(wrap(h)(x)))(arg)


def keeps(x):
    return x, None


@pytest.mark.x32
@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: gradix.custom_jvp(lambda x: x)(1.0), AttributeError, "No JVP defined"),
        (lambda: gradix.custom_vjp(lambda x: x)(1.0), AttributeError, "No VJP defined"),
        (lambda: gradix.linearize(g, 1.0, 2.0)[1](1.0, 1.0), TypeError, "forward-mode"),
        (jvp_of(lambda p, t: p[0]), TypeError, "must produce a pair"),
        (jvp_of(lambda p, t: (p[0], (t[0],))), TypeError, "equal container .pytree. structures"),
        (jvp_of(lambda p, t: (p[0], jnp.ones(3))), TypeError, r"equal shapes.*float32\[3\]"),
        (jvp_of(lambda p, t: (p[0], t[0].astype("float16"))), TypeError, "float16"),
        (jvp_of(lambda p, t: (jnp.ones(3), jnp.ones(3)), gradix.jit), TypeError, r"primal outputs.*float32\[3\]"),
        (jvp_of(lambda p, t: ((p[0],), (t[0],)), gradix.jit), TypeError, "structure of the function's output"),
        (vjp_of(lambda x: x, lambda r, ct: (ct,)), TypeError, "fwd rule.*must produce a pair"),
        (vjp_of(keeps, lambda r, ct: ct), TypeError, "bwd rule.*tuple of length"),
        (vjp_of(keeps, lambda r, ct: (ct, ct)), TypeError, "bwd rule.*tuple of length"),
        (vjp_of(keeps, lambda r, ct: (jnp.ones(3),)), ValueError, r"leaf 0.*float32\[\], but got float32\[3\]"),
        (
            vjp_of(lambda x: (x["a"], None), lambda r, ct: ({"b": ct},), fun=lambda x: x["a"], arg={"a": 1.0}),
            TypeError,
            "structure",
        ),
        (
            vjp_of(lambda x: (x["a"], None), lambda r, ct: ({"a": (ct,)},), fun=lambda x: x["a"], arg={"a": 1.0}),
            TypeError,
            "structure",
        ),
        (
            vjp_of(lambda x: ((x, x), None), lambda r, ct: (ct[0],), gradix.jit),
            TypeError,
            "structure of the function's output",
        ),
        (
            vjp_of(lambda x: (jnp.ones(3) * x, None), lambda r, ct: (ct.sum(),), gradix.jit),
            TypeError,
            r"fwd rule.*float32\[3\]",
        ),
        (lambda: gradix.custom_vjp(lambda x, *, k: x)(1.0, k=2.0), AttributeError, "No VJP"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_forward_mode_of_custom_vjp_differentiates_the_function_itself():
    h = gradix.custom_vjp(lambda x: jnp.sin(x) * 2.0)
    h.defvjp(lambda x: (h(x), x), lambda x, ct: (ct * 100.0,))
    for f in (h, gradix.jit(h)):
        for call in (
            lambda f: gradix.jvp(f, (0.5,), (1.0,))[1],
            lambda f: gradix.jacfwd(f)(0.5),
            lambda f: gradix.vmap(gradix.jacfwd(f))(jnp.array([0.5]))[0],
        ):
            assert abs(float(call(f)) - 2 * math.cos(0.5)) < 1e-6
        assert float(gradix.grad(f)(0.5)) == 100.0
