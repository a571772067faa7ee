"""Donated arguments: which are, what becomes of them, and what must not."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp


def taken(n=4):
    return jnp.arange(float(n)) + 1


@pytest.mark.parametrize(
    "options, call",
    [
        ({"donate_argnums": 1}, lambda f, x: f(2.0, x)),
        ({"donate_argnums": (1,)}, lambda f, x: f(2.0, x=x)),
        ({"donate_argnums": -1}, lambda f, x: f(2.0, x)),
        ({"donate_argnames": "x"}, lambda f, x: f(2.0, x)),
        ({"donate_argnames": "x"}, lambda f, x: f(2.0, x=x)),
        ({"donate_argnums": 1, "static_argnums": 0}, lambda f, x: f(2, x)),
        ({"donate_argnames": "x", "static_argnames": "n"}, lambda f, x: f(x=x, n=2)),
    ],
    ids=lambda v: str(v) if isinstance(v, dict) else "call",
)
def test_which_arguments(options, call):
    f = gradix.jit(lambda n, x: x * n, **options)
    for _ in range(2):  # traced, and from the cache
        x = taken()
        np.testing.assert_array_equal(call(f, x), [2, 4, 6, 8])
        assert x.is_deleted()


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        np.asarray,
        repr,
        float,
        lambda x: gradix.jit(jnp.sin)(x),
        lambda x: gradix.grad(lambda y: (y * y).sum())(x),
        lambda x: x.sum(),
    ],
    ids=["add", "numpy", "repr", "float", "jit", "grad", "method"],
)
@pytest.mark.parametrize(
    "give_up",
    [lambda x: gradix.jit(lambda x: x + 1, donate_argnums=0)(x), lambda x: x.delete()],
    ids=["donated", "deleted"],
)
def test_what_was_given_up_is_gone(give_up, use):
    x = taken()[:1]
    give_up(x)
    assert x.is_deleted() and x.shape == (1,)
    with pytest.raises(RuntimeError, match="Array has been deleted with shape=float32.1."):
        use(x)


def test_trees():
    update = gradix.jit(lambda p, g: gradix.tree_util.tree_map(lambda a, b: a - b, p, g), donate_argnums=0)
    p, g = {"a": jnp.ones(3), "b": jnp.zeros(2)}, {"a": jnp.ones(3), "b": jnp.ones(2)}
    q = update(p, g)
    np.testing.assert_array_equal(q["b"], [-1, -1])
    assert [v.is_deleted() for v in (*p.values(), *g.values())] == [True, True, False, False]


def test_numbers_are_shared_and_stay():
    f = gradix.jit(lambda x: x + 1, donate_argnums=0)
    assert [float(f(3.0)) for _ in range(3)] == [4, 4, 4]
    x = jnp.asarray(3.0)
    f(x)
    x.delete()
    assert jnp.asarray(3.0) * 2 == 6 and gradix.jit(lambda y: y * 3.0)(3.0) == 9


@pytest.mark.parametrize("n", [4, 400_000])
def test_memory_shared_with_others_is_not_written_to(n):
    x = taken(n)
    y, v = x.reshape(2, -1), np.asarray(x)
    gradix.jit(lambda a, b: (a + 1, b + 1))(x, y)  # both have buffers now
    gradix.jit(lambda x: x * 0 - 1, donate_argnums=0)(x)
    assert y[0, 0] == 1 and y[-1, -1] == n and v[0] == 1 and v[-1] == n
    assert gradix.jit(lambda y: y[0, 0])(y) == 1


def test_a_numpy_argument_is_not_written_to():
    x = np.ones(300_000, np.float32)
    gradix.jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.sum() == 300_000


def test_what_no_result_can_replace_stays_with_a_warning():
    x = taken()
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[4\]"):
        gradix.jit(lambda x: x.sum(), donate_argnums=0)(x)
    assert x[3] == 4
    gradix.jit(lambda x, y: y + 1, donate_argnums=0)(x, 1.0)  # unused: not part of the program
    assert x[3] == 4


def test_inside_another_function_nothing_is_donated():
    x, f = taken(), gradix.jit(lambda x: x + 1, donate_argnums=0)
    np.testing.assert_array_equal(gradix.jit(lambda x: f(x) + f(x))(x), [4, 6, 8, 10])
    np.testing.assert_array_equal(gradix.vmap(f)(x), x + 1)
    assert not x.is_deleted()


def test_donated_twice():
    x = taken()
    with pytest.raises(Exception, match="donate the same buffer twice"):
        gradix.jit(lambda x, y: (x + 1, y + 1), donate_argnums=(0, 1))(x, x)


def test_stages_donate_too():
    x = taken()
    compiled = gradix.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile()
    compiled(x)
    assert x.is_deleted()


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"donate_argnums": 5}, ValueError, "donate_argnums=.5,. but only accepts 1 positional"),
        ({"donate_argnames": "q"}, ValueError, "invalid argname 'q' in donate_argnames"),
        ({"donate_argnums": "x"}, TypeError, "donate_argnums must be an int"),
    ],
)
def test_errors(options, error, message):
    with pytest.raises(error, match=message):
        gradix.jit(lambda x: x, **options)
