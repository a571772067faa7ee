"""Regions, loops, branches, private functions and the everyday operations, run on XLA."""

import subprocess
import sys

import numpy as np
import pytest

from gradix._core.aval import make_aval
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._core.primitive import Primitive
from gradix._stablehlo.emitter import SMALL_CALL, Emitter, identifier
from gradix._stablehlo.module import lower_jaxpr

F, I, B = (make_aval((), np.dtype(d)) for d in ("f4", "i4", "?"))
V = make_aval((4,), np.dtype("f4"))
X = np.array([3, 1, 2, 5], "f4")


class Op(Primitive):
    """An elementwise StableHLO operation."""

    def lower(self, em, out, *values):
        return em.op(self.name, out, *values)


def chain(name, n, aval=F):
    """`x = name x x`, n times."""
    p, vs = Op(name), [Var(aval) for _ in range(n + 1)]
    return Jaxpr([], vs[:1], vs[-1:], [JaxprEqn(p, [a, a], [b], {}) for a, b in zip(vs, vs[1:])])


def test_reduce_by_name_and_by_function(spell):
    def body(em, outs, x):
        zero, one = em.constant(0.0, F), em.constant(1.0, F)
        total = em.reduce([x], [zero], (0,), [F], "add")
        twice = em.reduce([x], [one], (0,), [F], lambda a, b: [em.op("multiply", F, a, b)])
        return total + twice

    assert spell(body, [X], [F, F]) == [11, 30]


def test_reduce_of_two_operands_is_argmax(spell):
    def body(em, outs, x):
        i = em.iota(make_aval((4,), np.dtype("i4")), 0)

        def larger(a, ai, b, bi):
            keep = em.compare(a, b, "GE")
            return [em.select(keep, a, b), em.select(keep, ai, bi)]

        return em.reduce([x, i], [em.constant(-np.inf, F), em.constant(0, I)], (0,), [F, I], larger)

    assert spell(body, [X], [F, I]) == [5, 3]


def test_while_reads_outer_values_and_constants(spell):
    def body(em, outs, x, n):
        one = em.constant(1, I)
        return em.while_loop(
            [em.constant(0, I), x],
            lambda i, _: em.compare(i, n, "LT"),
            lambda i, y: [em.op("add", I, i, one), em.op("add", F, y, x)],
        )[1:]

    assert spell(body, [np.float32(2), np.int32(5)], [F]) == [12]


def test_reduce_inside_while_inside_case(spell):
    def body(em, outs, x, which):
        def loop():
            def step(i, y):
                (total,) = em.reduce([y], [em.constant(0.0, F)], (0,), [F], "add")
                return [em.op("add", I, i, em.constant(1, I)), em.op("divide", V, y, em.broadcast(total, (4,)))]

            return em.while_loop([em.constant(0, I), x], lambda i, _: em.compare(i, em.constant(3, I), "LT"), step)[1:]

        return em.case(which, [loop, lambda: [x]], [V])

    (got,) = spell(body, [X, np.int32(0)], [V])
    np.testing.assert_allclose(got, X / X.sum(), rtol=1e-6)
    np.testing.assert_array_equal(spell(body, [X, np.int32(9)], [V])[0], X)


def test_many_results_and_none(spell):
    def body(em, outs, x):
        return em.case(em.constant(0, I), [lambda: [x, x]], [V, V])

    assert all((g == X).all() for g in spell(body, [X], [V, V]))
    assert spell(lambda em, outs, x: [], [X], []) == []


@pytest.mark.parametrize("dtype", ["f4", "i4", "u4", "?", "c8"])
def test_compare_kinds(dtype, spell):
    x, y = np.array([0, 1, 1]).astype(dtype), np.array([1, 1, 0]).astype(dtype)
    out = make_aval((3,), np.dtype(bool))
    got = spell(lambda em, outs, x, y: [em.compare(x, y, d) for d in ("EQ", "NE")], [x, y], [out, out])
    np.testing.assert_array_equal(got, [x == y, x != y])


@pytest.mark.parametrize("source", ["f4", "f8", "i4", "u1", "?", "c8", "c16"])
@pytest.mark.parametrize("target", ["f4", "f8", "i4", "u1", "?", "c8", "c16"])
def test_convert(source, target, spell):
    x, out = np.array([0, 1, 2]).astype(source), make_aval((3,), np.dtype(target))
    (got,) = spell(lambda em, outs, x: [em.convert(x, np.dtype(target))], [x], [out])
    want = x.real if source[0] == "c" and target not in ("?", "c8", "c16") else x
    np.testing.assert_array_equal(got, want.astype(target))


def test_shapes(spell):
    x = np.arange(6, dtype="f4").reshape(2, 3)
    out = [make_aval(s, x.dtype) for s in ((3, 2), (6,), (5, 2, 3), (2, 4, 3))]

    def body(em, outs, x):
        return [
            em.transpose(x, (1, 0)),
            em.reshape(x, (6,)),
            em.broadcast(x, (5, 2, 3)),
            em.broadcast_in_dim(x, outs[3], (0, 2)),
        ]

    got = spell(body, [x], out)
    want = [x.T, x.ravel(), np.broadcast_to(x, (5, 2, 3)), np.broadcast_to(x[:, None], (2, 4, 3))]
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)


