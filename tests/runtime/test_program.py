"""Compiled programs: running, donation, options, persistence, memory."""

import gc

import numpy as np
import pytest

from gradix._core.aval import make_aval
from gradix._runtime import xla
from gradix._stablehlo.emitter import SMALL_CALL

V = make_aval((8,), np.dtype("f4"))
M = make_aval((4, 4), np.dtype("f8"))
X = np.arange(8, dtype="f4")
TEXT = """module @m { func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %a : tensor<8xf32>
  return %0 : tensor<8xf32> } }"""


@pytest.fixture(scope="module")
def double():
    return xla.compile(TEXT, [V], [V])


def test_run(double):
    b = xla.put(X, V)
    np.testing.assert_array_equal(xla.get(double([b])[0]), 2 * X)
    np.testing.assert_array_equal(xla.get(double.run([b])[0]), 2 * X)


def test_inspection(double):
    assert double.cost_analysis()["flops"] == 8
    assert double.memory_analysis().argument_size_in_bytes == 32
    assert "HloModule" in double.hlo_text() and double.device is xla.devices()[0]


def test_persistence(double):
    again = xla.deserialize(double.serialize(), [V], [V])
    np.testing.assert_array_equal(xla.get(again([xla.put(X, V)])[0]), 2 * X)
    with pytest.raises(xla.RuntimeFailure):
        xla.deserialize(b"damaged", [V], [V])


def test_donated_memory_is_reused_unless_seen():
    ex = xla.compile(TEXT.replace("%a: tensor<8xf32>", "%a: tensor<8xf32> {tf.aliasing_output = 0 : i32}"), [V], [V])
    b = xla.put(X, V)
    address = xla.unsafe_buffer_pointer(b)
    (out,) = ex([b])
    assert xla.is_deleted(b) and xla.unsafe_buffer_pointer(out) == address
    b = xla.put(X, V)
    seen = xla.get(b)
    (out,) = ex([b])
    np.testing.assert_array_equal(seen, X)
    np.testing.assert_array_equal(xla.get(out), 2 * X)


def test_wrong_calls_and_wrong_programs_raise(double):
    with pytest.raises(xla.RuntimeFailure):
        double([])
    with pytest.raises(xla.RuntimeFailure):
        xla.compile("module @m { nonsense }", [], [])


def test_options():
    slow = xla.compile(TEXT, [V], [V], options=xla.options(small_loops=False, quick=True))
    np.testing.assert_array_equal(xla.get(slow([xla.put(X, V)])[0]), 2 * X)
    given = xla.options(compiler_options={"xla_cpu_enable_fast_math": True})
    np.testing.assert_array_equal(xla.get(xla.compile(TEXT, [V], [V], options=given)([xla.put(X, V)])[0]), 2 * X)
    for quick in (False, True):  # asked for by the user, so not left out
        with pytest.raises(xla.RuntimeFailure, match="No such compile option: 'xla_no_such_flag'"):
            xla.compile(TEXT, [V], [V], options=xla.options(quick=quick, compiler_options={"xla_no_such_flag": 1}))
    assert hash(xla.options()) == hash(xla.options()) != hash(given)


def test_small_loops_become_one_function():
    assert isinstance(xla.honours_small_loops(), bool)


def test_marked_calls_run(spell):
    F = make_aval((), np.dtype("f4"))

    def body(em, outs, x):
        symbol = em.define("hot", [F], lambda y: [em.op("add", F, y, y)])
        return em.call(symbol, [F], x, attrs=SMALL_CALL)

    assert spell(body, [np.float32(3)], [F]) == [6]


def test_a_marked_call_xla_refuses_is_compiled_unmarked(spell, capfd):
    def body(em, outs, x):
        less = lambda a, b: em.compare(a, b, "LT")

        def sort(y):
            region = em.region([make_aval((), y.dtype)] * 2, less)
            return [em.op("sort", V, y, attrs="dimension = 0 : i64", regions=(region,))]

        return em.call(em.define("hot", [V], sort), [V], x, attrs=SMALL_CALL)

    (got,) = spell(body, [X[::-1]], [V])
    np.testing.assert_array_equal(got, X)


def test_fingerprint():
    assert xla.fingerprint() == xla.fingerprint() and len(xla.fingerprint()) == 64


@pytest.mark.parametrize("size", [1 << 43, 1 << 45, 1 << 58])
def test_absurd_sizes_raise(size):
    t = f"tensor<{size}xf32>"
    text = f"""module @m {{ func.func public @main() -> {t} {{
      %0 = "stablehlo.iota"() {{iota_dimension = 0 : i64}} : () -> {t}
      return %0 : {t} }} }}"""
    with pytest.raises(xla.RuntimeFailure, match="RESOURCE_EXHAUSTED"):
        ex = xla.compile(text, [], [make_aval((size,), np.dtype("f4"))])
        xla.block_until_ready(ex([])[0])


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def test_memory_stays_flat_over_many_calls(double):
    b = xla.put(X, V)
    grown = []
    for _ in range(3):
        gc.collect()
        before = resident()
        for _ in range(20_000):
            double.run([b])
        grown.append(resident() - before)
    assert min(grown) < 300_000  # a leak of 50 bytes a call would be a megabyte each time


def test_lapack(spell):
    xla.ensure_lapack()
    a = np.random.default_rng(0).standard_normal((4, 4))
    a = a @ a.T + np.eye(4)
    I = make_aval((), np.dtype("i4"))

    def body(em, outs, x):
        return em.custom_call(
            "lapack_dpotrf_ffi",
            outs,
            x,
            backend_config={"uplo": np.uint8(ord("L"))},
            operand_layouts=[(0, 1)],
            result_layouts=[(0, 1), ()],
            aliases={0: 0},
        )

    factor, info = spell(body, [a], [M, I])
    assert info == 0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a))
