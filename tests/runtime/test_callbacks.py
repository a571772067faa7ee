"""Python functions called from compiled programs."""

import ml_dtypes
import numpy as np
import pytest

from gradix._core.aval import make_aval
from gradix._runtime import xla

V, I = make_aval((4,), np.dtype("f4")), make_aval((), np.dtype("i4"))
X = np.array([3, 1, 2, 5], "f4")


class Boom(Exception):
    pass


def test_values(spell):
    seen = []

    def sort(x):
        seen.append(x)
        return [np.sort(x)]

    (got,) = spell(lambda em, outs, x: em.callback(sort, [V], x), [X], [V])
    assert got.tolist() == [1, 2, 3, 5]
    assert seen[0].tolist() == X.tolist() and not seen[0].flags.writeable  # a copy that outlives the call


def test_several_operands_and_results(spell):
    def both(x, n):
        return x * np.float32(n), n + 1

    got = spell(lambda em, outs, x, n: em.callback(both, [V, I], x, n), [X, np.int32(2)], [V, I])
    assert got[0].tolist() == (X * 2).tolist() and got[1] == 3


@pytest.mark.parametrize(
    "name",
    ["bool", "int4", "uint2", "int8", "uint64", "bfloat16", "float8_e4m3fn", "float64", "complex128", "float4_e2m1fn"],
)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 5)])
def test_dtypes_and_shapes(name, shape, spell):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = np.asarray(np.random.default_rng(0).integers(0, 2, shape)).astype(dtype)
    seen = []

    def same(v):
        seen.append(v)
        return [v]

    (got,) = spell(lambda em, outs, x: em.callback(same, outs, x, has_side_effect=True), [x], [make_aval(shape, dtype)])
    assert seen[0].dtype == dtype and seen[0].tobytes() == x.tobytes() == got.tobytes()


def test_python_numbers_are_accepted(spell):
    assert spell(lambda em, outs: em.callback(lambda: [7], [I], has_side_effect=True), [], [I]) == [7]


@pytest.mark.parametrize(
    "result, error, message",
    [
        ([np.zeros(3, "f4")], ValueError, r"returned shape \(3,\) for result 0, but its result type says \(4,\)"),
        ([np.zeros(4)], TypeError, r"returned dtype float64 for result 0.*float32.*astype"),
        ([], ValueError, "must return 1 arrays, got 0"),
        (np.zeros(4, "f4"), TypeError, "must return a sequence of 1 arrays, got a ndarray"),
    ],
)
def test_results_are_checked(result, error, message, spell):
    with pytest.raises(error, match=message):
        spell(lambda em, outs, x: em.callback(lambda x: result, [V], x), [X], [V])


@pytest.mark.parametrize("error", [Boom("why"), KeyError("key"), KeyboardInterrupt(), SystemExit(3)])
def test_the_exception_of_the_callback_comes_out_as_itself(error, spell):
    def bad(x):
        raise error

    with pytest.raises(type(error)) as info:
        spell(lambda em, outs, x: em.callback(bad, [V], x), [X], [V])
    assert info.value is error
    assert "bad" in [t.name for t in info.traceback]


def test_effects_without_results(spell):
    seen = []

    def note(x):
        seen.append(x.tolist())
        return []

    def body(em, outs, x):
        em.callback(note, [], x, has_side_effect=True)
        return []

    spell(body, [X], [])
    assert seen == [X.tolist()]


def test_an_error_without_results_is_not_lost(spell):
    def bad(x):
        raise Boom

    def body(em, outs, x):
        em.callback(bad, [], x, has_side_effect=True)
        return []

    with pytest.raises(Boom):
        spell(body, [X], [])


def test_an_unread_pure_callback_is_dropped(spell):
    seen = []

    def body(em, outs, x):
        em.callback(lambda x: seen.append(1) or [x], [V], x)
        return [x]

    spell(body, [X], [V])
    assert seen == []


def test_ordered_callbacks_run_in_order_through_loops_branches_and_calls(spell):
    seen = []

    def note(tag):
        return lambda i: seen.append((tag, int(i))) or []

    def body(em, outs, n):
        def tell(tag, i):
            em.callback(note(tag), [], i, ordered=True)

        one = em.constant(1, I)
        tell("before", n)

        def step(i):
            tell("loop", i)
            em.case(i, [list, lambda: tell("one", i) or []], [], ordered=True)
            return [em.op("add", I, i, one)]

        em.while_loop([em.constant(0, I)], lambda i: em.compare(i, n, "LT"), step, ordered=True)
        symbol = em.define("inner", [I], lambda i: tell("called", i) or [i], ordered=True)
        em.call(symbol, [I], n, ordered=True)
        tell("after", n)
        return [n]

    spell(body, [np.int32(2)], [I])
    assert seen == [("before", 2), ("loop", 0), ("loop", 1), ("one", 1), ("called", 2), ("after", 2)]


def test_callbacks_may_use_xla(spell):
    def again(x):
        return [xla.get(xla.put(x, V)) + 1]

    (got,) = spell(lambda em, outs, x: em.callback(again, [V], x), [X], [V])
    assert got.tolist() == (X + 1).tolist()


def test_programs_with_callbacks_persist(lower, compiled):
    m = lower(lambda em, outs, x: em.callback(lambda x: [x + 1], [V], x), [V], [V])
    blob = compiled(m).serialize()
    ex = xla.deserialize(blob, m.in_avals, m.out_avals, m.host_callbacks)
    assert xla.get(ex([xla.put(X, V)])[0]).tolist() == (X + 1).tolist()