def test_nothing_is_written_for_a_change_of_nothing(lower):
    m = lower(
        lambda em, outs, x: [em.transpose(em.reshape(em.broadcast(em.convert(x, x.dtype), (4,)), (4,)), (0,))], [V], [V]
    )
    assert "stablehlo" not in m.text


def test_chlo(spell):
    (got,) = spell(lambda em, outs, x: [em.op("chlo.erf", V, x)], [np.zeros(4, "f4")], [V])
    assert (got == 0).all()


def test_sort_with_attributes_and_region(spell):
    def body(em, outs, x):
        region = em.region([F, F], lambda a, b: em.compare(a, b, "GT"))
        return [em.op("sort", V, x, attrs="dimension = 0 : i64, is_stable = true", regions=(region,))]

    assert spell(body, [X], [V])[0].tolist() == [5, 3, 2, 1]


def test_equal_programs_share_one_private_function(spell, lower):
    def body(em, outs, x):
        for jaxpr in (chain("add", 3), chain("add", 3), chain("multiply", 1)):
            (x,) = em.call_jaxpr("inner", jaxpr, (), [x])
        return em.call_jaxpr("inner", chain("add", 3), (), [x], attrs=SMALL_CALL)

    m = lower(body, [F], [F])
    assert m.text.count("func.func private") == 2 and "@inner_1" in m.text
    assert spell(body, [np.float32(1)], [F]) == [(64**2) * 8]


def test_the_same_jaxpr_is_written_once(lower):
    calls, inner = [], chain("add", 2)

    class Counted(Op):
        def lower(self, em, out, *values):
            calls.append(1)
            return super().lower(em, out, *values)

    for eqn in inner.eqns:
        eqn.primitive = Counted("add")
    lower(lambda em, outs, x: em.call_jaxpr("f", inner, (), em.call_jaxpr("f", inner, (), [x])), [F], [F])
    assert len(calls) == 2


def test_private_functions_take_constants_as_arguments(spell):
    c, x, y = Var(V), Var(V), Var(V)
    inner = Jaxpr([c], [x], [y], [JaxprEqn(Op("add"), [x, c], [y], {})])
    (got,) = spell(lambda em, outs, x: em.call_jaxpr("f", inner, [X], [x]), [X], [V])
    np.testing.assert_array_equal(got, 2 * X)


def test_literals_and_repeated_or_passed_through_results():
    x, y = Var(F), Var(F)
    eqn = JaxprEqn(Op("add"), [x, Literal(2.0, F)], [y], {})
    m = lower_jaxpr(ClosedJaxpr(Jaxpr([], [x], [y, y, x, Literal(1.0, F)], [eqn]), []), "f")
    assert 'return"(%2, %2, %arg0, %3)' in m.text


def test_expand_is_traced_once():
    class Double(Primitive):
        def expand(self, x):
            return x

    traced, p, vs = [], Double("double"), [Var(F) for _ in range(3)]

    def trace(fn, avals, params):
        traced.append((fn, avals, params))
        return ClosedJaxpr(chain("add", 1), [])

    jaxpr = Jaxpr([], vs[:1], vs[2:], [JaxprEqn(p, [a], [b], {}) for a, b in zip(vs, vs[1:])])
    m = lower_jaxpr(ClosedJaxpr(jaxpr, []), "f", trace_expand=trace)
    assert m.text.count("stablehlo.add") == 2 and traced == [(p.expand, (F,), {})]


def test_expansions_tell_equal_parameters_apart():
    class Fill(Primitive):
        def expand(self, x, *, value):
            return x

    traced, p, vs = [], Fill("fill"), [Var(F) for _ in range(5)]

    def trace(fn, avals, params):
        traced.append(params["value"])
        return ClosedJaxpr(chain("add", 1), [])

    values = [0.0, -0.0, 1, True]
    eqns = [JaxprEqn(p, [a], [b], {"value": v}) for a, b, v in zip(vs, vs[1:], values)]
    lower_jaxpr(ClosedJaxpr(Jaxpr([], vs[:1], vs[-1:], eqns), []), "f", trace_expand=trace)
    assert [repr(v) for v in traced] == ["0.0", "-0.0", "1", "True"]


def test_a_missing_rule_says_what_to_write():
    x, y = Var(F), Var(F)
    jaxpr = Jaxpr([], [x], [y], [JaxprEqn(Primitive("bare"), [x], [y], {})])
    with pytest.raises(NotImplementedError, match="'bare' cannot be compiled.*Add a method `lower"):
        lower_jaxpr(ClosedJaxpr(jaxpr, []), "f")


