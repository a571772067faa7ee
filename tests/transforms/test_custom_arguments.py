"""What functions with rules of their own take: traced values that are not differentiated, what is no array, symbolic zeros."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.custom_derivatives import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values, zero_from_primal
from gradix.errors import UnexpectedTracerError


@functools.partial(gradix.custom_vjp, nondiff_argnums=(0, 2))
def scaled(f, x, n):
    return f(x) * n


scaled.defvjp(lambda f, x, n: (f(x) * n, x), lambda f, n, x, ct: (7 * ct * n + 0 * x,))


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_arguments_not_differentiated_in_may_be_traced_arrays(wrap):
    slope = lambda x, n: gradix.grad(lambda x: scaled(jnp.sin, x, n))(x)
    x = jnp.arange(3.0)
    assert float(wrap(slope)(1.0, 3.0)) == 21.0
    np.testing.assert_allclose(wrap(gradix.vmap(slope))(x, x), 7 * x)
    np.testing.assert_allclose(wrap(gradix.vmap(slope, (None, 0)))(1.0, x), 7 * x)
    total = lambda y, n: gradix.vmap(lambda n, x: scaled(jnp.sin, x * y, n))(n, x).sum()
    np.testing.assert_allclose(wrap(gradix.grad(total))(2.0, x), (7 * x * x).sum())
    looped = lambda y: lax.scan(lambda c, n: (c + scaled(jnp.sin, y, n), None), 0.0, x)[0]
    np.testing.assert_allclose(wrap(gradix.grad(looped))(2.0), 7 * x.sum())
    np.testing.assert_allclose(wrap(gradix.grad(lambda x: gradix.jit(slope)(x, 2.0)))(1.0), 0.0)


def test_derivatives_in_them_are_refused():
    for f in (lambda n: scaled(jnp.sin, 1.0, n), gradix.jit(lambda n: scaled(jnp.sin, 1.0, n))):
        with pytest.raises(UnexpectedTracerError, match="nondiff_argnums"):
            gradix.grad(f)(3.0)


@gradix.custom_vjp
def power(x, kind, options):
    return x ** options["n"] if kind == "power" else x


power.defvjp(
    lambda x, kind, options: (power(x, kind, options), (x, kind)),
    lambda res, ct: (ct * res[0] * (10 if res[1] == "power" else 1), None, {"n": None, "f": None}),
)


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit, gradix.vmap], ids=["eager", "jit", "vmap"])
def test_arguments_that_are_no_arrays(wrap):
    x = jnp.arange(1.0, 4.0)
    f = lambda x: power(x, "power", {"n": 2.0, "f": jnp.sin})
    np.testing.assert_allclose(wrap(f)(x), x**2)
    np.testing.assert_allclose(gradix.grad(lambda x: wrap(f)(x).sum())(x), 10 * x)
    np.testing.assert_allclose(
        gradix.grad(lambda x: wrap(lambda x: power(x, options={"n": 1, "f": None}, kind="id"))(x).sum())(x), x
    )


def test_no_arrays_in_custom_jvp():
    f = gradix.custom_jvp(lambda x, kind: x**2)

    @f.defjvp
    def rule(primals, tangents):
        (x, kind), (t, none) = primals, tangents
        assert kind == "square" and none is None
        return x**2, 20 * x * t

    for g in (
        gradix.grad(lambda x: f(x, "square")),
        gradix.jit(gradix.grad(gradix.jit(lambda x: f(x, kind="square")))),
    ):
        assert float(g(3.0)) == 60.0


WRAPPED = {
    "plain": lambda f: gradix.grad(f),
    "jit": lambda f: gradix.jit(gradix.grad(f)),
    "of jit": lambda f: gradix.grad(gradix.jit(f)),
    "vmap": lambda f: lambda x: gradix.vmap(gradix.grad(f))(jnp.stack([x, x]))[0],
    "of vmap": lambda f: gradix.grad(lambda x: gradix.vmap(f)(jnp.stack([x, 0 * x])).sum()),
    "of scan": lambda f: gradix.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]),
}


@pytest.mark.parametrize("wrap", WRAPPED)
def test_symbolic_zeros_of_custom_jvp(wrap):
    seen = []
    f = gradix.custom_jvp(lambda x, y, n: (x * y, x + n))

    def rule(primals, tangents):
        (x, y, n), (tx, ty, tn) = primals, tangents
        seen.append(
            (type(tx) is SymbolicZero, type(ty) is SymbolicZero, type(tn) is SymbolicZero, ty.shape, str(tn.dtype))
        )
        return (x * y, x + n), (5 * tx * y, ty)

    f.defjvp(rule, symbolic_zeros=True)
    got = WRAPPED[wrap](lambda x: sum(f(x, 2.0, 3)))(jnp.float32(4.0))
    assert float(got) == 10.0
    assert seen and set(seen) == {(False, True, True, (), "[('float0', 'V')]")}


@pytest.mark.parametrize("wrap", WRAPPED)
def test_symbolic_zeros_of_custom_vjp(wrap):
    seen = []
    f = gradix.custom_vjp(lambda x, p: (x * p["y"], x))

    def fwd(x, p):
        assert isinstance(x, CustomVJPPrimal) and isinstance(p["y"], CustomVJPPrimal)
        values = custom_vjp_primal_tree_values((x, p))
        return (values[0] * values[1]["y"], values[0]), (values[1]["y"], x.perturbed, p["y"].perturbed)

    def bwd(res, ct):
        y, *perturbed = res
        seen.append((*perturbed, type(ct[0]) is SymbolicZero, type(ct[1]) is SymbolicZero))
        return 3 * y * ct[0], {"y": zero_from_primal(y, symbolic_zeros=True)}

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert float(WRAPPED[wrap](lambda x: f(x, {"y": 2.0})[0])(jnp.float32(4.0))) == 6.0
    if wrap != "of scan":
        assert set(seen) == {(True, False, False, True)}
    assert (
        float(f(3.0, {"y": 2.0})[0]) == 6.0
        and float(gradix.jvp(lambda x: f(x, {"y": 2.0})[0], (3.0,), (1.0,))[1]) == 2.0
    )


def test_zeros_of_values():
    assert zero_from_primal(2.0) == 0.0 and zero_from_primal(2).dtype == gradix.float0
    zero = zero_from_primal(np.ones((2, 3), "f4"), symbolic_zeros=True)
    assert (zero.shape, zero.ndim, zero.size, zero.dtype, zero.weak_type) == ((2, 3), 2, 6, np.float32, False)
    assert zero == SymbolicZero.from_primal_value(np.ones((2, 3), "f4")) and zero != SymbolicZero.from_primal_value(1.0)
    assert repr(CustomVJPPrimal(1.0, True)) == "CustomVJPPrimal(value=1.0, perturbed=True)"
    with pytest.raises(TypeError, match="symbolic_zeros=True"):
        custom_vjp_primal_tree_values((1.0,))


def _with_default(kind):
    if kind == "jvp":
        f = gradix.custom_jvp(lambda x, *, n=2: x * n)
        f.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 5))
    else:
        f = gradix.custom_vjp(lambda x, *, n=2: x * n)
        f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 5,))
    return f


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_keyword_only_arguments_keep_their_defaults(kind):
    f = _with_default(kind)
    assert f(3.0) == 6 and f(x=3.0) == 6 and gradix.grad(f)(3.0) == 5 and gradix.jit(gradix.grad(f))(3.0) == 5
    assert gradix.vmap(gradix.grad(f))(np.ones(2, "f4")).tolist() == [5, 5]
    with pytest.raises(TypeError, match=r"cannot receive the keyword-only arguments \['n'\]"):
        f(3.0, n=4)


def test_symbolic_zeros_stay_symbolic_through_vmap():
    seen = []

    @gradix.custom_jvp
    def second(x, y):
        return y

    def rule(primals, tangents):
        seen.append(type(tangents[1]).__name__)
        return primals[1], tangents[1]

    second.defjvp(rule, symbolic_zeros=True)
    x = jnp.ones(3)
    out, t = gradix.jvp(gradix.vmap(lambda x: second(x, second(x, 1.0))), (x,), (x,))
    assert seen == ["SymbolicZero"] * 2 and out.tolist() == [1.0] * 3 and t.tolist() == [0.0] * 3
