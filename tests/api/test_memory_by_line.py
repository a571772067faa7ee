"""`jit(f).memory(*args)`, which tells the line of what is in memory, and `jit(f, memory=...)`, which keeps to a budget."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._api.costs.budget import bytes_of
from gradix._api.costs.recompute import inlined, recomputing
from gradix._runtime.hlo.wire import fields, integers
from gradix._transforms.cse import simplify
from gradix._transforms.staging import jaxpr_as_fun

HERE = Path(__file__).name


def layers(x, w):
    for i in range(12):
        y = x @ w[i]
        x = jnp.tanh(y)
    return x.sum()


LINE_OF_TANH = layers.__code__.co_firstlineno + 3
X, W = np.full((1024, 32), 0.5, "f4"), np.linspace(-1, 1, 12 * 32 * 32, dtype="f4").reshape(12, 32, 32) / 8


def scanned(x, w):
    def body(c, w):
        return jnp.tanh(c @ w), None

    return lax.scan(body, x, w)[0].sum()


def branched(x, w):
    y = lax.cond(x[0, 0] > 0, lambda x: x @ w[0], lambda x: x - 1.0, x)
    return gradix.jit(lambda y: jnp.sort(y, 0))(y).sum()


@pytest.mark.parametrize(
    "f",
    [layers, gradix.grad(layers, 1), gradix.grad(scanned, 1), gradix.value_and_grad(branched), jnp.sort],
    ids=["plain", "grad", "scan", "branches", "one operation"],
)
def test_rows_sum_to_what_xla_measures(f):
    args = (X, W)[: 1 if f is jnp.sort else 2]
    m = gradix.jit(f).memory(*args)
    size = gradix.jit(f).lower(*args).compile().memory_analysis()
    assert m.peak == size.argument_size_in_bytes + size.output_size_in_bytes + size.temp_size_in_bytes
    assert m.peak == m.arguments + m.results + m.temporaries
    assert 0.9 * m.peak <= sum(r.bytes for r in m.rows) <= m.peak
    assert all(r.bytes > 0 and r.count > 0 for r in m.rows)
    assert [r.bytes for r in m.rows] == sorted([r.bytes for r in m.rows], reverse=True)


def test_the_line_that_made_what_is_kept_is_named():
    m = gradix.jit(gradix.grad(layers, 1)).memory(X, W)
    first = m.rows[0]
    assert Path(first.file).name == HERE and first.line == LINE_OF_TANH and first.source == "x = jnp.tanh(y)"
    assert (
        first.phase == "forward"
        and first.kind == "temporary"
        and first.count >= 10
        and first.shape == "float32[1024,32]"
    )
    assert first.until.endswith(f"{HERE}:{LINE_OF_TANH}") or first.until.endswith(f"{HERE}:{LINE_OF_TANH - 1}")
    assert {r.name for r in m.rows if r.kind == "argument"} == {"x", "w"}
    text = str(m)
    assert text.startswith("peak ") and "argument x" in text and f"{HERE}:{LINE_OF_TANH}  x = jnp.tanh(y)" in text
    assert "rows" in repr(m)


def nested(x):
    def twice(x):
        big = jnp.zeros((256, 256))
        return lax.fori_loop(0, 4, lambda i, b: b.at[i].set(x[0]), big)

    return jnp.sort(gradix.jit(twice)(x), 0).sum()


@pytest.mark.parametrize(
    "f",
    [
        nested,
        lambda x: lax.cond(x[0, 0] > 0, lambda: lax.fori_loop(0, 4, lambda i, b: b @ x, x), lambda: jnp.sort(x, 0)),
        lambda x: lax.switch(0, [lambda y: y @ y @ y, lambda y: lax.fori_loop(0, 3, lambda i, c: c @ y, y)], x) @ x,
    ],
    ids=["loop in a call", "loop in a branch", "branches"],
)
def test_loops_in_calls_and_branches_sum_to_what_xla_measures(f):
    m = gradix.jit(f).memory(np.ones((256, 256), "f4"))
    assert 0.99 * m.peak <= sum(r.bytes for r in m.rows) <= m.peak


def test_constants_are_of_the_line_that_reads_them():
    """The compiler knows them by the call of the function in which they stood."""

    def f(x):
        def inner(x):
            mask = x > 0
            return lax.scan(lambda c, _: (jnp.where(mask, jnp.sort(c * 1.5, 0), 1.0), None), x, length=5)[0]

        return gradix.jit(inner)(x).sum()

    m = gradix.jit(gradix.grad(f)).memory(np.ones((256, 256), "f4"))
    call = f.__code__.co_firstlineno + 5
    assert not [r for r in m.rows if r.line == call and r.bytes > 1000 and r.kind == "temporary"], str(m)


def test_constants_spread_for_a_fusion_are_of_the_line_inside_of_it_that_reads_them():
    """The compiler spreads them to whole arrays in front of a sum into which other lines were fused."""

    def turn(x, _):
        apart = jnp.where(x[:, None] == x, 3.0, (x[:, None] - x) ** 2)
        smooth = jnp.clip((3.0 - apart) / 3.0, 0) ** 2
        energy = 4 * (1 / apart**6 - 1 / apart**3) * smooth
        return x * 0.99, energy.sum()

    m = gradix.jit(lambda x: lax.scan(turn, x, None, length=5)).memory(np.ones(256, "f4"))
    last = turn.__code__.co_firstlineno + 4
    assert not [r for r in m.rows if r.line == last and r.bytes > 1000], str(m)


@pytest.mark.x32
def test_captured_arrays_donated_and_static_arguments_and_types():
    held = jnp.ones((64, 64))
    m = gradix.jit(lambda x, n: held @ x * n, static_argnums=1, donate_argnums=0).memory(
        gradix.ShapeDtypeStruct((64, 64), "float32"), 3
    )
    assert {r.name for r in m.rows if r.kind == "argument"} == {"(captured)", "x"}
    assert m.arguments == 2 * 64 * 64 * 4 and m.results == 0  # the result has the memory of x


@pytest.mark.x32
@pytest.mark.parametrize("size", [0, 1])
def test_small_programs(size):
    m = gradix.jit(lambda x: jnp.sin(x) + 1).memory(jnp.ones(size))
    assert m.peak == 8 * size and str(m)


def test_looking_at_memory_leaves_the_function_alone():
    f = gradix.jit(lambda x: jnp.sin(x).sum())
    f(X)
    before = f.stats()
    f.memory(X)
    assert f.stats().traces == before.traces and f.stats().compiles == before.compiles


# -- budgets ------------------------------------------------------------------------------------------


def temporary(f, *args):
    return f.lower(*args).compile().memory_analysis().temp_size_in_bytes


def test_a_budget_is_kept_and_results_stay_the_same():
    plain, tight = gradix.jit(gradix.grad(layers, 1)), gradix.jit(gradix.grad(layers, 1), memory="900 KB")
    assert temporary(tight, X, W) <= 900_000 < temporary(plain, X, W)
    np.testing.assert_allclose(tight(X, W), plain(X, W), rtol=1e-5, atol=1e-5)
    assert "again" in {r.phase for r in tight.memory(X, W).rows}
    assert tight.stats().traces == 1


def test_a_budget_that_is_kept_anyway_changes_nothing():
    f = gradix.jit(layers, memory="1GiB")
    assert str(f.trace(X, W).jaxpr) == str(gradix.jit(layers).trace(X, W).jaxpr)


def test_a_budget_that_cannot_be_kept_is_told():
    def layers(x, w):
        return jnp.tanh(jnp.tanh(jnp.tanh(x @ w[0]) @ w[1]) @ w[2]).sum()

    f = gradix.jit(gradix.grad(layers, 1), memory=10_000)
    with pytest.warns(UserWarning, match=r"needs .* KiB of temporary memory .* budget is memory=9\.8 KiB"):
        got = f(X, W)
    np.testing.assert_allclose(got, gradix.grad(layers, 1)(X, W), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
def test_loops_keep_their_carries_alone(reverse):
    """The loop of the backward pass computes the rest again, one iteration at a time."""
    ws, x = jnp.linspace(-1, 1, 16 * 64 * 64).reshape(16, 64, 64) / 16, jnp.ones((512, 64))

    def f(ws, x):
        def body(c, w):
            c = jnp.tanh(c @ w)
            return c, (c[0] * w[0]).sum()

        c, ys = lax.scan(body, x, ws, reverse=reverse)
        return (c**2).sum() + ys.sum()

    budget = 22 * x.nbytes
    plain, tight = (gradix.jit(gradix.value_and_grad(f, (0, 1)), memory=m) for m in (None, budget))
    assert temporary(tight, ws, x) <= budget < temporary(plain, ws, x)
    for a, b in zip(gradix.tree.leaves(tight(ws, x)), gradix.tree.leaves(plain(ws, x))):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_loops_whose_carries_are_larger_keep_what_they_kept():
    def f(x):
        def body(c, _):
            return jnp.sin(c), jnp.exp(c[:4])

        return lax.scan(body, x, None, length=8)[1].sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tight = gradix.jit(gradix.grad(f), memory=100)
        np.testing.assert_allclose(tight(jnp.ones(64)), gradix.grad(f)(jnp.ones(64)), rtol=1e-5)


def test_a_function_with_a_budget_has_derivatives_and_maps():
    def f(x):
        for _ in range(8):
            x = jnp.sin(x @ x)
        return x.sum()

    x = jnp.linspace(-1, 1, 48 * 48).reshape(48, 48) / 48
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tight = gradix.jit(gradix.grad(f), memory=60_000)
        got = gradix.jvp(tight, (x,), (x,))
        mapped = gradix.vmap(tight)(jnp.stack([x, 2 * x]))
    for a, b in zip(got, gradix.jvp(gradix.grad(f), (x,), (x,))):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mapped[1], gradix.grad(f)(2 * x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("segments", "parts"), [(1, 1), (2, 1), (3, 2), (5, 3), (1, 4), (50, 2)])
def test_programs_that_compute_again_compute_the_same(segments, parts):
    def f(x, key):
        for i in range(6):
            x = gradix.jit(lambda x: jnp.where(x > 0, jnp.exp(-x), x * i))(x @ x)
            x = x + gradix.random.normal(key, x.shape) * 0.01
        return x.sum(), lax.cumsum(x)

    x, key = jnp.linspace(-1, 1, 16 * 16).reshape(16, 16) / 4, gradix.random.key(0)
    closed = simplify(inlined(gradix.make_jaxpr(gradix.grad(f, has_aux=True))(x, key)))
    again = recomputing(closed, segments, parts)
    for a, b in zip(jaxpr_as_fun(closed)(x, key), jaxpr_as_fun(again)(x, key)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("text", "n"),
    [("3MiB", 3 << 20), ("2 GiB", 2 << 30), ("1.5kb", 1500), ("7", 7), (7, 7), ("10B", 10), ("1TB", 10**12)],
)
def test_sizes(text, n):
    assert bytes_of(text) == n


@pytest.mark.parametrize(
    ("memory", "error"),
    [("much", ValueError), ("-3MiB", ValueError), (0, ValueError), (2.5, TypeError), (True, TypeError)],
)
def test_what_is_no_size(memory, error):
    with pytest.raises(error, match="memory must be"):
        gradix.jit(layers, memory=memory)


@pytest.mark.parametrize("other", [{"specialize": True}, {"symbolic": "n"}])
def test_a_budget_beside_options_that_compile_several_programs(other):
    """Each of them keeps the budget: one for each size, or for each segment."""
    f = gradix.jit(lambda x: jnp.sin(x) if "symbolic" in other or x.sum() > 0 else x, memory="1MiB", **other)
    for n in (2, 3):
        np.testing.assert_allclose(f(jnp.ones(n)), np.sin(np.ones(n)), rtol=1e-6)


# -- the barrier that keeps the compiler from merging -------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "late"), [("f4", "f4"), ("f2", "i1"), ("i4", "bfloat16"), ("u1", "bool"), ("bool", "u4"), ("c8", "f2")]
)
def test_after_is_the_first_operand(dtype, late):
    xs = [jnp.arange(12)[: int(np.prod(shape))].reshape(shape).astype(dtype) for shape in [(), (0,), (1,), (3, 4)]]
    late = jnp.full((2,), -1).astype(late)
    both = lambda xs, y: [lax.after_p.bind(x, y) for x in xs] + [lax.after_p.bind(x, y[0]) for x in xs]
    for got in (both(xs, late), gradix.jit(both)(xs, late)):
        for x, y in zip(xs * 2, got):
            assert y.dtype == x.dtype
            np.testing.assert_array_equal(y, x)


def test_after_has_derivatives_and_maps():
    f = lambda x, y: (lax.after_p.bind(jnp.sin(x), y) * x).sum()
    x = jnp.arange(3.0)
    np.testing.assert_allclose(
        gradix.grad(f, (0, 1))(x, x)[0], gradix.grad(lambda x: (jnp.sin(x) * x).sum())(x), rtol=1e-6
    )
    np.testing.assert_array_equal(gradix.grad(f, (0, 1))(x, x)[1], 0)
    np.testing.assert_allclose(gradix.vmap(f, (0, None))(jnp.ones((2, 3)), x), [3 * np.sin(1)] * 2, rtol=1e-6)


def test_messages_of_the_compiler_are_read():
    assert list(fields(b"\x08\x96\x01\x12\x02hi\x1d\x00\x00\x80?")) == [(1, 150), (2, b"hi"), (3, b"\x00\x00\x80?")]
    assert integers(b"\x01\x96\x01") == [1, 150] and integers(7) == [7]
    with pytest.raises(ValueError, match="kind 7"):
        list(fields(b"\x0f"))


@pytest.mark.promotes
def test_the_error_of_an_exhausted_allocation_has_the_table():
    from gradix._api.costs.memory import explain

    f = gradix.jit(lambda x: (x[:, None] * x @ x).sum())
    error = RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes.")
    explain(error, f, (jnp.ones(512),), {})
    (note,) = error.__notes__
    assert (
        "jit-compiled function <lambda>" in note
        and str(f.memory(jnp.ones(512))) in note
        and "gradix.checkpoint" in note
    )
    explain(error, f, (jnp.ones(512),), {})  # an outer function adds nothing
    assert len(error.__notes__) == 1
    explain(other := RuntimeError("RESOURCE_EXHAUSTED"), f, (), {})
    assert not hasattr(other, "__notes__")


@pytest.mark.slow
def test_an_allocation_that_fails_tells_the_lines():
    code = (
        "import resource, traceback, gradix, gradix.numpy as jnp\nfrom gradix import lax\n"
        "resource.setrlimit(resource.RLIMIT_AS, (12 << 30,) * 2)\n"
        "f = gradix.jit(lambda x: lax.cumsum(lax.sort(x[:, None] * jnp.ones((1, 1 << 20)), dimension=0), axis=1).sum())\n"
        "try: f(jnp.ones(1 << 14)).block_until_ready()\n"
        "except RuntimeError as e: print(''.join(traceback.format_exception(e)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "RESOURCE_EXHAUSTED" in done.stdout and "temporary:" in done.stdout, done.stdout + done.stderr


def test_budgets_go_with_sizes_that_values_decide():
    def spread(x, least):
        y = jnp.sort(x[x > least])
        return jnp.outer(y, y).sum()

    x = np.linspace(-1, 1, 512, dtype="f4")
    m = gradix.jit(spread).memory(x, 0.0)
    assert 0.9 * m.peak <= sum(r.bytes for r in m.rows) <= m.peak
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.allclose(gradix.jit(spread, memory=1000)(x, 0.0), spread(x, 0.0), rtol=1e-5)
