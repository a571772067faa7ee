"""Progress of loops: what is shown, that results stay, and that it works under every transformation."""

import io

import numpy as np
import pytest

import gradix
from gradix import lax, numpy as jnp
from gradix._api import progress_lines

LOOPS = {
    "scan": (lambda: lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(10.0)), 10),
    "fori": (lambda: lax.fori_loop(2, 9, lambda i, x: x + i, 0.0), 7),
    "fori of traced bounds": (lambda: gradix.jit(lambda n: lax.fori_loop(1, n, lambda i, x: x + i, 0.0))(6), 5),
    "while": (lambda: lax.while_loop(lambda c: c < 5, lambda c: c + 1, 0), 5),
    "jit": (lambda: gradix.jit(lambda x: lax.fori_loop(0, 6, lambda i, x: x * 0.5, x))(1.0), 6),
    "loop of loops": (lambda: lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(0, 4, lambda j, x: x + j, x), 0.0), 3),
    "grad": (
        lambda: gradix.grad(lambda x: lax.scan(lambda c, _: (jnp.sin(c * x), None), x, None, length=4)[0])(1.0),
        4,
    ),
    "vmap": (lambda: gradix.vmap(lambda x: lax.fori_loop(0, 4, lambda i, c: jnp.cos(c), x))(jnp.arange(3.0)), 4),
    "vmap of while": (
        lambda: gradix.vmap(lambda x: lax.while_loop(lambda c: c < 5, lambda c: c + 1, x))(jnp.arange(3)),
        5,
    ),
    "map": (lambda: lax.map(lambda x: x * 2, jnp.arange(4)), 4),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_watched_loop_gives_what_it_gives_and_tells_its_steps(name):
    run, steps = LOOPS[name]
    plain, out = run(), io.StringIO()
    with gradix.progress("working", file=out):
        watched = run()
    for a, b in zip(gradix.tree.leaves(plain), gradix.tree.leaves(watched)):
        np.testing.assert_array_equal(a, b)
    lines = out.getvalue().splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"working: {steps}") and "steps/s" in lines[0]
    again = run()
    assert out.getvalue().splitlines() == lines, again  # outside nothing is shown, compiled before or not


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit, lambda f: gradix.vmap(f, in_axes=None, axis_size=2)])
def test_a_chosen_scalar_is_shown(wrap):
    out = io.StringIO()
    with gradix.progress("training", file=out, show=lambda carry: carry["loss"]):
        wrap(lambda x: lax.fori_loop(0, 4, lambda i, c: {"loss": c["loss"] / 2}, {"loss": x}))(8.0)
        lax.fori_loop(0, 2, lambda i, c: c + 1, 0)  # has no loss
    first, second = out.getvalue().splitlines()
    assert first.endswith(", 0.5") and second.endswith(" s")


def test_loops_in_python():
    out = io.StringIO()
    rows = gradix.progress([1, 2, 3], "rows", file=out)
    for x in rows:
        rows.value = x / 2
    assert len(rows) == 3 and out.getvalue().startswith("rows: 3/3 steps") and "1.5" in out.getvalue()
    assert list(gradix.progress(iter("ab"), file=out, total=2)) == ["a", "b"]
    with pytest.raises(TypeError, match="with"):
        list(gradix.progress("name"))
    out = io.StringIO()
    with pytest.raises(KeyError):
        for x in gradix.progress(range(9), file=out):
            if x == 4:
                raise KeyError
    assert "4/9" in out.getvalue()


def test_reports_come_by_the_clock(monkeypatch):
    """Steps of a long loop are reported in growing distances, and lines come as seldom as they should."""
    monkeypatch.setattr(progress_lines.Lines, "every", 0.0)
    out = io.StringIO()
    with gradix.progress("often", file=out):
        lax.fori_loop(0, 5000, lambda i, x: x + 1.0, 0.0)
    assert 3 < len(out.getvalue().splitlines()) <= 5001 and "left" in out.getvalue()
    monkeypatch.setattr(progress_lines.Lines, "every", 60.0)
    out = io.StringIO()
    with gradix.progress("seldom", file=out):
        lax.fori_loop(0, 5000, lambda i, x: x + 1.0, 0.0)
    assert len(out.getvalue().splitlines()) == 1


def test_a_terminal_gets_a_bar():
    pytest.importorskip("tqdm")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    with gradix.progress("on screen", file=out, show=lambda c: c):
        lax.fori_loop(0, 40, lambda i, x: x + 1.0, 0.0)
    assert "on screen" in out.getvalue() and "40/40" in out.getvalue() and "\r" in out.getvalue()


def test_a_terminal_without_tqdm_gets_lines(monkeypatch):
    monkeypatch.setattr(progress_lines, "_is_installed", lambda name: False)
    out = io.StringIO()
    out.isatty = lambda: True
    assert list(gradix.progress(range(2), file=out)) == [0, 1] and "2/2 steps" in out.getvalue()


def test_durations_are_readable():
    assert [progress_lines._duration(s) for s in (0.0123, 59.0, 125.0, 7300.0)] == [
        "0.012 s",
        "59 s",
        "2 min 5 s",
        "2 h 1 min",
    ]
