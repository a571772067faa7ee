"""Programs whose parts need nothing of each other: run part after part once they are called often, with the same results."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._runtime import independent_parts as ip, program
from gradix.sharding import PartitionSpec as P
from tests.devices.eight.common import mesh, on, sharded

M = mesh()
X = np.random.RandomState(0).randn(16, 16).astype(np.float32)


def mapped(f):
    return gradix.shard_map(f, mesh=M, in_specs=P("x", "y"), out_specs=P("x", "y"))


@pytest.fixture
def decided(monkeypatch):
    """What is decided of each program that is called often."""
    said, real = [], ip.runner

    def runner(made, closed, home):
        found = real(made, closed, home)
        said.append(found is not None)
        return found

    monkeypatch.setattr(program.independent_parts, "runner", runner)
    return said


RUN_ALONE = {
    "plus": lambda: (lambda a: a + 1, ["x", "y"]),
    "several": lambda: (lambda a: (a * 0.9 + 0.1, jnp.sin(a) ** 2, a.astype(jnp.bfloat16)), ["x", "y"]),
    "of replicas": lambda: (lambda a: a * 3, [None, "x"]),
    "whole": lambda: (lambda a: jnp.exp(a), []),
    "mapped": lambda: (mapped(lambda v: jnp.tanh(v @ v.T).sum() * v), ["x", "y"]),
    "mapped loop": lambda: (mapped(lambda v: lax.fori_loop(0, 3, lambda i, c: c * 2 + i, v)), ["x", "y"]),
    "mapped jit": lambda: (mapped(gradix.jit(lambda v: jnp.sort(v, 0)[::-1])), ["x", "y"]),
}
RUN_TOGETHER = {
    "sum": lambda: (lambda a: a.sum(), ["x", "y"]),
    "sorted": lambda: (lambda a: jnp.sort(a, 0), ["x", "y"]),
    "turned": lambda: (lambda a: a.T + 1, ["x", "y"]),
    "index": lambda: (lambda a: a + jnp.arange(16), ["x", "y"]),
    "constrained": lambda: (lambda a: lax.with_sharding_constraint(a + 1, on(M, "y")), ["x", "y"]),
    "mapped sum": lambda: (mapped(lambda v: v - lax.pmean(v, "x")), ["x", "y"]),
    "mapped index": lambda: (mapped(lambda v: v + lax.axis_index("x")), ["x", "y"]),
    "mapped over an axis": lambda: (
        gradix.shard_map(lambda v: v * 2, mesh=M, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}),
        ["x", "y"],
    ),
    "mapped in part": lambda: (lambda a: mapped(lambda v: v * 2)(a) + a, ["x", "y"]),
    "calls back": lambda: (lambda a: gradix.pure_callback(lambda v: v, a, a), ["x", "y"]),
}


@pytest.mark.parametrize(("name", "alone"), [*[(n, True) for n in RUN_ALONE], *[(n, False) for n in RUN_TOGETHER]])
def test_results_are_the_same_bit_for_bit(name, alone, decided):
    f, spec = {**RUN_ALONE, **RUN_TOGETHER}[name]()
    f, a = gradix.jit(f), sharded(X, M, *spec)
    first = gradix.tree.leaves(f(a))
    for i in range(ip.CALLS_BEFORE + 2):
        later = gradix.tree.leaves(f(sharded(X + (i == 0), M, *spec) if i == 0 else a))
    assert decided == [alone]
    for x, y in zip(first, later, strict=True):
        assert (
            x.dtype == y.dtype
            and x.sharding == y.sharding
            and x.committed == y.committed
            and x.weak_type == y.weak_type
        )
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        assert [s.device for s in x.addressable_shards] == [s.device for s in y.addressable_shards]


def test_the_kinds_of_calls(decided):
    doubled = gradix.pmap(lambda v: -v)
    out = doubled(X[:8])
    for _ in range(ip.CALLS_BEFORE + 2):
        out = doubled(out)
    np.testing.assert_array_equal(out, X[:8] * (-1) ** (ip.CALLS_BEFORE + 3))
    assert True in decided
    decided.clear()
    summed = gradix.pmap(lambda v: v / lax.psum(v, "i"), axis_name="i")
    for _ in range(ip.CALLS_BEFORE + 2):
        np.testing.assert_allclose(np.asarray(summed(np.abs(X[:8]))).sum(0), 1, rtol=1e-5)
    assert True not in decided
    decided.clear()
    large = sharded(np.ones((512, 512), np.float32), M, "x", "y")
    f = gradix.jit(lambda a: a + 1)
    given_up = gradix.jit(lambda a: a + 1, donate_argnums=0)
    b = sharded(X, M, "x", "y")
    for _ in range(ip.CALLS_BEFORE + 2):
        f(large)
        b = given_up(b)
    assert True not in decided
    np.testing.assert_allclose(b, X + ip.CALLS_BEFORE + 2, rtol=1e-5)


def test_arrays_over_other_devices_and_deleted_ones(decided):
    f, a = gradix.jit(lambda a: a + 1), sharded(X, M, "x", "y")
    for _ in range(ip.CALLS_BEFORE + 2):
        f(a)
    few = mesh((2,), ("x",))
    np.testing.assert_array_equal(f(sharded(X, few, "x")), X + 1)
    np.testing.assert_array_equal(f(sharded(X, M, "y")), X + 1)
    np.testing.assert_array_equal(f(X), X + 1)
    a.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(a)
