"""custom_partitioning: functions that say how they are divided, on eight devices, beside the same functions plain."""

import importlib
import importlib.util
import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental.custom_partitioning import BATCHING, ArrayMapping, SdyShardingRule, custom_partitioning
from gradix.sharding import NamedSharding, PartitionSpec as P
from tests.devices.eight.common import mesh, on, sharded

COMMUNICATES = re.compile(r"all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter")


def values(*shape):
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32)


def by_rows(function, rank=2, rule="... i -> ... i", **kinds):
    """A function along the last axis, of whole rows; divided as the operand is along the others."""
    wrapped = custom_partitioning(function)
    wrapped.seen = []

    def partition(m, args, result):
        (a,) = args
        wrapped.seen.append((a.shape, a.sharding.spec))
        whole = NamedSharding(m, P(*tuple(a.sharding.spec)[: len(a.shape) - 1]))
        return m, function, whole, (whole,)

    wrapped.def_partition(partition, sharding_rule=rule, **kinds)
    return wrapped


def contraction():
    """A product whose contracted axis may be divided: each device's share, and a sum over them."""
    wrapped = custom_partitioning(lambda x, y: x @ y)

    def partition(m, args, result):
        rows, inner = (*tuple(args[0].sharding.spec), None, None)[:2]
        columns = (*tuple(args[1].sharding.spec), None, None)[1]
        columns = None if columns in (rows, inner) else columns
        names = (inner,) if isinstance(inner, str) else inner

        def part(x, y):
            out = x @ y
            return lax.psum(out, names) if names else out

        return (
            m,
            part,
            NamedSharding(m, P(rows, columns)),
            (NamedSharding(m, P(rows, inner)), NamedSharding(m, P(inner, columns))),
        )

    wrapped.def_partition(partition, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    return wrapped


def test_what_is_along_whole_rows_communicates_nothing():
    fft = by_rows(lambda v: jnp.fft.fft(v))
    x = values(8, 16)
    for spec, talks in ((("x",), False), ((("x", "y"),), False), (("x", "y"), True), ((None, "y"), True)):
        f = gradix.jit(fft)
        compiled = f.lower(sharded(x, mesh(), *spec)).compile()
        assert bool(COMMUNICATES.search(compiled.as_text())) == talks, spec
        got = f(sharded(x, mesh(), *spec))
        np.testing.assert_allclose(got, np.fft.fft(x), rtol=1e-4, atol=1e-4)
        assert got.sharding.spec[:1] == spec[:1]
    assert fft.seen[0] == ((8, 16), P("x", None))


def test_collectives_of_the_mesh_in_one_device_s_part():
    product, x, y = contraction(), values(8, 4), values(4, 8)
    for left, right in (
        ((None, "x"), ("x",)),
        (("x", "y"), ("y",)),
        ((), ()),
        (("y",), (None, "x")),
        ((None, ("x", "y")), (("x", "y"),)),
    ):
        if left == (None, ("x", "y")):
            a, b = values(8, 8), values(8, 8)
        else:
            a, b = x, y
        got = gradix.jit(product)(sharded(a, mesh(), *left), sharded(b, mesh(), *right))
        np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-5)
    f = gradix.jit(product)
    text = f.lower(sharded(x, mesh(), None, "x"), sharded(y, mesh(), "x")).compile().as_text()
    assert len(re.findall(r" all-reduce(?:-start)?\(", text)) == 1 and "all-gather" not in text


