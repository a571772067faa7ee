"""The order of ordered effects, and how often each runs: in sequence, loops, branches, calls, derivatives and vmap."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import io_callback

F32 = gradix.ShapeDtypeStruct((), np.float32)
LOG: list = []


def note(x):
    LOG.append(np.asarray(x).item())
    return np.float32(LOG[-1])


def io(x):
    return io_callback(note, F32, x, ordered=True)


def debug(x):
    gradix.debug.callback(note, x, ordered=True)
    return jnp.float32(0)


def said(run) -> list:
    LOG.clear()
    gradix.block_until_ready(run())
    gradix.effects_barrier()
    return list(LOG)


def after(effect, value):
    return value


ROWS = jnp.arange(3.0) + 10
PROGRAMS = {  # a function of the effect and a number; what it logs, started with 0
    "sequence": (lambda o, x: (o(x), o(x + 1), o(x + 2)), [0, 1, 2]),
    "scan": (lambda o, x: lax.scan(lambda c, r: (c + 1, (o(c), o(r))), x, ROWS)[0], [0, 10, 1, 11, 2, 12]),
    "scan backwards": (lambda o, x: lax.scan(lambda c, r: (c, o(r)), x, ROWS, reverse=True)[0], [12, 11, 10]),
    "scan unrolled": (
        lambda o, x: lax.scan(lambda c, r: (c + 1, (o(c), o(r))), x, ROWS, unroll=2)[0],
        [0, 10, 1, 11, 2, 12],
    ),
    "scan in scan": (
        lambda o, x: lax.scan(
            lambda c, r: after(o(r), lax.scan(lambda d, _: after(o(d), (d + 1, None)), c, None, length=2)), x, ROWS[:2]
        )[0],
        [10, 0, 1, 11, 2, 3],
    ),
    "while": (lambda o, x: lax.while_loop(lambda c: c < 3, lambda c: after(o(c), c + 1), x), [0, 1, 2]),
    "condition of while": (lambda o, x: lax.while_loop(lambda c: after(o(c), c < 3), lambda c: c + 1, x), [0, 1, 2, 3]),
    "both of while": (
        lambda o, x: lax.while_loop(lambda c: after(o(c), c < 2), lambda c: after(o(c + 50), c + 1), x),
        [0, 50, 1, 51, 2],
    ),
    "fori": (lambda o, x: lax.fori_loop(0, 3, lambda i, c: after(o(c + i), c), x), [0, 1, 2]),
    "fori to a traced end": (
        lambda o, x: lax.fori_loop(0, x.astype(int) + 3, lambda i, c: after(o(c + i), c), x),
        [0, 1, 2],
    ),
    "cond": (lambda o, x: (o(x), lax.cond(x < 1, lambda: o(x + 1), lambda: o(x + 2)), o(x + 5)), [0, 1, 5]),
    "other branch": (lambda o, x: (o(x), lax.cond(x > 1, lambda: o(x + 1), lambda: o(x + 2)), o(x + 5)), [0, 2, 5]),
    "cond in scan": (
        lambda o, x: lax.scan(lambda c, r: (lax.cond(r > 10, lambda: o(r), lambda: o(-r)) * 0 + c, None), x, ROWS)[0],
        [-10, 11, 12],
    ),
    "switch": (
        lambda o, x: (o(x), lax.switch(2, [lambda: x, lambda: o(x + 3), lambda: o(x + 4)]), o(x + 5)),
        [0, 4, 5],
    ),
    "calls": (
        lambda o, x: (o(x), gradix.jit(o)(x + 1), gradix.jit(lambda y: o(y) + o(y))(x + 2), o(x + 3)),
        [0, 1, 2, 2, 3],
    ),
    "equal calls": (lambda o, x: [gradix.jit(o)(x), gradix.jit(o)(x)], [0, 0]),
    "map": (lambda o, x: lax.map(lambda r: o(r + x), ROWS), [10, 11, 12]),
    "checkpoint": (lambda o, x: gradix.checkpoint(lambda y: (o(y), o(y + 1)))(x), [0, 1]),
    "sequential_vmap": (
        lambda o, x: gradix.vmap(gradix.custom_batching.sequential_vmap(lambda r: o(r + x)))(ROWS),
        [10, 11, 12],
    ),
    "custom_jvp": (lambda o, x: _ruled(o)(x), [0, 1]),
}


def _ruled(o):
    f = gradix.custom_jvp(lambda y: (o(y), o(y + 1))[0])
    f.defjvps(lambda t, y, x: t)
    return f


@pytest.mark.parametrize("effect", [io, debug])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_order(name, effect, wrap):
    program, want = PROGRAMS[name]
    assert said(lambda: wrap(lambda x: program(effect, x))(jnp.float32(0))) == want


@pytest.mark.parametrize("effect", [io, debug])
def test_order_between_calls_of_compiled_functions(effect):
    f, g = gradix.jit(lambda x: after(effect(x), x)), gradix.jit(lambda x: after(effect(x * 10), x))
    assert said(lambda: [h(float(i)) for i in range(4) for h in (f, g)]) == [0, 0, 1, 10, 2, 20, 3, 30]


@pytest.mark.parametrize("name", PROGRAMS)
def test_unused_results_change_nothing(name):
    program, want = PROGRAMS[name]
    assert said(lambda: gradix.jit(lambda x: after(program(io, x), x))(jnp.float32(0))) == want


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_unordered_effects_run_as_often_as_the_program_says(wrap):
    loud = lambda x: io_callback(note, F32, x)
    for name, (program, want) in PROGRAMS.items():
        got = said(lambda p=program: wrap(lambda x: p(loud, x))(jnp.float32(0)))
        assert sorted(got) == sorted(want), name


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_vmap_of_debugging_effects(wrap):
    cases = {
        "plain": (lambda x: debug(x), [0, 1, 2]),
        "scan": (
            lambda x: lax.scan(lambda c, _: after(debug(c), (c + 10, None)), x, None, length=2)[0],
            [0, 1, 2, 10, 11, 12],
        ),
        "cond": (lambda x: lax.cond(x > 0, lambda: after(debug(x), x), lambda: x), [0, 1, 2]),  # each branch, for all
        "nested": (lambda x: gradix.vmap(lambda y: debug(x * 10 + y))(jnp.arange(2.0)), [0, 1, 10, 11, 20, 21]),
    }
    for name, (f, want) in cases.items():
        assert said(lambda f=f: wrap(gradix.vmap(f))(jnp.arange(3.0))) == want, name


@pytest.mark.x32
def test_vmap_of_ordered_io_is_an_error():
    for f in (io, lambda x: lax.cond(x > 0, lambda: io(x), lambda: x)):
        with pytest.raises((ValueError, NotImplementedError), match="lax.map"):
            gradix.vmap(f)(jnp.arange(3.0))


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_derivatives_run_the_effects_of_the_function_once(wrap):
    quiet = lax.stop_gradient
    cases = {
        "plain": (lambda x: after(debug(x), x * x), [1]),
        "io": (lambda x: after(io(quiet(x)), x * x), [1]),
        "scan": (lambda x: lax.scan(lambda c, _: after(io(quiet(c)), (c * 2, None)), x, None, length=3)[0], [1, 2, 4]),
        "cond": (lambda x: lax.cond(x > 0, lambda: after(io(quiet(x)), x * 2), lambda: x), [1]),
        "jit": (lambda x: gradix.jit(lambda y: after(io(quiet(y)), jnp.sin(y)))(x), [1]),
    }
    for name, (f, want) in cases.items():
        assert said(lambda f=f: wrap(gradix.grad(f))(1.0)) == want, name
        assert said(lambda f=f: wrap(lambda x: gradix.jvp(f, (x,), (1.0,)))(1.0)) == want, name


def test_checkpoint_repeats_prints_but_no_io():
    quiet = lax.stop_gradient
    assert said(lambda: gradix.grad(gradix.checkpoint(lambda x: after(debug(x), jnp.sin(x))))(1.0)) == [1, 1]
    with pytest.raises(NotImplementedError, match="in the backward pass"):
        gradix.grad(gradix.checkpoint(lambda x: after(io(quiet(x)), jnp.sin(x))))(1.0)


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_options_first_and_the_rest_in_a_second_call(wrap, capsys):
    seen = []

    def tell(x):
        gradix.debug.print(ordered=True)("{ordered} {}", x, ordered=2)
        gradix.debug.callback(ordered=True)(
            lambda v, partitioned: seen.append((int(v), int(partitioned))), x, partitioned=3
        )
        return x

    wrap(tell)(1)
    gradix.effects_barrier()
    assert capsys.readouterr().out == "2 1\n" and seen == [(1, 3)]
    for call in (gradix.debug.print, gradix.debug.callback):
        with pytest.raises(TypeError, match="options only"):
            call(x=1)


def _counted(seen, n, start=0):
    """A loop to `n` whose turns are noted."""

    def body(i):
        io_callback(lambda n, i: seen.append((int(n), int(i))), None, n, i)
        return i + 1

    return lax.while_loop(lambda i: i < n, body, start)


MAPPED = {
    "vmap": lambda f: gradix.vmap(f),
    "jit": lambda f: gradix.jit(gradix.vmap(f)),
    "twice": lambda f: lambda x: gradix.jit(gradix.vmap(gradix.vmap(f)))(x.reshape(1, 3)).reshape(3),
    "of jit": lambda f: gradix.vmap(gradix.jit(f)),
    "of scan": lambda f: gradix.vmap(lambda x: lax.scan(lambda c, _: (f(x), c), 0, None, 1)[0]),
}


@pytest.mark.parametrize("mapped", MAPPED.values(), ids=MAPPED)
def test_a_mapped_loop_has_no_effects_for_examples_that_have_ended(mapped):
    seen = []
    assert mapped(lambda n: _counted(seen, n))(jnp.array([2, 0, 3])).tolist() == [2, 0, 3]
    assert sorted(seen) == [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_mapped_loop_of_equal_lengths_has_the_effects_of_all_examples(compiled):
    seen = []
    f = gradix.vmap(
        lambda x: lax.fori_loop(0, 2, lambda i, c: (io_callback(lambda v: seen.append(int(v)), None, x), c + x)[1], 0)
    )
    assert (gradix.jit(f) if compiled else f)(jnp.array([5, 7])).tolist() == [10, 14]
    assert sorted(seen) == [5, 5, 7, 7]


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_ordered_prints_in_the_condition_of_a_mapped_loop(capsys, transform):
    def count(n):
        def going(i):
            gradix.debug.print("{} {}", n, i, ordered=True)
            return i < n

        return lax.while_loop(going, lambda i: i + 1, 0)

    assert transform(gradix.vmap(count))(jnp.array([0, 2])).tolist() == [0, 2]
    assert capsys.readouterr().out.split("\n") == ["0 0", "2 0", "0 0", "2 1", "0 0", "2 2", ""]
    assert transform(count)(2) == 2
    assert capsys.readouterr().out.split("\n") == ["2 0", "2 1", "2 2", ""]
