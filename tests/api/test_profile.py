"""`gradix.profile`: what each line costs, as a table, a page, a timeline."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from benchmarks import lines as lines_apart
from gradix import lax, profiler
from gradix._api.costs import machine_peak
from gradix._api.costs.profile import profile
from gradix._api.costs.runs import runs_of

HERE = Path(__file__).name
X = jnp.eye(128)


def products(x):
    y = x @ x
    z = y @ x
    return jnp.sin(z).sum()


FIRST = products.__code__.co_firstlineno


def looped(x):
    def body(c, _):
        c = jnp.tanh(c @ x)
        return c, c.sum()

    return lax.scan(body, x, None, length=7)[1]


@pytest.fixture(scope="module")
def taken():
    return gradix.profile(gradix.grad(products))(X)


def lines(p):
    return {(r.line - FIRST, r.phase): r for r in p.lines if Path(r.file).name == HERE}


def test_forward_and_backward_of_each_line(taken):
    rows = lines(taken)
    for line in (1, 2):
        assert rows[line, "forward"].flops == pytest.approx(2 * 128**3, rel=0.01)
        assert rows[line, "backward"].flops >= 2 * 2 * 128**3
    assert rows[1, "forward"].source == "y = x @ x" and rows[1, "forward"].bytes >= 2 * X.nbytes
    np.testing.assert_allclose(taken.result, gradix.grad(products)(X), rtol=1e-5)


@pytest.mark.parametrize("by", ["lines", "scopes", "operations"])
def test_sums_equal_the_whole(taken, by):
    rows = getattr(taken, by)
    assert sum(r.share for r in rows) == pytest.approx(1)
    assert sum(r.seconds for r in rows) == pytest.approx(sum(r.own for r in taken._recording.runs))
    assert all(r.seconds >= 0 and r.bytes >= 0 and r.flops >= 0 and r.calls > 0 for r in rows)
    assert sum(taken.stages.values()) >= taken.seconds * 0.999
    assert (
        set(taken.stages) == {"trace", "lower", "compile", "load", "run", "eager", "other"}
        and taken.stages["compile"] == 0
    )


def test_a_block_has_jitted_functions_loops_and_eager_operations():
    with gradix.profile() as p:
        sums = gradix.jit(looped)(X)
        y = jnp.sin(X)
    rows = {r.line: r for r in p.lines if Path(r.file).name == HERE}
    body = looped.__code__.co_firstlineno + 2
    assert rows[body].flops >= 7 * 2 * 128**3  # a loop counts as often as it ran
    assert rows[test_a_block_has_jitted_functions_loops_and_eager_operations.__code__.co_firstlineno + 3].calls == 1
    assert (
        p.result is None
        and p.stages["trace"] > 0
        and p.stages["eager"] > 0
        and y.shape == X.shape
        and sums.shape == (7,)
    )


def test_fused_lines_share_their_time():
    def f(x):
        a = jnp.exp(x)
        return a * 2 + x

    rows = {r.line - f.__code__.co_firstlineno: r for r in gradix.profile(f)(jnp.ones(10_000)).lines if r.file}
    assert rows[1].flops >= 10_000 and rows[2].flops == 20_000 and 0 < rows[1].share < 1


def test_empty_blocks_and_functions_without_operations():
    with gradix.profile() as p:
        pass
    assert p.lines == [] and "ms" in str(p) and "<html" in p.to_html()
    assert gradix.profile(lambda x: x)(3.0).result == 3.0


def test_functions_with_effects_run_once():
    seen = []
    gradix.profile(lambda x: gradix.debug.callback(seen.append, x))(1.0)
    assert len(seen) == 1


def test_two_at_a_time_are_refused(tmp_path):
    with (
        profiler.trace(tmp_path),
        pytest.raises(RuntimeError, match="another profile is being recorded"),
        gradix.profile(),
    ):
        pass
    with gradix.profile(), pytest.raises(RuntimeError, match="another profile is being recorded"), gradix.profile():
        pass


def test_everything_is_put_back_after_an_error():
    before = gradix._core.seams.evaluate
    with pytest.raises(ZeroDivisionError), gradix.profile():
        1 / 0
    assert gradix._core.seams.evaluate is before
    assert gradix._base.events.listeners == [] and gradix._api.jit.jitted_function.kept == []


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: gradix.profile(3), "takes a function"),
        (lambda: gradix.profile()(), "context manager"),
        (lambda: gradix.profile(products).__enter__(), "is called with arguments"),
    ],
)
def test_wrong_uses_say_what_to_write(use, words):
    with pytest.raises(TypeError, match=words):
        use()


def test_text_and_frames(taken):
    text = str(taken)
    assert re.search(rf"\d+\.\d\d +\d+\.\d % .*{HERE}:{FIRST + 1} +y = x @ x \((forward|backward)\)", text)
    assert "print it" in repr(taken)
    pandas = pytest.importorskip("pandas")
    assert isinstance(taken.to_pandas(), pandas.DataFrame)


def test_the_timeline_for_perfetto(taken, tmp_path):
    taken.perfetto(tmp_path / "a.json")
    taken.perfetto(tmp_path / "a.json.gz")
    told = json.loads((tmp_path / "a.json").read_text())
    assert told == json.loads(gzip.decompress((tmp_path / "a.json.gz").read_bytes()))
    assert len(told["traceEvents"]) == len(taken._recording.runs)
    assert any(e["args"].get("line", "").endswith(f"{HERE}:{FIRST + 1}") for e in told["traceEvents"])


def test_lines_are_compared_with_what_the_machine_reaches(taken, monkeypatch):
    top = machine_peak.Peak(1e10, 1e9)
    assert (
        top.share(5e9, 1e8, 1.0) == (0.5, "arithmetic")
        and top.share(1e9, 5e8, 2.0) == (0.25, "memory")
        and top.share(1, 1, 0.0) == (0.0, "")
    )
    assert (
        all(0 < n < float("inf") for n in machine_peak.measured())
        and machine_peak.measured() is machine_peak.measured()
    )
    monkeypatch.setattr(machine_peak, "measured", lambda: top)
    row = max(taken.lines, key=lambda r: r.flops)
    share, limit = top.share(row.flops, row.bytes, row.seconds)
    page = taken.to_html()
    assert f"{100 * share:.0f} % {limit}" in page and "reaches 10 Gflop/s in a product, and moves 1.0 GB/s" in page


def test_the_magic_of_notebooks():
    made, names = {}, {"gradix": gradix, "X": X, "f": products}
    shell = SimpleNamespace(
        run_cell=lambda cell: exec(cell, names),
        push=made.update,
        register_magic_function=lambda function, kind: made.update({kind: function}),
    )
    gradix.load_ipython_extension(shell)
    p = made["cell"]("kept", "y = gradix.jit(f)(X)")
    assert made["kept"] is p and any(Path(r.file).name == HERE for r in p.lines) and "<table" in p._repr_html_()


def test_nothing_is_loaded_before_it_is_named():
    code = """