def test_trees_static_arguments_and_names_of_arguments():
    def scaled(d, power, *, by=3.0):
        return {"out": d["a"] ** power * by, "sum": d["b"]}

    def flexible(d, power, by=3.0):
        return {"out": d["a"] ** power * by, "sum": d["b"]}

    seen = []

    def partition(power, by, m, args, result):
        seen.append((power, by, sorted(args[0]), sorted(result)))
        s = {k: v.sharding for k, v in args[0].items()}
        return m, lambda d: {"out": d["a"] ** power * by, "sum": d["b"]}, {"out": s["a"], "sum": s["b"]}, (s,)

    f = custom_partitioning(flexible, static_argnums=(1, 2))
    f.def_partition(
        partition, sharding_rule=lambda power, by, m, ins, outs: "i j, k -> i j, k" if len(ins[0].shape) == 2 else 1 / 0
    )
    given = {"a": sharded(values(8, 4), mesh(), "x"), "b": sharded(values(8), mesh(), "y")}
    got = gradix.jit(lambda d: f(d, 2))(given)
    np.testing.assert_allclose(got["out"], values(8, 4) ** 2 * 3, rtol=1e-6)
    assert got["out"].sharding.spec == P("x") and got["sum"].sharding.spec == P("y")
    got = f(given, by=2.0, power=3)  # outside of jit, out of order
    np.testing.assert_allclose(got["out"], values(8, 4) ** 3 * 2, rtol=1e-5)
    assert seen == [(2, 3.0, ["a", "b"], ["out", "sum"]), (3, 2.0, ["a", "b"], ["out", "sum"])]
    with pytest.raises(TypeError, match="could not be resolved to positions"):
        g = custom_partitioning(scaled, static_argnums=(1,))
        g.def_partition(partition)
        g(given, 2, by=1.0)
    with pytest.raises(TypeError, match="power"):
        f(given)


def test_vmap_maps_what_was_defined():
    fft = by_rows(lambda v: jnp.fft.fft(v))
    x = values(4, 8, 16)
    for spec, axis in ((("y", "x"), 0), ((None, "x"), 0), (("x", None, "y"), 1), ((), 2)):
        size = x.shape[axis]
        f = gradix.jit(gradix.vmap(fft, in_axes=axis, out_axes=1))
        fft.seen.clear()
        got = f(sharded(x, mesh(), *spec))
        np.testing.assert_allclose(
            got, np.moveaxis(np.fft.fft(np.moveaxis(x, axis, 0)), 0, 1), rtol=1e-4, atol=1e-4, err_msg=str(spec)
        )
        assert fft.seen == [(np.moveaxis(x, axis, 0).shape[1:], fft.seen[0][1])] and size
    text = gradix.jit(gradix.vmap(fft)).lower(sharded(x, mesh(), "y", "x")).compile().as_text()
    assert not COMMUNICATES.search(text)  # the mapped axis stays divided
    product = contraction()
    y = values(16, 8)
    got = gradix.jit(gradix.vmap(gradix.vmap(product, (0, None)), (0, None)))(
        sharded(x[None], mesh(), None, "x", None, "y"), sharded(y, mesh(), "y")
    )
    np.testing.assert_allclose(got, (x @ y)[None], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gradix.vmap(fft)(x), np.fft.fft(x), rtol=1e-4, atol=1e-4)


def test_vmap_of_the_compiler_s_own_shardings():
    f = custom_partitioning(lambda x: x * 2)
    kinds = []

    def partition(m, args, result):
        kinds.append(type(args[0].sharding).__name__)
        return m, lambda x: x * 2, args[0].sharding, (args[0].sharding,)

    f.def_partition(
        partition,
        sharding_rule=SdyShardingRule((ArrayMapping(BATCHING, "i"),), (ArrayMapping(BATCHING, "i"),)),
        decode_shardings=False,
    )
    x = values(4, 8, 4)
    np.testing.assert_array_equal(gradix.jit(f)(sharded(x, mesh(), "x", "y")), x * 2)
    np.testing.assert_array_equal(gradix.jit(gradix.vmap(f))(sharded(x, mesh(), "x", "y")), x * 2)
    assert kinds == ["GSPMDSharding"] * 2


def test_derivatives_are_those_of_the_function_or_of_the_rule_around():
    def softmaxed(x):
        return jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True)

    f, x = by_rows(softmaxed), values(8, 4)
    on_x = sharded(x, mesh(), "x", "y")

    def loss(g):
        return lambda v: (g(v) ** 2).sum()

    want = gradix.grad(loss(softmaxed))(x)
    np.testing.assert_allclose(gradix.jit(gradix.grad(loss(f)))(on_x), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradix.grad(loss(f))(on_x), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        gradix.jvp(f, (on_x,), (on_x,))[1], gradix.jvp(softmaxed, (x,), (x,))[1], rtol=1e-5, atol=1e-6
    )

    back = custom_partitioning(lambda out, ct: out * (ct - (out * ct).sum(-1, keepdims=True)))

    def divide(m, args, result):
        s = NamedSharding(m, P(args[0].sharding.spec[0]))
        return m, back.fun, s, (s, s)

    back.def_partition(divide, sharding_rule="i j, i j -> i j", need_replication_factors=("j",))
    ruled = gradix.custom_vjp(f)
    ruled.defvjp(lambda v: (f(v),) * 2, lambda out, ct: (back(out, ct),))
    g = gradix.jit(gradix.grad(loss(ruled)))
    np.testing.assert_allclose(g(on_x), want, rtol=1e-5, atol=1e-6)
    text = gradix.jit(lambda v: gradix.vjp(ruled, v)[1](v)).lower(sharded(x, mesh(), "x")).compile().as_text()
    assert not COMMUNICATES.search(text)


