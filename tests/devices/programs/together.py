"""Run by several processes: arrays over all of them, programs, and what multihost_utils offers."""

import sys

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import multihost_utils as mu
from gradix.experimental.array_serialization import load, save
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P

gradix.distributed.initialize(heartbeat_timeout_seconds=20)
rank, count = gradix.process_index(), gradix.process_count()
assert gradix.distributed.is_initialized() and count == int(sys.argv[1]) and len(gradix.local_devices()) == 2
assert gradix.device_count() == 2 * count and gradix.process_indices() == list(range(count))
mesh = Mesh(np.array(gradix.devices()), ("x",))
X = np.arange(8.0 * count, dtype=np.float32).reshape(2 * count, 4)
on = lambda *spec: NamedSharding(mesh, P(*spec))  # noqa: E731

a = gradix.device_put(X, on("x"))
assert not a.is_fully_addressable and len(a.addressable_shards) == 2 and len(a.global_shards) == 2 * count
for shard in a.addressable_shards:
    np.testing.assert_array_equal(shard.data, X[shard.index])
assert float((a * 2).sum()) == 2 * X.sum() and float(gradix.jit(lambda x: (x * 2).sum())(a)) == 2 * X.sum()
try:
    np.asarray(a)
except RuntimeError as e:
    assert "non-addressable" in str(e)
else:
    raise AssertionError("parts of other processes cannot be fetched")
assert repr(a) == str(a) == f"{a}" == f"Array(shape={a.shape}, dtype=float32)"
elsewhere = gradix.device_put(X, gradix.devices()[2 * ((rank + 1) % count)])
for value, place, words in (
    (a, gradix.local_devices()[0], "must be a fully addressable array"),
    (elsewhere, None, "non-addressable"),
):
    try:
        np.asarray(gradix.device_put(value, place))
    except (ValueError, RuntimeError) as e:
        assert words in str(e), e
    else:
        raise AssertionError("values of other processes were had")
assert elsewhere.addressable_shards == [] and repr(elsewhere) == f"Array(shape={X.shape}, dtype=float32)"
replicated = gradix.device_put(X, on())
assert (
    not replicated.is_fully_addressable and np.array_equal(replicated, X) and repr(replicated) == repr(jnp.asarray(X))
)
total = gradix.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
np.testing.assert_array_equal(total(a), X.sum(0, keepdims=True))
ring = gradix.shard_map(
    lambda x: lax.ppermute(x, "x", [(i, (i + 1) % mesh.size) for i in range(mesh.size)]),
    mesh=mesh,
    in_specs=P("x"),
    out_specs=P("x"),
)
np.testing.assert_array_equal(mu.process_allgather(ring(a)), np.roll(X, 1, 0))
np.testing.assert_array_equal(gradix.device_put(a, on()), X)
np.testing.assert_array_equal(jnp.ones(3) + 1, 2 * np.ones(3))

np.testing.assert_array_equal(mu.process_allgather(np.arange(3) + rank), np.arange(3) + np.arange(count)[:, None])
np.testing.assert_array_equal(mu.broadcast_one_to_all(np.float32(rank + 5)), 5)
mu.assert_equal({"a": np.arange(2)})
mu.sync_global_devices("here")
try:
    mu.sync_global_devices(f"at {rank}")
except AssertionError as e:
    assert "sync_global_devices name mismatch" in str(e)
else:
    raise AssertionError("the names differ")
assert not mu.reached_preemption_sync_point(0)
with mu.live_devices(gradix.devices()) as live:
    assert live == gradix.devices()
np.testing.assert_array_equal(
    mu.process_allgather(np.float32([rank, 1]), tiled=True), [v for i in range(count) for v in (i, 1)]
)
np.testing.assert_array_equal(
    mu.broadcast_one_to_all({"a": [rank, 2.5]}, is_source=rank == count - 1)["a"], [count - 1, 2.5]
)
try:
    mu.assert_equal(np.int32(rank), "they differ.")
except AssertionError as e:
    assert "they differ." in str(e) and str(list(range(1, count))) in str(e)
else:
    raise AssertionError("all processes are told that some differ")
mine = X[2 * rank : 2 * rank + 2]
whole = mu.host_local_array_to_global_array(mine, mesh, P("x"))
np.testing.assert_array_equal(mu.process_allgather(whole), X)
np.testing.assert_array_equal(mu.global_array_to_host_local_array(whole, mesh, P("x")), mine)

save({"w": a, "step": 3, "b": (X[0], [gradix.device_put(X, on())])}, sys.argv[2])
other = Mesh(np.array(gradix.devices()).reshape(count, 2), ("p", "q"))
back = load(sys.argv[2], {"w": NamedSharding(other, P(None, "q")), "step": None, "b": None})
np.testing.assert_array_equal(mu.process_allgather(back["w"]), X)
np.testing.assert_array_equal(back["b"][1][0], X)
assert int(back["step"]) == 3


def step(w, x):
    loss, g = gradix.value_and_grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w)
    return w - 0.001 * g, loss


w, losses = jnp.zeros((4,)), []
fitted = gradix.jit(step, in_shardings=(on(), on("x")), out_shardings=(on(), None))
alone = jnp.zeros((4,))
for _ in range(3):
    w, loss = fitted(w, a)
    alone, expected = step(alone, jnp.asarray(X))
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
print("fine")