import gradix, gradix.numpy as jnp, sys
loaded = lambda *names: [m for m in sys.modules if any(name in m for name in names)]
gradix.jit(gradix.grad(lambda x: jnp.sin(x).sum()))(jnp.ones(3))
print(loaded("gradix._api.costs", "gradix._runtime.hlo"))
p = gradix.profile(jnp.sin)(jnp.ones(3))
print(loaded("costs.page"), loaded("costs.flow"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[] []\n"
    assert profile is gradix.profile


# -- time that threads share --------------------------------------------------------------------------


def event(name, start, end, **stats):
    return SimpleNamespace(name=name, start_ns=start, duration_ns=end - start, stats=stats.items())


def op(name, start, end):
    return event(name, start, end, hlo_op=name, hlo_module="m", program_id=1)


def pooled(what, at, **number):
    return event(f"ThreadpoolListener::{what}", at, at, **number)


def runs(*threads):
    plane = SimpleNamespace(lines=[SimpleNamespace(events=events) for events in threads])
    reader = SimpleNamespace(from_serialized_xspace=lambda _: SimpleNamespace(planes=[plane]))
    found = runs_of(reader, b"")
    own = {}
    for run in found:
        own[run.name] = own.get(run.name, 0) + round(run.own * 1e9)
    return found, own


def test_work_that_goes_on_in_a_pool_is_its_operations():
    """The call of a convolution returns at once; the operations that follow start in the last region of its work."""
    caller = [op("convolution", 0, 5), pooled("Record", 2, _p=1), event("ThunkExecutor::Execute (wait)", 5, 200)]
    worker = [
        pooled("StartRegion", 10, _c=1),
        pooled("Record", 20, _p=2),  # it asks for more
        pooled("StopRegion", 40),
        pooled("StartRegion", 50, _c=2),
        event("ThunkExecutor::Execute", 90, 150),
        op("sine", 95, 145),
        event("end: convolution", 151, 151),
        pooled("StopRegion", 155),
    ]
    found, own = runs(caller, worker)
    assert own == {"convolution": 5 + 30 + (90 - 50) + 5, "sine": 50}
    assert [run.is_part for run in found if run.name == "convolution"] == [False, True, True]
    assert [run.thread for run in found] == [0, 1, 1, 1]


def test_an_operation_on_several_threads_counts_the_time_once():
    """The clock goes on once, however many threads work at it."""
    caller = [op("fusion", 0, 100), pooled("Record", 1, _p=7)]
    workers = [[pooled("StartRegion", 10, _c=7), pooled("StopRegion", end)] for end in (90, 130)]
    assert runs(caller, *workers)[1] == {"fusion": 130}


def test_regions_of_nobody_and_loops():
    loop = [op("while", 0, 100), op("body", 10, 40), pooled("Record", 12, _p=3), op("body", 50, 80)]
    worker = [
        pooled("StopRegion", 1),
        pooled("StartRegion", 20, _c=3),
        pooled("StopRegion", 60),
        pooled("StartRegion", 70, _c=99),
        pooled("StopRegion", 90),
        pooled("StartRegion", 95, _c=4),
        pooled("Record", 96, _p=4),  # no region asks for itself
        pooled("StopRegion", 99),
    ]
    found, own = runs(loop, worker)
    assert own == {"while": 40, "body": 30 + 20 + 30} and len(found) == 4


# -- profiles for other tools -------------------------------------------------------------------------


def test_a_trace_for_perfetto(tmp_path):
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        gradix.jit(products)(X).block_until_ready()
    (found,) = tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz")
    assert json.loads(gzip.decompress(found.read_bytes()))["traceEvents"]
    (read,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    assert "/host:CPU" in [plane.name for plane in profiler.ProfileData.from_file(str(read)).planes]


def test_a_profile_of_memory_is_compressed():
    held = jnp.ones((512, 512)) + 1
    held.block_until_ready()
    assert len(gzip.decompress(profiler.device_memory_profile())) > 50


def test_the_arithmetic_of_convolutions_and_reductions():
    def f(x, k):
        y = lax.conv(x, k, (1, 1), "VALID")
        return y.max()

    p = gradix.profile(f)(jnp.ones((2, 3, 20, 20)), jnp.ones((5, 3, 4, 4)))
    rows = {r.line - f.__code__.co_firstlineno: r for r in p.lines if r.file}
    least = 2 * 2 * 5 * 17 * 17 * 3 * 4 * 4  # more where the compiler's form of it computes more
    assert least * 0.99 <= rows[1].flops <= 4 * least and rows[2].flops >= 2 * 5 * 17 * 17


def test_specialized_functions_of_the_same_name_are_left_out():
    """A signature of one is a tree of programs."""

    def make(value):
        def step(x):
            return jnp.sin(x @ x) if x.sum() > value else x

        return step

    special = gradix.jit(make(0.0), specialize=True)
    special(jnp.ones((4, 4)))

    @gradix.jit
    def step(x):
        return jnp.tanh(x @ x)

    rows = gradix.profile(step)(jnp.eye(64)).lines
    assert any(r.flops > 0 for r in rows) and special is not None


@pytest.mark.x32
def test_costly_lines_are_those_that_cost_most_apart():
    def f(x):
        y = jnp.sin(x)
        pairs = y[:, None] * y
        sorted_pairs = jnp.sort(pairs, 0)
        return (sorted_pairs @ sorted_pairs)[0]

    first = f.__code__.co_firstlineno
    args = (jnp.ones(128),)
    flops = max(gradix.profile(f)(*args).lines, key=lambda row: row.flops)
    alone = {line - first: a for (_, line), a in lines_apart.apart(f, args, 1).items()}
    peak = [line - first for _, line in lines_apart.ranked(lines_apart.at_peak(f, args))]
    assert flops.line - first == 4 and set(alone) == {1, 2, 3, 4}
    assert alone[1].nbytes == 128 * 4 and alone[3].nbytes >= 128 * 128 * 4
    assert all(alone[line].nbytes >= 128 * 128 * 4 for line in peak[:2])


def test_the_text_of_a_compiled_program_has_the_users_lines_and_no_others():
    def f(x):
        return jnp.sin(x) @ x

    compiled = gradix.jit(f).lower(jnp.ones((4, 4))).compile()
    assert "jit(f)/sin" in compiled.as_text() and "source_" not in compiled.as_text()
    text = compiled.as_text(debug_info=True)
    assert __file__ in text and re.search(rf"\b(source_)?line={f.__code__.co_firstlineno + 1}\b", text)
