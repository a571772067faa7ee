"""Attributes on operations, through transformations and control flow, to the compiled program."""

import re

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental.xla_metadata import set_xla_metadata


def tagged(f, *args) -> dict:
    """The operations of the lowered text that have attributes, with these."""
    found = {}
    for line in gradix.jit(f).lower(*args)._module.text.splitlines():
        attributes = re.search(r"mhlo.frontend_attributes = \{([^{}]*)\}", line)
        if attributes and (name := re.search(r'"(?:stablehlo|func|chlo)\.(\w+)"', line) or re.match(r"}\)", line)):
            found.setdefault(name[1] if name.re.groups else "region", set()).add(attributes[1])
    return found


def test_what_is_recorded_inside_has_attributes():
    def f(x):
        with set_xla_metadata(key="v", n=3, flag=True):
            y = jnp.sin(x)
            with set_xla_metadata(n=None, **{"odd-name": 'a "b"'}):
                y = jnp.tanh(y)
        return jnp.cos(y)

    got = tagged(f, 1.0)
    assert got == {
        "sine": {'key = "v", n = "3", flag = "true"'},
        "tanh": {'key = "v", flag = "true", "odd-name" = "a \\22b\\22"'},
    }
    assert 'key="v"' in gradix.jit(f).lower(1.0).compile().as_text()
    assert tagged(set_xla_metadata(a="b")(jnp.log), 1.0) == {"log": {'a = "b"'}}


def test_loops_branches_and_calls_inside_have_them():
    inner = gradix.jit(lambda x: jnp.log(x))
    inner(2.0)  # traced before, without

    def f(x):
        with set_xla_metadata(key="v"):
            y = lax.while_loop(lambda c: c.sum() < 10, lambda c: jnp.exp(c), x)
            y = lax.cond(y.sum() > 0, jnp.sinh, jnp.cosh, y)
            return inner(jnp.cumsum(y))

    got = tagged(f, jnp.ones(3))
    assert {"exponential", "compare", "region", "log"} <= set(got) and all(v == {'key = "v"'} for v in got.values())
    gradix.jit(f).lower(jnp.ones(3)).compile()
    assert tagged(inner, 3.0) == {}


def test_the_context_around_a_jitted_function_counts():
    f = gradix.jit(lambda x: jnp.sin(x))
    plain = f.lower(1.0).as_text()
    with set_xla_metadata(key="v"):
        assert 'key = "v"' in f.lower(1.0).as_text()
        f(1.0)
    assert f.lower(1.0).as_text() == plain and f.stats().traces == 2


def test_derivatives_and_mapped_functions_have_them():
    def f(x):
        with set_xla_metadata(key="v"):
            return (jnp.sin(x) * x).sum()

    for g in (gradix.grad(f), gradix.vmap(f), gradix.jit(gradix.grad(gradix.jit(f)))):
        assert {"sine", "multiply"} <= set(tagged(g, jnp.ones(3)))


def test_a_value_tags_the_operation_that_gives_it():
    def f(x):
        y = set_xla_metadata({"a": jnp.sin(x), "b": x}, tag="s")
        return y["a"] * 2 + y["b"], set_xla_metadata(lax.top_k(x, 2), tag="t")

    assert tagged(f, jnp.ones(3)) == {"sine": {'tag = "s"'}, "top_k": {'tag = "t"'}}
    x = jnp.arange(3.0)
    assert (gradix.vmap(gradix.grad(lambda x: set_xla_metadata(jnp.sin(x) * 2, a=1)))(x) == 2 * jnp.cos(x)).all()
    assert set_xla_metadata(3.0, a=1) == 3 and gradix.jvp(lambda x: set_xla_metadata(x, a=1), (x,), (x,))[1][2] == 2


def test_other_frontend_attributes_stay():
    def f(x):
        with set_xla_metadata(key="v"):
            return lax.fori_loop(0, 5, lambda i, c: jnp.sin(c), x) + gradix.random.normal(gradix.random.key(0), (3,))

    text = gradix.jit(f).lower(jnp.ones(3)).compile().as_text()
    assert 'key="v"' in text


def test_what_is_wrong_is_told():
    with pytest.raises(ValueError, match="set_xla_metadata"):
        gradix.config.update("gradix_xla_metadata", "x")
