"""Names of scopes, functions and transformations, in jaxprs, lowered text and compiled programs."""

import linecache
import re

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.extend import source_info_util
from gradix.extend.core import jaxprs_in_params


def names(jaxpr) -> list:
    """(primitive, names around it) of all equations, those of inner programs after the equation that holds them."""
    found = []
    for e in jaxpr.eqns:
        found.append((e.primitive.name, str(e.source_info.name_stack)))
        for inner in jaxprs_in_params(e.params):
            found += names(inner)
    return found


def op_names(text: str) -> set:
    return set(re.findall(r'op_name="([^"]*)"', text))


def locations(text: str) -> set:
    return set(re.findall(r'loc\("([^"]*)"\(', text))


@gradix.custom_jvp
def softened(x):
    return jnp.sin(x)


softened.defjvp(lambda p, t: (jnp.sin(p[0]), jnp.cos(p[0]) * t[0]))


@gradix.checkpoint
def block(h):
    with gradix.named_scope("block"):
        return jnp.sin(jnp.cos(h))


def model(w, x):
    with gradix.named_scope("layer"):
        h = jnp.tanh(w @ x)
    h, _ = lax.scan(lambda c, _: (jnp.sin(c), None), block(h), None, length=3)
    h = lax.cond(h.sum() > 0, jnp.exp, lambda c: c, h)
    with gradix.named_scope("head"):
        h = gradix.jit(gradix.named_call(lambda z: jnp.log(z), name="inner"))(h)
        return (softened(h) * h).sum()


ARGS = jnp.ones((3, 3)), jnp.ones(3)


def test_equations_tell_scopes_and_transformations_around_them():
    found = names(gradix.make_jaxpr(gradix.grad(model))(*ARGS))
    assert {
        ("tanh", "jvp(layer)"),
        ("dot_general", "transpose(jvp(layer))"),
        ("scan", "jvp()"),
        ("scan", "transpose(jvp())"),
        ("cond", "transpose(jvp())"),
        ("jit", "jvp(head)"),
        ("log", "inner"),
        ("div", "inner"),
        ("cos", "jvp(head)"),
        ("mul", "transpose(jvp(head))"),
        ("add_any", "transpose(jvp(head))"),
    } <= set(found)
    assert all(stack for name, stack in found if name in ("dot_general", "tanh", "scan", "cond", "jit", "reduce_sum"))
    again = [name for name, stack in found if stack == "rematted_computation/block"]
    assert (
        sorted(again) == ["cos", "cos", "sin"] and ("mul", "block") in found and ("remat2", "transpose(jvp())") in found
    )
    mapped = names(gradix.make_jaxpr(gradix.vmap(gradix.grad(model), (None, 0)))(ARGS[0], ARGS[1][None]))
    assert ("tanh", "vmap(jvp(layer))") in mapped and ("dot_general", "vmap(transpose(jvp(layer)))") in mapped


def test_names_outside_of_a_transformation_stand_before_it():
    def f(x):
        with gradix.named_scope("a"):
            return gradix.grad(gradix.named_call(jnp.sin, name="b"))(x)

    assert names(gradix.make_jaxpr(f)(1.0)) == [
        ("sin", "a/jvp(b)"),
        ("cos", "a/jvp(b)"),
        ("mul", "a/transpose(jvp(b))"),
    ]
    forward = names(gradix.make_jaxpr(lambda x: gradix.jvp(jnp.sin, (x,), (x,)))(1.0))
    assert forward == [("sin", "jvp()"), ("cos", "jvp()"), ("mul", "jvp()")]
    twice = names(gradix.make_jaxpr(gradix.grad(gradix.grad(gradix.named_call(lambda x: x**3, name="b"))))(1.0))
    assert all("b" in stack and stack.count("jvp") == 2 for _, stack in twice if stack and "transpose" not in stack)


