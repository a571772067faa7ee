"""`debug.breakpoint`: the commands of the debugger, and what it sees from inside of compiled code."""

import io

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import debug, lax

F = jnp.float32


def stops(commands, f, *args, **options):
    """What `f(options of breakpoint)` returns for `args`, and the lines that the debugger wrote."""
    out, given = io.StringIO(), io.StringIO("".join(c + "\n" for c in commands))
    result = f({"stdin": given, "stdout": out, **options})(*args)
    gradix.effects_barrier()
    return result, out.getvalue().removeprefix("Entering jdb:\n").replace("(jdb) ", "").splitlines()


def nested(streams):
    def inner(a):
        b = a * 3
        debug.breakpoint(**streams)
        return b + 1

    def outer(x):
        local, word = {"of": [x + 1, "two"]}, "text"
        return inner(local["of"][0]) if word else None

    return outer


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
def test_values_of_the_functions_that_led_there(transform):
    commands = ["p b", "b + 1", "pp a", "p zzz", "p 1 +", "up", "p local", "p word", "down", "down", "where", "c"]
    result, lines = stops(commands, lambda streams: transform(nested(streams)), F(2))
    assert result == 10
    assert lines[:3] == ["Array(9., dtype=float32)", "Array(10., dtype=float32)", "Array(3., dtype=float32)"]
    assert lines[3] == "*** NameError: name 'zzz' is not defined" and lines[4].startswith("*** SyntaxError")
    text = "\n".join(lines)
    assert "{'of': [Array(3., dtype=float32), 'two']}" in lines and "'text'" in lines
    assert "->          return inner(local[" in text or "->      return inner(local[" in text
    assert "At bottommost frame." in lines
    trace = lines[lines.index("Traceback:") :]
    assert "outer" in trace[-4] and "inner" in trace[-2] and trace[-1].strip() == "debug.breakpoint(**streams)"


def test_commands_are_explained_and_all_variables_listed():
    _, lines = stops(["help", "help p", "help where", "locals", "list", "cont"], nested, F(2))
    text = "\n".join(lines)
    for name in ("p", "pp", "locals", "list", "where", "up", "down", "continue", "quit"):
        assert name in text.split()
    assert "p expression: show the value of an expression." in lines and any(
        x.startswith("b = Array(9.") for x in lines
    )
    assert any(x.startswith("->") and "debug.breakpoint" in x for x in lines)


def test_quit_ends_the_program_also_at_the_end_of_the_commands():
    for commands in (["q"], ["exit"], []):
        with pytest.raises(SystemExit):
            stops(commands, lambda streams: gradix.jit(nested(streams)), F(2))
    assert stops(["c"], lambda streams: gradix.jit(nested(streams)), F(2))[0] == 10


def test_number_and_choice_of_frames():
    _, lines = stops(["up", "c"], lambda streams: nested({**streams, "num_frames": 1}), F(2))
    assert lines[0] == "At topmost frame."
    _, few = stops(["bt", "c"], lambda streams: gradix.jit(nested(streams)), F(2))
    _, all_ = stops(["bt", "c"], lambda streams: gradix.jit(nested({**streams, "filter_frames": False})), F(2))
    assert not any("gradix/_api" in x for x in few) and any("gradix/_api" in x for x in all_)


@pytest.mark.x32
def test_examples_turns_and_branches():
    result, lines = stops(
        ["p b", "c", "p b", "c"], lambda streams: gradix.jit(gradix.vmap(nested(streams))), jnp.arange(2.0)
    )
    assert [x for x in lines if x.startswith("Array")] == ["Array(3., dtype=float32)", "Array(6., dtype=float32)"]
    assert np.array_equal(result, [4, 7])

    def loop(streams):
        def body(carry, x):
            carry = lax.cond(
                x > 1, lambda c: (debug.breakpoint(**streams, ordered=True), c * 2)[1], lambda c: c, carry + x
            )
            return carry, x

        return gradix.jit(lambda xs: lax.scan(body, 0.0, xs)[0])

    result, lines = stops(["p c", "c", "p c", "c"], loop, jnp.arange(4.0))
    assert [x for x in lines if x.startswith("Array")] == ["Array(3., dtype=float32)", "Array(9., dtype=float32)"]
    assert result == 18


def test_gradients_see_primal_values():
    result, lines = stops(["p b", "c"], lambda streams: gradix.grad(nested(streams)), F(2))
    assert result == 3 and lines[0] == "Array(9., dtype=float32)"


def test_tokens_place_the_breakpoint():
    def f(streams):
        def g(x, used=True):
            y = debug.breakpoint(**streams, token=x * 2)
            return (y if used else x) * 3

        return g

    result, lines = stops(["p x", "c"], lambda s: gradix.jit(f(s)), F(3))
    assert result == 18 and lines[0] == "Array(3., dtype=float32)"
    assert stops(["c"], lambda s: gradix.jit(gradix.grad(f(s))), F(3))[0] == 6
    assert np.array_equal(stops(["c", "c"], lambda s: gradix.vmap(f(s)), jnp.arange(2.0))[0], [0, 6])
    unused = lambda s: gradix.jit(lambda x: f(s)(x, used=False))
    assert stops([], unused, F(3)) == (9, [])


def test_values_that_are_no_pytrees_and_tracers_that_are_dead():
    kept = []

    def f(streams):
        def g(x):
            unsorted = {1: x, "a": x}
            leaked = kept[0] if kept else None
            kept.append(x)
            debug.breakpoint(**streams)
            return x + len(unsorted) + (leaked is None)

        return g

    gradix.jit(lambda x: kept.append(x) or x)(1.0)
    result, lines = stops(
        ["p sorted(map(str, unsorted))", "p type(leaked).__name__", "p x", "c"], lambda s: gradix.jit(f(s)), F(1)
    )
    assert result == 3 and lines[:3] == ["['1', 'a']", "'JitTracer'", "Array(1., dtype=float32)"]


def test_wrong_options():
    with pytest.raises(ValueError, match=r"no debugger 'web'. Write one of \['cli'\]"):
        debug.breakpoint(backend="web")
    with pytest.raises(ValueError, match="both ordered=True and a token"):
        debug.breakpoint(ordered=True, token=jnp.ones(2))
