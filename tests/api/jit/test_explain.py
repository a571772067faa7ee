"""What is said of traces and compilations: explain, the warning at the third retrace, the lines of log."""

import io
import logging
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._base import advice
from gradix.errors import RetraceWarning


@pytest.fixture
def warned():
    """The warnings of retraces since, with the option on as it is outside the tests."""
    gradix.config.update("gradix_retrace_warning", 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        advice.forget()
        yield caught
        advice.forget()


def sizes(f, *sizes):
    for n in sizes:
        f(jnp.ones(n))


# -- explain --------------------------------------------------------------------------------------------------------


@pytest.mark.x32
def test_events_in_order_with_reasons_and_places():
    f = gradix.jit(lambda x: x * 2)
    with gradix.debug.explain(show=False) as seen:
        sizes(f, 3, 3, 4, 3)
        f(np.arange(3))
    assert [e.kind for e in seen.events] == ["trace", "compile"] * 3
    traces = [e for e in seen.events if e.kind == "trace"]
    assert [e.why for e in traces] == [
        "never traced before",
        "argument x: float32[3] -> float32[4]",
        "argument x: float32[3] -> int32[3]",
    ]
    assert all("test_explain.py:" in e.place and e.seconds > 0 and e.function == "<lambda>" for e in seen.events)
    assert seen.hits == {"<lambda>": 2} and seen.count("trace") == 3
    assert "the disk cache is off" in seen.events[1].why


@pytest.mark.x32
def test_what_is_printed():
    @gradix.jit
    def area(x):
        return x * x

    out = io.StringIO()
    with gradix.debug.explain(file=out) as seen:
        sizes(area, 1, 1, 2)
    lines = out.getvalue().splitlines()
    assert [line.split()[:2] for line in lines] == [["trace", "area"], ["compile", "area"]] * 2 + [["hit", "area:"]]
    assert "argument x: float32[1] -> float32[2]" in lines[2]
    assert "traces: 2 in" in str(seen) and "area: 2 traces, 2 compilations, 1 hits" in str(seen)


def test_nothing_is_heard_outside_and_blocks_nest():
    f = gradix.jit(lambda x: x)
    with gradix.debug.explain(show=False) as outer:
        with gradix.debug.explain(show=False) as inner:
            f(1.0)
        f(1)
    f(jnp.ones(2))
    assert (inner.count("trace"), outer.count("trace")) == (1, 2)
    with pytest.raises(KeyError), gradix.debug.explain(show=False):
        raise KeyError
    assert gradix._base.events.listeners == []


def test_inner_functions_are_told_apart():
    @gradix.jit
    def inner(x):
        return x + 1

    @gradix.jit
    def outer(x):
        return inner(x) * inner(x)

    with gradix.debug.explain(show=False) as seen:
        outer(1.0)
    assert [(e.kind, e.function) for e in seen.events] == [("trace", "inner"), ("trace", "outer"), ("compile", "outer")]


# -- the warning ----------------------------------------------------------------------------------------------------


@pytest.mark.x32
def test_the_third_retrace_warns_once_and_names_the_argument(warned):
    f = gradix.jit(lambda x: x + 1)
    sizes(f, 1, 2, 3)
    assert warned == []
    sizes(f, *range(4, 12))
    (one,) = warned
    text = str(one.message)
    assert one.category is RetraceWarning and one.filename == __file__
    for part in (
        "traced 4 times",
        "argument x: float32[1] -> float32[2]",
        "argument x: float32[3] -> float32[4]",
        "pad to the next power",
        "'gradix_retrace_warning', 0",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    "calls, advice",
    [
        (lambda f: [f(1.0, n) for n in range(5)], "not as a static argument"),
        (lambda f: [f({str(i): 1.0 for i in range(n)}) for n in range(1, 6)], "same structure"),
        (lambda f: [f(x) for x in (jnp.ones(()), 1.0, 1, jnp.int32(1), jnp.ones(2))], "give Python numbers a dtype"),
    ],
)
def test_advice_fits_the_cause(calls, advice, warned):
    calls(gradix.jit(lambda x, n=0: x, static_argnames="n"))
    assert len(warned) == 1 and advice in str(warned[0].message)


def test_what_is_no_fault_does_not_warn(warned):
    layer = gradix.jit(lambda x: x * 2)
    gradix.jit(lambda *xs: [layer(x) for x in xs])(*[jnp.ones(n) for n in range(1, 8)])  # one program, many sizes
    for n in range(1, 8):
        gradix.random.uniform(gradix.random.key(0), (n,))  # compiled inside the package
        gradix.nn.softmax(jnp.ones(n))
        gradix.jit(lambda x: x)(jnp.ones(n))  # seven functions
    assert warned == []


def test_the_option_silences_and_sets_the_number(warned):
    gradix.config.update("gradix_retrace_warning", 0)
    sizes(gradix.jit(lambda x: x), *range(1, 8))
    assert warned == []
    gradix.config.update("gradix_retrace_warning", 1)
    sizes(gradix.jit(lambda x: x), *range(1, 8))
    assert len(warned) == 1 and "traced 2 times" in str(warned[0].message)


def test_the_warning_as_an_error_leaves_the_function_usable(warned):
    f = gradix.jit(lambda x: x + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RetraceWarning)
        sizes(f, 1, 2, 3)
        with pytest.raises(RetraceWarning):
            sizes(f, 4)
    sizes(f, 4, 5)
    assert f(1.0) == 2


# -- the log --------------------------------------------------------------------------------------------------------


@pytest.mark.x32
def test_log_compiles(caplog):
    @gradix.jit
    def scaled(x):
        return x * 3

    with caplog.at_level(logging.WARNING), gradix.log_compiles():
        sizes(scaled, 2, 2, 3)
    assert len(caplog.messages) == 6
    assert (
        "Finished tracing scaled for jit in" in caplog.messages[0] and "float32[2] -> float32[3]" in caplog.messages[3]
    )
    assert "Finished jaxpr to MLIR module conversion jit(scaled)" in caplog.messages[1]
    assert "Compiling jit(scaled)" in caplog.messages[2]
    caplog.clear()
    sizes(scaled, 4)
    assert caplog.messages == []


@pytest.mark.x32
def test_explain_cache_misses(caplog):
    f = gradix.jit(lambda x: x * 3)
    with caplog.at_level(logging.WARNING), gradix.explain_cache_misses():
        sizes(f, 2, 2, 3)
    first, second = caplog.messages
    assert "TRACING CACHE MISS at" in first and "never traced before" in first and "test_explain.py" in first
    assert "argument x: float32[2] -> float32[3]" in second


MANY = """
import sys, warnings
{first}
import gradix.numpy as jnp
from gradix import lax
import gradix
def one(i):
    def f(x):
        return lax.add(x, x)
    f.__name__ = f"f{{i}}"
    return gradix.jit(f)
for i in range(30):
    f = one(i)
    for n in range(1, 6):
        f.lower(jnp.ones(n))
"""


def run_many(first: str, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", MANY.format(first=first)],
        capture_output=True,
        text=True,
        env={**os.environ, "GRADIX_RETRACE_WARNING": "3"},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_many_functions_are_told_of_in_a_line_each_and_summed_up():
    told = run_many("")
    assert told.count("What differed") == 3 and told.count("was traced 4 times too; the last time argument x") == 27
    assert told.count("30 functions were traced many times") == 1 and "f0, f1" in told and "and 22 more" in told
    assert "RetraceWarning" not in run_many("warnings.simplefilter('ignore')")


def test_in_place_of_jax_the_log_tells_and_warnings_never():
    told = run_many("import gradix; gradix.install_as_jax(); import jax", "-W", "error")
    assert "RetraceWarning" not in told and told.count("What differed") == 3
    assert (
        run_many("import gradix, logging; gradix.install_as_jax(); logging.getLogger('gradix').setLevel(logging.ERROR)")
        == ""
    )


def test_functions_of_the_same_code_are_told_to_be_made_once():
    kept = gradix.jit(lambda x: x + 1)
    with gradix.debug.explain(show=False) as seen:
        made = [gradix.jit(lambda x: x * k) for k in range(3)]  # each is kept, as one that is gone frees its code
        for f in made:
            f(1.0)
        kept(1.0)
        kept.clear_cache()
        kept(1.0)
    whys = [e.why for e in seen.events if e.kind == "trace"]
    assert whys[0] == whys[3] == whys[4] == "never traced before"
    assert [why.split(";")[0] for why in whys[1:3]] == [f"function number {n} of the same code" for n in (2, 3)]
