"""What the function that vjp returns keeps, and what it does with cotangents."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import ad


def test_arguments_and_other_residuals():
    x, n = jnp.ones((2, 2)), jnp.full((2, 2), 3.0)
    y, pull = gradix.vjp(lambda x, n, k: jnp.sin(x @ n) + k, x, n, 2.0)
    assert pull.args_res[0] is x and pull.args_res[1] is n and repr(pull.args_res[2]) == "NotNeeded()"
    (kept,) = pull.opaque_residuals
    np.testing.assert_allclose(kept, np.cos(6.0) * np.ones((2, 2)), rtol=1e-5)
    assert [e.primitive.name for e in pull.jaxpr.eqns].count("dot_general") == 2
    assert len(pull.jaxpr.invars) == 3 and len(pull.jaxpr.constvars) == 3
    np.testing.assert_allclose(pull.fun([jnp.ones((2, 2))])[2], 4.0)
    assert pull.in_tree.num_leaves == 3 and pull.out_tree == gradix.tree.structure(y)


def test_an_argument_taken_away_and_given_back():
    x, n = jnp.ones((2, 2)), jnp.full((2, 2), 3.0)
    _, pull = gradix.vjp(lambda x, n, i: x @ n, x, n, 7)
    want = pull(jnp.ones((2, 2)))
    pull.args_res[1] = None
    with pytest.raises(ValueError, match=r"argument 1.*args_res\[1\]"):
        pull(jnp.ones((2, 2)))
    pull.args_res[1] = n
    for a, b in zip(pull(jnp.ones((2, 2)))[:2], want):
        np.testing.assert_array_equal(a, b)
    pull.args_res[1] = 2 * n
    np.testing.assert_array_equal(pull(jnp.ones((2, 2)))[0], 2 * want[0])


def test_cotangents_into_refs():
    _, pull = gradix.vjp(lambda d, y: d["a"] * d["b"] * y, {"a": 2.0, "b": 3.0}, 4.0)
    total = gradix.new_ref(jnp.float32(10.0))
    into = pull.with_refs({"a": total, "b": ad.GradValue()}, ad.DontWant())
    for _ in range(2):
        first, second = into(1.0)
    assert first["a"] == ad.GradRef() and float(first["b"]) == 8.0 and second == ad.DidntWant()
    assert float(total[...]) == 34.0

    @gradix.jit
    def accumulate(total, x):
        _, pull = gradix.vjp(lambda x: x**2, x)
        pull.with_refs(total)(1.0)

    accumulate(total, 3.0)
    assert float(total[...]) == 40.0
    for wrong in ((total,), (None, None), ({"a": total, "b": total}, "yes")):
        with pytest.raises(TypeError, match="with_refs"):
            pull.with_refs(*wrong)


def test_a_pullback_that_has_been_through_jit():
    f = gradix.jit(lambda x: gradix.vjp(lambda x: jnp.sin(x) * 2, x))
    _, pull = f(1.0)
    assert repr(pull.args_res) == "[NotNeeded()]" and len(pull.opaque_residuals) >= 1
    np.testing.assert_allclose(pull(1.0)[0], 2 * np.cos(1.0), rtol=1e-6)


def test_places_of_cotangents_leave_jitted_functions():
    _, pull = gradix.vjp(lambda x, y: x * y, 2.0, 3.0)
    taken = pull.with_refs(gradix.ad.DontWant(), gradix.ad.GradValue())
    assert gradix.jit(taken)(1.0) == (gradix.ad.DidntWant(), 2.0)

    @gradix.jit
    def added(ct):
        total = gradix.new_ref(10.0)
        return pull.with_refs(total, gradix.ad.DontWant())(ct), total[...]

    assert added(1.0) == ((gradix.ad.GradRef(), gradix.ad.DidntWant()), 13.0)


def test_residuals_are_replaced_in_the_trees_of_arguments():
    y, pull = gradix.vjp(lambda x, z: [x["a"] * x["b"] * z], {"a": 2.0, "b": 3.0}, 5.0)
    pull.args_res = [None, 5.0]
    with pytest.raises(ValueError, match="taken away"):
        pull([1.0])
    pull.args_res = [{"a": 2.0, "b": 4.0}, 1.0]
    x, z = pull([1.0])
    assert (float(x["a"]), float(x["b"]), float(z)) == (4.0, 2.0, 6.0)  # a * b is kept as it was
    with pytest.raises(ValueError, match="each of the 3 inputs.*each of its 2 arguments; got 1"):
        pull.args_res = [None]


@pytest.mark.promotes
def test_cotangents_are_not_promoted_where_promotion_is_strict():
    turn = gradix.linear_transpose(lambda x: 1j * x, 1.0)
    assert turn(2j)[0] == -2 and turn(1.0)[0] == 0
    with gradix.numpy_dtype_promotion("strict"), pytest.raises(TypeError, match="cotangent type does not match"):
        turn(1.0)


def test_cotangents_that_are_not_wanted_are_not_computed():
    x, ct = jnp.arange(3.0), jnp.ones(3)
    for f in (lambda x, y, n: x * y, lambda x, y, n: gradix.lax.scan(lambda c, r: (c * r, c), x, y[None])[0]):
        pull = gradix.vjp(f, x, x + 1, 2)[1]
        whole = pull(ct)
        for want in range(2):
            part = pull.with_refs(*[ad.GradValue() if i == want else ad.DontWant() for i in range(3)])
            assert part(ct)[want].tolist() == whole[want].tolist()
            assert [type(c).__name__ for i, c in enumerate(part(ct)) if i != want] == ["DidntWant"] * 2
    pull = gradix.vjp(lambda x, y: x * y, x, x + 1)[1].with_refs(ad.DontWant(), ad.GradValue())
    assert [str(e.primitive) for e in gradix.make_jaxpr(pull)(ct).eqns] == ["mul"]
    nothing = gradix.vjp(lambda x: x * 2, x)[1].with_refs(ad.DontWant())
    assert not gradix.make_jaxpr(nothing)(ct).eqns
