"""Branches: their types, prints, errors, and derivatives where a branch is not taken."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._transforms.dce import dce_jaxpr
from gradix.experimental import io_callback

f32 = np.float32
X = np.arange(3, dtype=f32)


def printed(f, *args):
    return " ".join(str(gradix.make_jaxpr(f)(*args)).split())


@pytest.mark.parametrize("pred", [True, False, 3, 0.0, np.bool_(True), np.float32(2), jnp.array(False), jnp.int8(1)])
def test_any_scalar_is_a_predicate(pred):
    want = 2 if pred else 0
    assert lax.cond(pred, lambda x: x + 1, lambda x: x - 1, 1) == want
    assert gradix.jit(lambda p: lax.cond(p, lambda x: x + 1, lambda x: x - 1, 1))(pred) == want


def test_operand_forms():
    assert lax.cond(True, lambda x: x, lambda x: -x, operand=2) == 2
    assert lax.cond(False, lambda _: 1, lambda _: 2, operand=None) == 2
    assert lax.cond(True, 1, lambda x: x + 1, 5, lambda x: x - 1) == 2
    assert lax.cond(True, lambda a, b: {"s": a["x"] + b}, lambda a, b: {"s": b}, {"x": 1}, 2)["s"] == 3


def test_prints():
    assert printed(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), True, X) == (
        "{ lambda ; a:bool[] b:f32[3]. let c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a "
        "d:f32[3] = cond[ "
        "branches=( { lambda ; e:f32[3]. let f:f32[3] = cos e in (f,) } { lambda ; g:f32[3]. let h:f32[3] = sin "
        "g in (h,) } ) "
        "] c b in (d,) }"
    )
    branches = [lambda x: x, lambda x: -x, lambda x: x * x]
    assert printed(lambda i, x: lax.switch(i, branches, x), np.int32(1), f32(2)) == (
        "{ lambda ; a:i32[] b:f32[]. let c:i32[] = clamp 0:i32[] a 2:i32[] d:f32[] = cond[ branches=( { lambda "
        "; e:f32[]. let in "
        "(e,) } { lambda ; f:f32[]. let g:f32[] = neg f in (g,) } { lambda ; h:f32[]. let i:f32[] = mul h h in "
        "(i,) } ) ] c b in "
        "(d,) }"
    )


def test_captured_values_are_shared_among_branches():
    def f(p, a, b):
        return lax.cond(p, lambda x: x * a, lambda x: x * b + a, X)

    jaxpr = gradix.make_jaxpr(f)(True, f32(1), f32(2))
    eqn = jaxpr.eqns[-1]
    assert len(eqn.invars) == 4
    assert [len(b.in_avals) for b in eqn.params["branches"]] == [3, 3]


@pytest.mark.x32
@pytest.mark.parametrize("pred", [True, False])
def test_weak_types_join(pred):
    assert lax.cond(pred, lambda: 1.0, lambda: 2.0).weak_type
    joined = lax.cond(pred, lambda: 1.0, lambda: jnp.float32(2))
    assert joined.dtype == f32 and not joined.weak_type
    tangent = gradix.jvp(lambda x: lax.cond(pred, lambda: x, lambda: jnp.float32(2)), (1.0,), (1.0,))[0]
    assert not tangent.weak_type


def test_only_the_chosen_branch_runs():
    seen = []

    def noting(tag):
        return lambda x: gradix.debug.callback(lambda v: seen.append(tag), x)

    def choose(p):
        return lax.cond(p, noting("t"), noting("f"), p)

    for f in (choose, gradix.jit(choose)):
        f(True)
        f(False)
        gradix.effects_barrier()
    assert seen == ["t", "f"] * 2


def test_switch_clamps():
    branches = [lambda: 10, lambda: 11, lambda: 12]
    for i, want in ((-5, 10), (1, 11), (9, 12), (np.uint8(200), 12), (jnp.int16(-3), 10)):
        assert lax.switch(i, branches) == want
        assert gradix.jit(lambda i: lax.switch(i, branches))(i) == want
    assert lax.switch(7, [lambda x: x * 2], 3) == 6


def test_derivatives_of_branches_not_taken_are_zero():
    def f(p, x):
        return lax.cond(p, lambda x: jnp.log(x), lambda x: x * 2, x)

    got = gradix.vmap(gradix.grad(f, 1))(np.array([True, False]), np.array([2.0, 0.0], f32))
    np.testing.assert_allclose(got, [0.5, 2])


def test_residuals_of_branches_share_places():
    def f(p, x):
        return lax.cond(p, lambda x: jnp.sin(x).sum(), lambda x: jnp.exp(x).sum(), x)

    eqn = gradix.make_jaxpr(gradix.grad(f, 1))(True, X).eqns[-2]
    (known,) = [e for e in gradix.make_jaxpr(gradix.grad(f, 1))(True, X).eqns if e.primitive is lax.cond_p][:1]
    assert [v.aval.str_short() for v in known.outvars] == ["float32[]", "float32[3]"], eqn


@pytest.mark.x32
def test_unmapped_predicate_stays_a_branch():
    f = gradix.vmap(lambda p, x: lax.cond(p, lambda x: x * 2, lambda x: 1.0, x), (None, 0))
    assert "cond[" in printed(f, True, X)
    np.testing.assert_allclose(f(False, X), [1, 1, 1])


def test_a_mapped_predicate_with_ordered_io_is_refused():
    def tell(x):
        io_callback(lambda v: None, None, x, ordered=True)
        return x

    with pytest.raises((NotImplementedError, ValueError)):
        gradix.vmap(lambda p, x: lax.cond(p, tell, lambda x: x, x))(np.array([True, False]), X[:2])


def test_dead_results_are_dropped():
    def f(p, x, y):
        return lax.cond(p, lambda x, y: (x + 1, jnp.sin(y)), lambda x, y: (x, jnp.cos(y)), x, y)[0]

    jaxpr, used = dce_jaxpr(gradix.make_jaxpr(f)(True, X, X).jaxpr)
    assert "sin" not in str(jaxpr) and "cos" not in str(jaxpr) and used == [True, True, False]


@pytest.mark.x32
@pytest.mark.parametrize(
    "error, match, call",
    [
        (TypeError, "Pred must be a scalar, got [0. 1. 2.] of shape (3,)", lambda: lax.cond(X, jnp.sin, jnp.cos, X)),
        (TypeError, "cond predicate is None", lambda: lax.cond(None, jnp.sin, jnp.cos, X)),
        (
            TypeError,
            "Pred type must be either boolean or number, got complex64",
            lambda: lax.cond(1j, jnp.sin, jnp.cos, X),
        ),
        (TypeError, "true_fun and false_fun arguments should be callable", lambda: lax.cond(True, 1, jnp.cos, X)),
        (
            TypeError,
            "at path ['b'] has type float32[3] but the corresponding output of false_fun has type "
            "float32[2], so the shapes",
            lambda: lax.cond(True, lambda x: {"a": x, "b": x}, lambda x: {"a": x.astype(int), "b": x[:2]}, X),
        ),
        (
            TypeError,
            "true_fun output is a tuple with 1 child but false_fun output is a list with 1 child",
            lambda: lax.cond(True, lambda x: (x,), lambda x: [x], X),
        ),
        (
            TypeError,
            "no positional operands can be passed",
            lambda: lax.cond(True, lambda x: x, lambda x: x, X, operand=X),
        ),
        (ValueError, "Empty branch sequence", lambda: lax.switch(0, [])),
        (
            TypeError,
            "Index type must be an integer, got 1.0 as float32",
            lambda: lax.switch(1.0, [lambda: 1, lambda: 2]),
        ),
        (TypeError, "Branch index must be scalar", lambda: lax.switch(np.ones(2, int), [lambda: 1, lambda: 2])),
        (
            TypeError,
            "The output of branch 0 has type float32[3] but the corresponding output of branch 1 has type float32[1]",
            lambda: lax.switch(1, [lambda x: x, lambda x: x[:1], lambda x: x], X),
        ),
    ],
)
def test_errors(error, match, call):
    with pytest.raises(error) as e:
        call()
    assert match in str(e.value)