def test_within_loops_maps_and_on_one_device():
    fft, x = by_rows(lambda v: jnp.cumsum(v, -1)), values(8, 4)
    want = np.cumsum(np.cumsum(x, -1), -1)
    scanned = gradix.jit(lambda v: lax.scan(lambda c, _: (fft(c), None), v, None, length=2)[0])
    np.testing.assert_allclose(scanned(sharded(x, mesh(), "x", "y")), want, rtol=1e-5, atol=1e-5)
    mapped = gradix.shard_map(lambda v: fft(fft(v)), mesh=mesh(), in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_allclose(gradix.jit(mapped)(x), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradix.pmap(lambda v: fft(fft(v)))(x), want, rtol=1e-5, atol=1e-5)
    remat = gradix.jit(gradix.grad(gradix.checkpoint(lambda v: (fft(v) ** 2).sum())))
    np.testing.assert_allclose(
        remat(sharded(x, mesh(), "x")), gradix.grad(lambda v: (jnp.cumsum(v, -1) ** 2).sum())(x), rtol=1e-4
    )
    fft.seen.clear()
    np.testing.assert_allclose(gradix.jit(fft)(x), np.cumsum(x, -1), rtol=1e-5)
    np.testing.assert_allclose(fft(x), np.cumsum(x, -1), rtol=1e-5)
    assert not fft.seen  # one device asks nobody
    assert "custom_partitioning" in str(gradix.make_jaxpr(fft)(x))
    assert "gradix_custom_partitioning" not in gradix.jit(fft).lower(x).as_text()
    assert (
        "op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}, custom>"
        in gradix.jit(fft).lower(sharded(x, mesh(), "x")).as_text()
    )


def test_two_calls_in_one_program_and_constants_of_the_part():
    table = values(4)
    f, g = by_rows(lambda v: v * table), by_rows(lambda v: v + jnp.arange(4.0))
    got = gradix.jit(lambda v: (f(g(v)), g(f(v))))(sharded(values(8, 4), mesh(), "x"))
    np.testing.assert_allclose(got[0], (values(8, 4) + np.arange(4)) * table, rtol=1e-5)
    np.testing.assert_allclose(got[1], values(8, 4) * table + np.arange(4), rtol=1e-5)


def answer(m, args, result):
    return m, lambda v: v * 2, args[0].sharding, (args[0].sharding,)


def changed(k, value):
    return lambda m, a, r: (*answer(m, a, r)[:k], value, *answer(m, a, r)[k + 1 :])


WRONG = {
    "callbacks alone": (
        answer,
        dict(infer_sharding_from_operands=lambda m, a, r: a[0].sharding),
        NotImplementedError,
        "sharding_rule",
    ),
    "other rank": (answer, dict(sharding_rule="i -> i"), ValueError, "rank 1.*rank 2.*shape \\(8, 4\\)"),
    "other count": (answer, dict(sharding_rule="i j, k -> i j"), ValueError, "2 operands, but the operation has 1"),
    "factor twice": (answer, dict(sharding_rule="i i -> i i"), ValueError, "factor i twice"),
    "sum in the result": (
        answer,
        dict(sharding_rule="i j -> i j", reduction_factors=("i",)),
        ValueError,
        "occur only in operands",
    ),
    "unknown factor": (
        answer,
        dict(sharding_rule="i j -> i j", reduction_factors=("q",)),
        ValueError,
        "factors are i, j",
    ),
    "no arrow": (answer, dict(sharding_rule="i j"), ValueError, "no ->"),
    "no rule": (answer, dict(sharding_rule=3), TypeError, "must be a str"),
    "kinds of an object": (
        answer,
        dict(sharding_rule=lambda *a: "i j -> i j", need_replication_factors=("i",)),
        ValueError,
        "Unknown keyword",
    ),
    "other shape": (
        changed(1, lambda v: v[:1]),
        dict(sharding_rule="i j -> i j"),
        ValueError,
        r"float32\[1,2\].*float32\[2,2\]",
    ),
    "other dtype": (changed(1, lambda v: v.astype("int32")), dict(sharding_rule="i j -> i j"), ValueError, "int32"),
    "no four": (lambda m, a, r: 3, dict(sharding_rule="i j -> i j"), TypeError, "result_shardings, arg_shardings"),
    "no mesh": (changed(0, "m"), dict(sharding_rule="i j -> i j"), TypeError, "must return a Mesh first"),
    "no sharding": (
        changed(2, None),
        dict(sharding_rule="i j -> i j"),
        ValueError,
        "must return Sharding.*result_shardings",
    ),
    "a spec": (
        changed(3, (P("x"),)),
        dict(sharding_rule="i j -> i j"),
        ValueError,
        r"must return (Sharding|arg_shardings)",
    ),
    "no tuple": (
        lambda m, a, r: (*answer(m, a, r)[:3], a[0].sharding),
        dict(sharding_rule="i j -> i j"),
        ValueError,
        "Expected tuple",
    ),
    "other devices": (changed(2, on(mesh((4,), ("z",)), "z")), dict(sharding_rule="i j -> i j"), ValueError, "devices"),
    "its own": (lambda m, a, r: 1 / 0, dict(sharding_rule="i j -> i j"), ZeroDivisionError, "division"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_definitions(case):
    partition, options, error, match = WRONG[case]
    with pytest.raises(error, match=f"(?s){match}"):
        f = custom_partitioning(lambda v: v * 2)
        f.def_partition(partition, **options)
        gradix.jit(f)(sharded(values(8, 4), mesh(), "x", "y"))


def test_wrong_calls():
    f = custom_partitioning(lambda v: v * 2)
    with pytest.raises(AttributeError, match="def_partition"):
        f(values(2))
    with pytest.raises(ValueError, match=r"traced arrays from outside.*float\d\d\[\]"):

        def closed_over(z):
            g = custom_partitioning(lambda v: v * z)
            g.def_partition(answer)
            return g(values(8, 4))

        gradix.jit(closed_over)(2.0)
    calls = by_rows(lambda v: gradix.pure_callback(np.sin, v, v))
    with pytest.raises(NotImplementedError, match="calls Python"):
        gradix.jit(calls)(sharded(values(8, 4), mesh(), "x"))


RULES = [
    ("... i -> ... i", {}),
    ("i j -> i j", {}),
    ("i j -> i j", dict(need_replication_factors=("j",))),
    ("... -> ...", {}),
    ("(a b) j -> (a b) j", dict(a=2, b=4)),
    ("i j -> i j", dict(permutation_factors=("i",))),
    (None, {}),
]
SPECS = [("x",), (None, "x"), ("x", "y"), (("x", "y"),), ("y", "x"), ()]


def where_results_lie(name: str) -> list:
    """For each rule and spec: what the partition function is told, and where the result is."""
    lib = importlib.import_module(name)
    numpy = importlib.import_module(name + ".numpy")
    wrap = importlib.import_module(name + ".experimental.custom_partitioning").custom_partitioning
    shard = lib.sharding
    m = shard.Mesh(np.array(lib.devices()).reshape(4, 2), ("x", "y"))
    told: list = []

    def spec_of(s):
        return tuple(s.spec)

    def partition(m, args, result):
        told.append((spec_of(args[0].sharding), spec_of(result.sharding)))
        return m, lambda v: numpy.sin(v), args[0].sharding, (args[0].sharding,)

    for rule, kinds in RULES:
        f = wrap(lambda v: numpy.sin(v))
        f.def_partition(partition, sharding_rule=rule, **kinds)
        for spec in SPECS:
            x = lib.device_put(values(8, 8), shard.NamedSharding(m, shard.PartitionSpec(*spec)))
            told.append(spec_of(lib.jit(f)(x).sharding))
    return told


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the peer is not installed")
def test_the_compiler_suggests_what_it_suggests_to_the_peer():
    assert where_results_lie("gradix") == where_results_lie("jax")
