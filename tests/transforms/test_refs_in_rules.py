"""Reverse-mode rules that write to refs (mutable arrays) behind calls, loops and branches."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp


@gradix.custom_vjp
def noted(ref, x):
    return x


def _backward(ref, ct):
    ref[...] = 10 * ref[...] + ct
    return None, ct


noted.defvjp(lambda ref, x: (x, ref), _backward)


def twice(ref, x):
    x = noted(ref, jnp.sin(x))
    return noted(ref, jnp.sin(x))


def in_loop(ref, x, wrap=lambda body: body):
    def body(x, _):
        return jnp.sin(noted(ref, jnp.sin(x))), None

    return gradix.lax.scan(wrap(body), x, None, length=2)[0]


def in_branch(ref, x):
    return gradix.lax.cond(x > 0, lambda x: noted(ref, jnp.sin(x)), lambda x: 2 * x, x)


FUNCTIONS = {
    "call": twice,
    "loop": in_loop,
    "loop of checkpoint": functools.partial(in_loop, wrap=gradix.checkpoint),
    "branch": in_branch,
}


def gradients(function, outer=lambda f: f):
    """The gradient in x of two applications, and what the two refs hold after it."""
    first, second = gradix.new_ref(jnp.float32(0)), gradix.new_ref(jnp.float32(0))

    @outer
    def both(a, b, x):
        return gradix.grad(lambda x: function(a, x) + 2 * function(b, x))(x)

    return [float(v) for v in (both(first, second, jnp.float32(1)), first[...], second[...])]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_the_rule_writes_arrives_in_the_ref_given(name):
    function = FUNCTIONS[name]
    expected = gradients(function)
    assert expected[2] == pytest.approx(2 * expected[1], rel=1e-6) and expected[1] != 0
    again = gradix.jit(function)
    for got in (
        gradients(again),
        gradients(lambda ref, x: gradix.jit(again)(ref, x)),
        gradients(gradix.checkpoint(again)),
        gradients(again, outer=gradix.jit),
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("which, held", [(0.0, (1.0, 0.0)), (1.0, (0.0, 1.0)), (2.0, (0.0, 0.0))])
def test_each_branch_writes_to_its_own_ref(which, held):
    refs = [gradix.new_ref(jnp.float32(0)) for _ in range(2)]

    @gradix.jit
    def chosen(refs, x):
        branches = [lambda x: noted(refs[0], x), lambda x: noted(refs[1], 3 * x), lambda x: x]
        return gradix.lax.switch(jnp.int32(x), branches, x)

    gradix.grad(chosen, 1)(refs, which)
    assert tuple(float(r[...]) for r in refs) == held


def test_a_captured_ref_gets_what_each_call_writes():
    ref = gradix.new_ref(jnp.float32(0))
    slope = gradix.grad(gradix.jit(lambda x: noted(ref, x * x)))
    for expected in (1.0, 11.0, 111.0):
        slope(3.0)
        assert float(ref[...]) == expected


def test_primals_of_vjp_may_be_refs():
    ref = gradix.new_ref(jnp.float32(0))
    for function in (noted, gradix.jit(noted)):
        value, pull = gradix.vjp(lambda x, ref: 2 * function(ref, x), 3.0, ref)
        ct, of_ref = pull(1.0)
        assert (float(value), float(ct), float(of_ref[...])) == (6.0, 2.0, 0.0)
    assert float(ref[...]) == 22.0


def test_loops_without_a_number_of_steps_refuse():
    ref = gradix.new_ref(jnp.float32(0))

    @gradix.jit
    def root(x):
        return gradix.lax.while_loop(lambda v: v < 0.5, lambda v: noted(ref, 2 * v), x)

    with pytest.raises(NotImplementedError, match="is written to in"):
        gradix.grad(root)(0.1)


@pytest.mark.parametrize("decorator", [gradix.custom_vjp, gradix.custom_jvp])
@pytest.mark.parametrize("jit", [False, True])
def test_functions_of_nothing_but_refs_are_differentiated_themselves(decorator, jit):
    @decorator
    def read(ref):
        return 3 * ref[...]

    if decorator is gradix.custom_vjp:
        read.defvjp(lambda ref: (read(ref), None), lambda _, g: (g,))
    else:
        read.defjvp(lambda primals, tangents: (read(*primals), 100.0))
    call = gradix.jit(read) if jit else read
    assert call(gradix.new_ref(2.0)) == 6
    value, slope = gradix.value_and_grad(lambda x: call(gradix.new_ref(x)) ** 2)(2.0)
    assert (value, slope) == (36, 36)
