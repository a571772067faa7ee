"""Sums that devices leave to be finished: each adds up what it holds."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import PartitionSpec as P, reshard


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y, s: jnp.einsum("ij,jk->ik", x, y, out_sharding=s),
        lambda x, y, s: jnp.einsum("ij,jk->ki", x, y, out_sharding=s).T,
        lambda x, y, s: jnp.matmul(x, y, out_sharding=s),
        lambda x, y, s: jnp.dot(x, y, out_sharding=s),
        lambda x, y, s: jnp.einsum("jk->k", y, out_sharding=s),
        lambda x, y, s: lax.reduce_sum(y, axes=(0,), out_sharding=s),
        lambda x, y, s: gradix.ops.segment_sum(y, jnp.arange(8, out_sharding=P("x")) // 3, 3, out_sharding=s),
        lambda x, y, s: jnp.bincount(jnp.arange(8, out_sharding=P("x")) // 3, length=3, out_sharding=s),
    ],
    ids=["einsum", "transposed", "matmul", "dot", "einsum sum", "reduce_sum", "segment_sum", "bincount"],
)
def test_each_device_sums_what_it_holds(f):
    """Sums over divided rows are left to be finished: no device waits for another."""
    a, b = np.arange(16.0, dtype="f").reshape(2, 8), np.arange(24.0, dtype="f").reshape(8, 3)
    with gradix.set_mesh(gradix.make_mesh((2,), ("x",))):
        x, y = gradix.device_put(a, P(None, "x")), gradix.device_put(b, P("x"))
        part = gradix.jit(lambda x, y: f(x, y, P(unreduced={"x"})))
        out = part(x, y)
        assert out.sharding.spec.unreduced == {"x"}
        assert "all-reduce" not in part.lower(x, y).compile().as_text()
        own = [np.asarray(s.data) for s in out.addressable_shards]
        whole = np.asarray(f(x, y, P()))
        np.testing.assert_allclose(own[0] + own[1], whole, rtol=1e-6)
        assert all(o.any() for o in own)
        np.testing.assert_allclose(reshard(out, P()), whole, rtol=1e-6)


def test_unreduced_products_need_operands_divided_alike():
    with gradix.set_mesh(gradix.make_mesh((2,), ("x",))):
        x, y = gradix.device_put(np.ones((2, 8)), P(None, "x")), np.ones((8, 3))
        with pytest.raises(gradix.errors.ShardingTypeError, match="should be sharded identically"):
            jnp.einsum("ij,jk->ik", x, y, out_sharding=P(unreduced={"x"}))
        with pytest.raises(
            gradix.errors.ShardingTypeError, match="no operand is divided|equal to the contracting specs"
        ):
            lax.reduce_sum(x, axes=(0,), out_sharding=P(unreduced={"x"}))


def test_the_cotangent_of_a_part_is_that_part():
    with gradix.set_mesh(gradix.make_mesh((2,), ("x",))):
        r = gradix.device_put(np.arange(4.0, dtype="f"), P(None, reduced={"x"}))
        g = gradix.jit(gradix.grad(lambda v: (reshard(v, P("x")) ** 2).sum()))(r)
        assert [np.asarray(s.data).tolist() for s in g.addressable_shards] == [[0, 2, 0, 0], [0, 0, 4, 6]]
