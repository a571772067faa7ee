"""Copies that outlive the array they are made of, and constructors that give a new array each time."""

import numpy as np
import pytest

import gradix as gx
import gradix.numpy as jnp

N = len(gx.devices())
give_up = gx.jit(lambda a: a + 1, donate_argnums=0)


@pytest.mark.parametrize(
    "copy",
    [
        jnp.copy,
        jnp.array,
        lambda x: jnp.asarray(x, copy=True),
        lambda x: x.copy(),
        lambda x: gx.device_put(x, may_alias=False),
    ],
)
@pytest.mark.parametrize("size", [3, 10_000])
def test_a_donated_copy_leaves_the_original(copy, size):
    for x in (gx.jit(lambda: jnp.arange(size) * 1.0)(), jnp.arange(size) * 1.0):
        y = copy(x)
        give_up(y)
        assert y.is_deleted() and not x.is_deleted()
        np.testing.assert_array_equal(give_up(x), np.arange(size) + 1.0)


def test_a_copy_lies_where_the_original_does():
    mesh = gx.make_mesh((N,), ("x",))
    x = gx.device_put(jnp.arange(2.0 * N), gx.NamedSharding(mesh, gx.P("x")))
    y = jnp.array(x)
    assert y.sharding == x.sharding
    x.delete()
    np.testing.assert_array_equal(y, np.arange(2.0 * N))


def test_each_scalar_made_is_a_new_array():
    for make in (
        lambda: jnp.zeros(()),
        lambda: jnp.ones(()),
        lambda: jnp.empty(()),
        lambda: jnp.full((), 2.0),
        lambda: jnp.array(1.5),
    ):
        first, second = make(), make()
        assert first is not second and first == second
        first.delete()
        assert first.is_deleted() and not second.is_deleted() and not make().is_deleted()


def test_asarray_gives_an_array_itself():
    x = jnp.ones(3)
    assert jnp.asarray(x) is x and jnp.array(x, copy=False) is x


def test_a_branch_given_twice_is_traced_once():
    calls = []

    def f(x):
        calls.append(x)
        return 2.0 * x

    assert gx.lax.cond(False, f, f, 3.0) == 6.0 and len(calls) == 1
    calls.clear()
    assert gx.lax.switch(1, [f, lambda x: -x, f], 3.0) == -3.0 and len(calls) == 1
    assert gx.grad(lambda x: gx.lax.switch(2, [f, lambda x: -x, f], x))(3.0) == 2.0


def test_a_checkpointed_function_is_traced_wherever_it_is_called():
    seen = []
    f = gx.checkpoint(lambda x: seen.append(x) or x * x)
    assert f(3.0) == 9.0 and isinstance(seen[0], gx.core.Tracer)
