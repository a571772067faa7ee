"""Kernels whose copies and signals reach the other devices of a mesh."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import tpu as pltpu
from gradix.sharding import Mesh, PartitionSpec as P
from tests.same import assert_same

S = gradix.ShapeDtypeStruct
N, ALONG = 8, P("d")
LINE = Mesh(np.array(gradix.devices()), ("d",))
PLANE = Mesh(np.array(gradix.devices()).reshape(2, 4), ("r", "c"))
SEMS = [pltpu.SemaphoreType.DMA] * 2


def on_mesh(call, mesh=LINE, spec=ALONG, in_specs=None, check_vma=False):
    return gradix.jit(gradix.shard_map(call, mesh=mesh, in_specs=in_specs or spec, out_specs=spec, check_vma=check_vma))


def rotate(x, o, send, recv):
    me, n = lax.axis_index("d"), lax.axis_size("d")
    right, left = (me + 1) % n, (me + n - 1) % n
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, device_id=(left,))
    pl.semaphore_signal(barrier, 2, device_id={"d": right})
    pl.semaphore_wait(barrier, 3)
    copy = pltpu.make_async_remote_copy(x, o.at[: x.shape[0]], send, recv, device_id=(right,))
    copy.start()
    copy.wait()
    o[2] = (pl.semaphore_read(barrier) + pl.semaphore_read(send) + pl.semaphore_read(recv)).astype(o.dtype)


@pytest.mark.parametrize("check_vma", [False, True])
def test_a_copy_to_the_neighbour_and_its_derivatives(check_vma):
    f = on_mesh(pl.pallas_call(rotate, S((3,), "float32"), scratch_shapes=SEMS), check_vma=check_vma)
    x = np.arange(2.0 * N, dtype=np.float32)
    moved = np.roll(x.reshape(N, 2), 1, 0)
    want = np.concatenate([moved, np.zeros((N, 1), np.float32)], 1).reshape(-1)
    assert_same(f(x), want)
    weights = np.arange(3.0 * N, dtype=np.float32)
    back = np.roll(weights.reshape(N, 3)[:, :2], -1, 0).reshape(-1)
    assert_same(gradix.grad(lambda x: f(x) @ weights)(x), back)
    assert_same(gradix.vmap(f)(np.stack([x, 2 * x])), [want, 2 * want])


def total(x, o, hbm, send, recv):
    step = pl.program_id(0)

    @pl.when(step == 0)
    def _():
        o[...] = jnp.zeros_like(o)
        hbm[0] = x[...]

    now, then = step % 2, (step + 1) % 2
    o[...] += hbm[now] ** 2
    right = (lax.axis_index("d") + 1) % N
    pltpu.async_remote_copy(hbm.at[now], hbm.at[then], send, recv, right, pl.DeviceIdType.LOGICAL).wait()


def test_a_sum_that_goes_around_in_the_steps_of_a_grid():
    scratch = [pltpu.VMEM((2, 2), jnp.float32), *SEMS]
    f = on_mesh(pl.pallas_call(total, S((2,), "float32"), grid=N, scratch_shapes=scratch), check_vma=True)
    x = np.arange(2.0 * N, dtype=np.float32)
    assert_same(f(x), np.tile((x.reshape(N, 2) ** 2).sum(0), N))
    assert_same(gradix.grad(lambda x: f(x)[:2].sum())(x), 2 * x)


def send_some(ids, x, o, send, recv):
    me = lax.axis_index("d")
    o[...] = jnp.full_like(o, -1)
    for i in range(ids.shape[0]):

        @pl.when(ids[i, 0] == me)
        def _():
            o[0] = ids[i, 1].astype(o.dtype)

            @pl.when(x[0] >= 4)
            def _():
                place = o.at[pl.ds(2 * me, 4)].at[1:3]
                pltpu.async_remote_copy(x, place, send, recv, device_id=(ids[i, 1],)).wait_send()

    o[17] = pl.semaphore_read(recv).astype(o.dtype)


def test_devices_that_take_different_ways_send_to_places_they_choose():
    ids = np.array([[0, 1], [2, 1], [5, 0], [3, 3], [2, 7]], np.int32)
    x = np.arange(2.0 * N, dtype=np.float32)
    f = on_mesh(pl.pallas_call(send_some, S((18,), "float32"), scratch_shapes=SEMS), in_specs=(P(), P("d")))
    want = np.full((N, 18), -1, np.float32)
    want[:, 17] = 0
    for source, target in ids:
        want[source, 0] = target
    for source, target in ids:
        if x[2 * source] >= 4:
            want[target, 2 * source + 1 : 2 * source + 3] = x[2 * source : 2 * source + 2]
            want[target, 17] += 1
    assert_same(f(ids, x).reshape(N, 18), want)


def to_all(x, o, send, recv):
    place = lax.axis_index(("r", "c"))
    for c in range(4):
        pltpu.async_remote_copy(x, o.at[pl.ds(place, 1)], send, recv, device_id={"c": c}).wait()
    other = (1 - lax.axis_index("r"), lax.axis_index("c"))
    pltpu.async_remote_copy(x, o.at[8:9], send, recv, device_id=other, device_id_type=pl.DeviceIdType.MESH).wait()


def test_devices_are_named_by_axes_of_a_mesh():
    f = on_mesh(pl.pallas_call(to_all, S((9,), "int32"), scratch_shapes=SEMS), PLANE, P(("r", "c")))
    got = f(np.arange(8, dtype=np.int32)).reshape(8, 9)
    nothing = np.iinfo(np.int32).min
    first, second = [0, 1, 2, 3, *[nothing] * 4], [*[nothing] * 4, 4, 5, 6, 7]
    assert_same(got[:, :8], [first] * 4 + [second] * 4)
    assert_same(got[:, 8], [4, 5, 6, 7, 0, 1, 2, 3])


def test_a_device_that_is_not_there_is_refused():
    def call(device_id):
        def kernel(x, o, send, recv):
            pltpu.async_remote_copy(x, o, send, recv, device_id=device_id)

        return pl.pallas_call(kernel, S((1,), "int32"), scratch_shapes=SEMS)

    x = np.arange(8, dtype=np.int32)
    with pytest.raises(ValueError, match="of 1 indices, for a mesh with the axes 'r', 'c'"):
        on_mesh(call((0,)), PLANE, P(("r", "c")))(x)
    with pytest.raises(NotImplementedError, match="axis 'core', which is none of the mesh"):
        on_mesh(call({"core": 1}))(x)
    with pytest.raises(TypeError, match=r"integers as device_id, got 1.5"):
        on_mesh(call((1.5,)))(x)
    with pytest.raises(ValueError, match="runs on one. Call it in shard_map"):
        call((0,))(x[:1])