def test_unused_and_donated_arguments(lower):
    m = lower(lambda em, outs, *xs: [em.op("negate", V, xs[0])], [V, F], [V], donated=(0, 1))
    assert m.kept == (0, 1) and m.unusable_donations == (1,) and "tf.aliasing_output = 0 : i32" in m.text
    x, unused, y = Var(V), Var(F), Var(V)
    closed = ClosedJaxpr(Jaxpr([], [unused, x], [y], [JaxprEqn(Op("negate"), [x], [y], {})]), [])
    m = lower_jaxpr(closed, "f", keep_unused=False, donated=(0,))
    assert m.kept == (1,) and m.in_avals == (V,) and m.unusable_donations == (0,)


def test_large_constants_become_arguments(lower):
    big, small = np.arange(1000, dtype="f4"), np.arange(4, dtype="f4")
    add = lambda em, outs, b, s, x: [em.op("add", b.aval, b, x)]
    m = lower(add, [make_aval((1000,), big.dtype)], [make_aval((1000,), big.dtype)], [big, small])
    assert len(m.const_args) == 1 and m.const_args[0] is big and len(m.in_avals) == 2
    m = lower(add, [make_aval((1000,), big.dtype)], [make_aval((1000,), big.dtype)], [big, small], hoist_bytes=None)
    assert m.const_args == () and len(m.in_avals) == 1


def test_attributes_of_arguments_results_and_module(lower):
    m = lower(
        lambda em, outs, x: [x],
        [V],
        [V],
        arg_attrs={0: {"jax.buffer_donor": True}},
        result_attrs={0: {"jax.result_info": "out"}},
        module_attrs={"mhlo.num_partitions": np.int32(1)},
    )
    assert "{jax.buffer_donor = true}" in m.text and '{jax.result_info = "out"}' in m.text
    assert "attributes {mhlo.num_partitions = 1 : i32}" in m.text


@pytest.mark.parametrize(
    "name, want", [("f", "f"), ("jit_<lambda>", "jit__lambda_"), ("2x", "_2x"), ("", "_"), ("größe", "gr__e")]
)
def test_names_are_made_safe(name, want):
    assert identifier(name) == want
    assert f"module @{want} " in lower_jaxpr(ClosedJaxpr(chain("add", 1), []), name).text


def test_custom_call_text():
    em = Emitter()
    _, _, text = em.body(
        [V],
        lambda x: em.custom_call(
            "t",
            [V, I],
            x,
            backend_config={"uplo": np.uint8(76)},
            operand_layouts=[(0,)],
            result_layouts=[(0,), ()],
            aliases={0: 0},
        ),
    )
    assert 'call_target_name = "t", api_version = 4 : i32' in text and "backend_config = {uplo = 76 : ui8}" in text
    assert "output_tuple_indices = [0], operand_index = 0" in text and "dense<> : tensor<0xindex>" in text


def test_a_scalar_is_broadcast_once_among_lines_that_see_each_other():
    em, strong = Emitter(), make_aval((4,), np.dtype("f4"), True)

    def body(x):
        first, again = em.broadcast_in_dim(x, V, ()), em.broadcast_in_dim(x, V, ())
        assert again is first and first.filled_with is x
        other = em.broadcast_in_dim(x, strong, ())
        assert (other.name, other.aval, other.filled_with) == (first.name, strong, x)
        inside = em.region([], lambda: [em.broadcast_in_dim(x, V, ())])
        return [first], inside

    found = []
    _, _, text = em.body([F], lambda x: found.append(body(x)) or found[0][0])
    assert text.count("broadcast_in_dim") == 1 and found[0][1].count("broadcast_in_dim") == 1


def test_operations_end_with_their_names_and_parts_of_regions_with_none():
    p, vs = Op("negate"), [Var(V), Var(V)]
    inner = Jaxpr([], vs[:1], vs[1:], [JaxprEqn(p, vs[:1], vs[1:], {})])

    class Twice(Primitive):
        def lower(self, em, out, x):
            (y,) = em.inline(inner, [], [x])
            return em.op("add", out, y, em.reduce([x], [em.constant(0.0, F)], (0,), [F], "add")[0])

    outer = Jaxpr([], [a := Var(V)], [b := Var(V)], [JaxprEqn(Twice("twice"), [a], [b], {})])
    negated, *region, end, added = lower_jaxpr(ClosedJaxpr(outer, []), "f", named=True).text.splitlines()[3:-3]
    assert "negate" in negated and negated.endswith(' loc("jit(f)/negate")')
    assert "reduce" in region[0] and "stablehlo.add" in region[2] and not [line for line in region if "loc(" in line]
    assert end.startswith("})") and "add" in added and {end[-18:], added[-18:]} == {' loc("jit(f)/twice")'[-18:]}


def test_the_modules_of_dialects_stay_whole():
    """Also where a dialect's extension imports its module before it has its own names, as in newer versions of jaxlib."""
    program = (
        "from gradix._runtime import mlir_bindings; mlir_bindings.bindings()\n"
        "import importlib\n"
        "for name in 'stablehlo', 'chlo', 'sdy':\n"
        "    parts = [importlib.import_module(f'jaxlib.mlir.{m}{name}') for m in ('dialects.', '_mlir_libs._')]\n"
        "    lost = {n for n in vars(parts[1]) if not n.startswith('_')} - set(vars(parts[0]))\n"
        "    assert not lost, (name, lost)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