def test_lowered_and_compiled_programs_name_operations_in_loops_and_branches():
    def f(x):
        with gradix.named_scope("outer"):
            y = jnp.sin(x)
        y = lax.while_loop(lambda c: c.sum() < 10, lambda c: jnp.exp(c) + 1, y)
        return lax.cond(y.sum() > 0, jnp.cos, jnp.tan, y).sum()

    lowered = gradix.jit(f).lower(jnp.ones(3))
    expected = {
        "jit(f)/outer/sin",
        "jit(f)/while/body/exp",
        "jit(f)/while/cond/lt",
        "jit(f)/while",
        "jit(f)/reduce_sum",
        "jit(f)/cond/branch_1_fun/cos",
    }
    assert expected <= locations(lowered.as_text(debug_info=True)) and " loc(" not in lowered.as_text()
    assert expected - {"jit(f)/while"} <= op_names(lowered.compile().as_text())
    grad = gradix.jit(gradix.grad(model)).lower(*ARGS).compile().as_text()
    assert {
        "jit(model)/transpose(jvp(layer))/dot_general",
        "jit(model)/transpose(jvp())/checkpoint/block/mul",
        "jit(model)/jvp(head)/jit(<lambda>)/inner/log",
    } <= op_names(grad)


def test_equal_programs_of_two_scopes_keep_their_names():
    @gradix.jit
    def f(x):
        for name in ("first", "second"):
            with gradix.named_scope(name):
                x = lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), x)
        return x

    lowered = f.lower(jnp.ones(3))
    for found in (locations(lowered.as_text(debug_info=True)), op_names(lowered.compile().as_text())):
        for name in ("first", "second"):
            assert any(n.endswith(f"jit(f)/{name}/while/body/sin") for n in found)


def test_interpreters_keep_and_give_names():
    closed = gradix.make_jaxpr(model)(*ARGS)

    def interpret(closed, *args):
        env = dict(zip(closed.jaxpr.invars, args)) | dict(zip(closed.jaxpr.constvars, closed.consts))
        for eqn in closed.jaxpr.eqns:
            stack = source_info_util.current_name_stack() + eqn.source_info.name_stack
            with source_info_util.user_context(eqn.source_info.traceback, name_stack=stack):
                ins = [v.val if hasattr(v, "val") else env[v] for v in eqn.invars]
                out = eqn.primitive.bind(*ins, **eqn.params)
            env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out]))
        return [env[v] for v in closed.jaxpr.outvars]

    def scoped(*args):
        with gradix.named_scope("again"):
            return interpret(closed, *args)

    again = gradix.make_jaxpr(scoped)(*ARGS)
    (tanh,) = (e for e in again.eqns if e.primitive.name == "tanh")
    assert str(tanh.source_info.name_stack) == "again/layer"
    assert "tanh" in linecache.getline(tanh.source_info.file, tanh.source_info.line)
    ours = gradix.named_call(lambda *args: gradix.core.eval_jaxpr(closed.jaxpr, closed.consts, *args), name="more")
    assert ("tanh", "more/layer") in names(gradix.make_jaxpr(ours)(*ARGS))


def test_name_stacks_are_values():
    stack = source_info_util.new_name_stack("a").transform("jvp").extend("b")
    assert str(stack) == "a/jvp(b)" and str(stack + source_info_util.new_name_stack("c")) == "a/jvp(b)/c"
    assert stack == source_info_util.new_name_stack("a").transform("jvp").extend("b") and hash(stack) == hash(
        stack.extend(())
    )
    with source_info_util.set_name_stack(stack), source_info_util.extend_name_stack("d"):
        assert str(source_info_util.current_name_stack()) == "a/jvp(b)/d"
        with source_info_util.reset_name_stack(), source_info_util.transform_name_stack("f"):
            assert str(source_info_util.current_name_stack()) == "f()"
    assert not source_info_util.current_name_stack()
    with pytest.raises(ZeroDivisionError), gradix.named_scope("left"):
        1 / 0
    assert not source_info_util.current_name_stack()
