"""Kernels on the cores of a mesh, named axes of grids, shared memory, random numbers, and sparse cores."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import tpu as pltpu, tpu_sc as plsc
from tests.same import assert_same

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32
TWO = pltpu.create_tensorcore_mesh("core", num_cores=2)


def halves(x, o, part):
    core = lax.axis_index("core")
    pltpu.sync_copy(x.at[pl.ds(2 * core, 2)], part)
    part[...] = part[...] ** 2 * (core + 1)
    pltpu.sync_copy(part, o.at[pl.ds(2 * core, 2)])


def test_a_kernel_on_each_core_and_its_transformations():
    x = np.array([1, 2, 3, 4], np.float32)
    call = pl.kernel(halves, S((4,), jnp.float32), mesh=TWO, scratch_types=[pltpu.VMEM((2,), jnp.float32)])
    want = x**2 * [1, 1, 2, 2]
    assert_same(call(x), want)
    assert_same(gradix.jit(call)(x), want)
    assert_same(gradix.grad(lambda x: call(x).sum())(x), 2 * x * [1, 1, 2, 2])
    assert_same(gradix.vmap(call)(np.stack([x, 2 * x])), [want, 4 * want])

    @pl.kernel(out_type=S((2,), jnp.int32), mesh=TWO, scratch_types={"s": pltpu.SMEM((), jnp.int32)})
    def sizes(o, s):
        s[...] = jnp.int32(lax.axis_size("core"))
        o[lax.axis_index("core")] = s[...]

    assert_same(sizes(), [2, 2])


def test_core_map_changes_references_from_outside():
    def count(refs):
        @pl.core_map(TWO, scratch_shapes=[pltpu.SMEM((1,), jnp.float32)])
        def _(s):
            i = lax.axis_index("core")
            s[0] = refs["x"][i]
            refs["n"][i] += s[0] + 1

    for f in (pl.run_state(count), gradix.jit(pl.run_state(count))):
        assert_same(f({"n": np.zeros(3, np.float32), "x": np.arange(2, dtype=np.float32)})["n"], [1, 2, 0])


def test_meshes_of_cores():
    mesh = plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", num_cores=2, num_subcores=3)
    assert (mesh.size, mesh.axis_names, dict(mesh.shape), mesh.devices.shape) == (
        6,
        ("c", "s"),
        {"c": 2, "s": 3},
        (2, 3),
    )
    assert TWO == pltpu.TensorCoreMesh("core", 2) != pltpu.TensorCoreMesh("core") and hash(TWO) == hash(
        pltpu.TensorCoreMesh("core", 2)
    )
    assert plsc.ScalarSubcoreMesh(axis_name="c", num_cores=2).size == 2

    @pl.kernel(out_type=S((6,), jnp.int32), mesh=mesh)
    def number(o):
        i = lax.axis_index(("c", "s"))
        o[i] = 10 * lax.axis_index("c") + lax.axis_index("s")

    assert_same(number(), [0, 1, 2, 10, 11, 12])
    for wrong, kind in (([TWO, TWO], NotImplementedError), (None, TypeError)):
        with pytest.raises(kind, match="mesh"):
            pl.kernel(halves, S((4,), jnp.float32), mesh=wrong)
    with pytest.raises(ValueError, match="positive size"):
        pltpu.TensorCoreMesh("core", -1)


def test_what_needs_cores_at_one_time():
    @pl.kernel(out_type=S((2,), jnp.float32), mesh=TWO)
    def first(x, o):
        @pltpu.run_on_first_core("core")
        def _():
            o[...] = x[...]

        @pl.when(lax.axis_index("core") == 1)
        def _():
            o[1] += 1

    assert_same(first(np.ones(2, np.float32)), [1, 2])

    def waiting(o):
        pltpu.core_barrier(None, core_axis_name="core")
        o[...] = jnp.ones(1)

    assert_same(pl.kernel(waiting, S((1,), jnp.float32), mesh=pltpu.TensorCoreMesh("core"))(), [1])
    with pytest.raises(NotImplementedError, match="core_barrier over 'core', which has 2 cores"):
        pl.kernel(waiting, S((1,), jnp.float32), mesh=TWO)()
    with pytest.raises(NotImplementedError, match="psum over 'core'.*o_ref"):
        pl.kernel(lambda x, o: o.__setitem__(..., lax.psum(x[...], "core")), S((1,), jnp.float32), mesh=TWO)(
            np.ones(1, np.float32)
        )


def test_axes_of_a_grid_have_names():
    def kernel(x, o):
        o[...] = x[...] * lax.axis_index("i") + lax.axis_size("i")

    block = pl.BlockSpec((2,), lambda i: i)
    call = pl.pallas_call(kernel, S((8,), jnp.float32), grid=(("i", 4),), in_specs=[block], out_specs=block)
    assert_same(call(np.ones(8, np.float32)), [4, 4, 5, 5, 6, 6, 7, 7])
    with pytest.raises(NameError, match="unbound axis name: j"):
        pl.pallas_call(lambda o: o.__setitem__(..., lax.axis_index("j")), S((), jnp.int32), grid=(("i", 1),))()


def test_pipelines_are_divided_between_cores():
    def kernel(x, o):
        def body(x, o):
            o[...] += x[...]

        block = pl.BlockSpec((2,), lambda i: i)

        @pltpu.run_on_first_core("core")
        def _():
            o[...] = jnp.zeros(o.shape)

        pltpu.emit_pipeline(
            body,
            grid=(4,),
            in_specs=[block],
            out_specs=[block],
            core_axis_name="core",
            dimension_semantics=(pltpu.PARALLEL,),
        )(x, o)

    x = np.arange(8, dtype=np.float32)
    assert_same(pl.kernel(kernel, S((8,), jnp.float32), mesh=TWO)(x), x)


def test_memory_that_programs_share_begins_anew_with_each_call():
    def kernel(o):
        count = pl.get_global(pltpu.SemaphoreType.REGULAR)
        other = pl.get_global(pltpu.SMEM((2,), jnp.float32))

        @pl.when(pl.program_id(0) == 0)
        def _():
            other[...] = jnp.zeros(2)

        pl.semaphore_signal(count, 2)
        other[0] += 1.0
        o[pl.program_id(0)] = pl.semaphore_read(count).astype(jnp.float32) + other[0]

    call = pl.pallas_call(kernel, S((3,), jnp.float32), grid=3)
    compiled = gradix.jit(call)
    for f in (call, call, compiled, compiled):
        assert_same(f(), [3, 6, 9])
    with pytest.raises(ValueError, match="outside of a kernel"):
        pl.get_global(pltpu.SemaphoreType.REGULAR)


def test_random_numbers_depend_on_the_seed_alone():
    def kernel(seed, o, n):
        i = pl.program_id(0)
        pltpu.prng_seed(seed[0], i)

        def turn(j, _):
            o[i, j] = pltpu.stateful_uniform(minval=2.0, maxval=3.0)

        lax.fori_loop(0, 50, turn, None)
        n[i] = pltpu.prng_random_bits((40,))

    call = pl.pallas_call(kernel, [S((2, 50), jnp.float32), S((2, 40), jnp.int32)], grid=2)
    (a, n), (b, m), (c, _) = call(np.array([1])), gradix.jit(call)(np.array([1])), call(np.array([2]))
    assert_same(a, b)
    assert_same(n, m)
    assert len({*np.ravel(a), *np.ravel(c)}) == 200 and 2 <= np.min(a) < 2.2 and 2.8 < np.max(a) < 3
    assert len(set(np.ravel(n))) == 80 and np.min(n) < -(2**29) and np.max(n) > 2**29

    def drawn(o, p):
        o[...], p[...] = pltpu.stateful_normal((90,)), pltpu.stateful_bernoulli(0.5, (90,))

    o, p = pl.pallas_call(drawn, [S((90,), jnp.float32), S((90,), bool)])()
    assert np.isfinite(o).all() and 0.6 < np.std(o) < 1.5 and 20 < np.sum(p) < 70
    with pytest.raises(ValueError, match="stateful_bits was called outside of a kernel"):
        pltpu.stateful_bits((2,))


def test_einshape():
    x = np.arange(24).reshape(2, 12)
    assert_same(
        pltpu.einshape("a(bcd)->(bd)ac", x, b=2, d=3), x.reshape(2, 2, 2, 3).transpose(1, 3, 0, 2).reshape(6, 2, 2)
    )
    assert_same(pltpu.einshape("ab -> ba", x), x.T)
    for wrong, words in (
        ("ab", "needs an arrow"),
        ("ab->a", "once before and once after"),
        ("a(bc)->abc", "Give the sizes"),
        ("abc->abc", "names 3 axes"),
        ("(ab)c->abc", "Give the sizes"),
        ("a(b->ab", "not closed"),
        ("a1->a", "unexpected '1'"),
    ):
        with pytest.raises(ValueError, match=words):
            pltpu.einshape(wrong, x)
    with pytest.raises(ValueError, match="does not go with b=5"):
        pltpu.einshape("a(bc)->abc", x, b=5)


# -- sparse cores ----------------------------------------------------------------------------------
def test_scattered_accesses_with_masks():
    mask = np.array([True, False, True, True])

    def kernel(x, i, o, p, q):
        o[...] = plsc.load_gather(x, [i[...]], mask=mask)
        p[...] = jnp.zeros(6)
        plsc.store_scatter(p, [i[...]], o[...], mask=mask)
        plsc.addupdate_scatter(p, [jnp.zeros(4, jnp.int32)], jnp.ones(4))
        q[...] = plsc.load_expanded(x, mask=mask)
        plsc.addupdate(q, jnp.ones(4))
        plsc.store_compressed(x, q[...], mask=mask)
        plsc.addupdate_compressed(q, x[:4], mask=mask)

    x, i = np.arange(10, 16, dtype=np.float32), np.array([5, 9, 1, 2])
    o, p, q = pl.pallas_call(kernel, [S((4,), jnp.float32), S((6,), jnp.float32), S((4,), jnp.float32)])(x, i)
    assert_same(o, [15, 0, 11, 12])
    assert_same(p, [4, 11, 12, 0, 0, 15])
    assert_same(q, [11 + 11, 1 + 13, 12 + 13, 13])


def test_scans_counts_and_packing():
    x, mask = np.array([3, 1, 3, 2, 1], np.int32), np.array([True, False, True, True, True])
    assert_same(plsc.cumsum(x, mask=mask), [3, 3, 6, 8, 9])
    assert_same(plsc.cummax(x), [3, 3, 3, 3, 3])
    assert_same(plsc.cummax(x, mask=~mask), [3, 1, 1, 1, 1])
    assert_same(plsc.all_reduce_population_count(mask, reduce=5), [4])
    assert_same(plsc.all_reduce_ffs(~mask), [1] * 5)
    assert_same(plsc.all_reduce_ffs(mask & False, reduce=5), [5])
    counts, last = plsc.scan_count(x, mask)
    assert_same(counts, [1, 0, 2, 1, 1])
    assert_same(last, [False, False, True, True, True])
    keys, values, valid = plsc.sort_key_val(x, 10 * x, mask=mask, descending=True)
    assert_same(keys, [3, 3, 2, 1, 1])
    assert_same(values, 10 * keys)
    assert_same(valid, [True] * 4 + [False])
    for how, first in ((plsc.PackFormat.INTERLEAVED, [3, 6, 1]), (plsc.PackFormat.COMPRESSED, [3, 1, 3])):
        packed = plsc.pack(jnp.float32(x), 2 * jnp.float32(x), format=how)
        assert packed.dtype == jnp.bfloat16
        assert_same(packed[:3].astype(jnp.float32), first)
        a, b = plsc.unpack(packed, format=how)
        assert_same(a, x)
        assert_same(b, 2 * x)
    n = np.arange(4, dtype=np.int32)
    assert_same(plsc.bitcast(plsc.bitcast(n, jnp.int16), jnp.int32), n)
    total = plsc.parallel_loop(0, 6, 2, carry=jnp.int32(1))(lambda i, c: c + i)
    assert_same(total, 7)
    with pytest.raises(NotImplementedError, match="another subcore"):
        plsc.fetch_and_add(None, 1, subcore_id=3)


# -- copies of traced sizes ------------------------------------------------------------------------


def copied_parts(at, to, n, add=False, interpret=True, shape=(6, 4)):
    """What is in memory of ones after a copy of `n` rows, and of two columns."""

    def kernel(places, x, o, room, sem):
        room[...] = jnp.ones(shape, "float32")
        first, last, size = places[0], places[1], places[2]
        copy = pltpu.make_async_copy(
            x.at[1, pl.ds(first, size), pl.ds(1, 2)], room.at[pl.ds(last, size), 0:2], sem.at[0]
        )
        copy.start(add=add)
        copy.wait()
        pltpu.sync_copy(room, o)

    return pl.pallas_call(
        kernel,
        gradix.ShapeDtypeStruct(shape, "float32"),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM(shape, jnp.float32), pltpu.SemaphoreType.DMA((1,))],
        interpret=interpret,
    )(jnp.array([at, to, n], "int32"), ROWS)


ROWS = jnp.asarray(np.arange(2 * 5 * 3, dtype="float32").reshape(2, 5, 3))


@pytest.mark.parametrize(("at", "to", "n"), [(0, 0, 5), (1, 3, 3), (4, 0, 1), (2, 2, 0), (0, 1, 4)])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams(detect_races=True)], ids=["", "simulated"])
def test_copies_may_have_traced_sizes(at, to, n, add, interpret):
    expected = np.ones((6, 4), "float32")
    part = np.asarray(ROWS)[1, at : at + n, 1:3]
    expected[to : to + n, :2] = expected[to : to + n, :2] + part if add else part
    np.testing.assert_array_equal(copied_parts(at, to, n, add, interpret), expected)


@pytest.mark.parametrize(("at", "to", "n"), [(3, 0, 3), (0, 4, 3)])
def test_copies_of_traced_sizes_are_checked(at, to, n):
    with pytest.raises(IndexError, match=r"out.of.bounds"):
        copied_parts(at, to, n, interpret=pltpu.InterpretParams())


def test_parts_of_traced_sizes_are_not_read_and_have_one_type():
    def run(body):
        pl.pallas_call(
            lambda n, x, o: body(x.at[pl.ds(0, n[0])], o), gradix.ShapeDtypeStruct((5, 3), "float32"), interpret=True
        )(jnp.array([2]), ROWS[0])

    with pytest.raises(NotImplementedError, match="where it is read or written, got .*copies can have traced sizes"):
        run(lambda part, o: part[...])
    with pytest.raises(ValueError, match=r"one type, got float32\[\?,3\] and float32\[5,3\]"):
        run(pltpu.sync_copy)
    with pytest.raises(TypeError, match="semaphore"):
        run(lambda part, o: pltpu.make_async_copy(part, part, o))


def test_a_copy_of_traced_size_to_another_device_can_be_waited_for_alone():
    def kernel(n, x, o, sems):
        copy = pltpu.make_async_remote_copy(
            x.at[pl.ds(0, n[0])], o.at[pl.ds(0, n[0])], sems.at[0], sems.at[1], device_id=(0,)
        )
        with pytest.raises(NotImplementedError, match=r"needs a known size, got float32\[\?,3\]. Send a part"):
            copy.start()
        pltpu.async_remote_copy(x, o, sems.at[0], sems.at[1], device_id=(0,)).wait_send()
        copy.wait_recv()

    call = pl.pallas_call(kernel, S((5, 3), "float32"), scratch_shapes=[pltpu.SemaphoreType.DMA((2,))])
    mesh = gradix.sharding.Mesh(gradix.devices()[:1], ("d",))
    whole = gradix.P()
    run = gradix.shard_map(call, mesh=mesh, in_specs=(whole, whole), out_specs=whole, check_vma=False)
    np.testing.assert_array_equal(run(jnp.array([2]), ROWS[0]), ROWS[0])
