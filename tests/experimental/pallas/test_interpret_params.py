"""Parameters of the interpretation of kernels for TPUs: what is out of bounds, and what memory holds at first."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import tpu as pltpu

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype
CHECKED, UNCHECKED = pltpu.InterpretParams(), pltpu.InterpretParams(out_of_bounds_reads="uninitialized")
X = np.arange(16, dtype=np.float32)


def copy(x, o):
    o[...] = x[...]


def shifted(read, written, params):
    blocks = [pl.BlockSpec((4,), lambda i, by=by: i + by) for by in (read, written)]
    return pl.pallas_call(copy, S.like(X), grid=4, in_specs=[blocks[0]], out_specs=blocks[1], interpret=params)


WRAPS = {
    "eager": lambda f: f,
    "jit": gradix.jit,
    "grad": lambda f: gradix.grad(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: gradix.vmap(f)(x[None])[0],
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_blocks_out_of_bounds_raise_within_any_transformation(wrap):
    np.testing.assert_allclose(wrap(shifted(0, 0, CHECKED))(X), wrap(lambda x: x * 1.0)(X))
    with pytest.raises(IndexError, match=r"block: the index map of args\[0\].*in program \(3,\) of the kernel copy"):
        wrap(shifted(1, 0, CHECKED))(X)
    with pytest.raises(IndexError, match=r"block: the index map of outputs.*in program \(2,\)"):
        wrap(shifted(0, 2, CHECKED))(X)


@pytest.mark.parametrize("wrap", [WRAPS["eager"], WRAPS["jit"], WRAPS["vmap"]], ids=["eager", "jit", "vmap"])
def test_reads_out_of_bounds_give_what_memory_holds_without_the_check(wrap):
    np.testing.assert_array_equal(wrap(shifted(1, 0, UNCHECKED))(X), [*X[4:], *[np.nan] * 4])
    with pytest.raises(IndexError, match=r"block: the index map of outputs.*in program \(3,\)"):
        wrap(shifted(0, 1, UNCHECKED))(X)

    def parts(i, x, o):
        o[0] = x[i[0]]
        o[1:4] = x[pl.ds(i[1], 3)]
        o[4:6] = x.at[pl.ds(2, 12)][pl.ds(i[2], 2)]

    call = pl.pallas_call(parts, S((6,), jnp.float32), in_specs=[pl.BlockSpec()] * 2, interpret=UNCHECKED)
    for i in ([3, 5, 1], [16, 14, 11], [99, -1, 30]):
        want = [*[i[0]], *range(i[1], i[1] + 3), *[n + 2 if n < 12 else 99 for n in (i[2], i[2] + 1)]]
        want = [n if 0 <= n < 16 else np.nan for n in want]
        np.testing.assert_array_equal(wrap(lambda x, i=i: call(np.array(i, np.int32), x))(X), want)
    assert not np.isnan(gradix.grad(lambda x: jnp.nansum(call(np.array([16, 14, 11], np.int32), x)))(X)).any()

    def write(i, x, o):
        o[...] = x[...]
        o[pl.ds(i[0], 4)] = x[:4]

    call = pl.pallas_call(write, S.like(X), interpret=UNCHECKED)
    np.testing.assert_array_equal(call(np.array([12], np.int32), X), [*X[:12], *X[:4]])
    with pytest.raises(IndexError, match="out of bounds.*of the kernel write"):
        wrap(lambda x: call(np.array([13], np.int32), x))(X)


def test_indices_and_copies_out_of_bounds_raise():
    def walk(bounds, x, o):
        def step(c):
            return c[0] + 1, c[1] + x[c[0]]

        o[0] = lax.while_loop(lambda c: c[0] < x[bounds[1]], step, (x[bounds[0]], jnp.int32(0)))[1]

    call = pl.pallas_call(walk, S((1,), jnp.int32), interpret=CHECKED)
    ends = np.array([0, 1], np.int32)
    np.testing.assert_array_equal(call(ends, np.array([2, 5, 9, 15, 17], np.int32)), [9 + 15 + 17])
    with pytest.raises(IndexError, match=r"index 5 is out of bounds.*in program \(\) of the kernel walk"):
        call(ends, np.array([2, 6, 9, 15, 17], np.int32))

    def part(x, o, sem):
        pltpu.async_copy(x.at[pl.ds(jnp.int32(4), 8), 1], o, sem).wait()

    x, dma = np.zeros((8, 4, 8), np.float32), [pltpu.SemaphoreType.DMA]
    with pytest.raises(IndexError, match=r"out of bounds.*of the kernel part"):
        pl.pallas_call(part, S((8, 8), jnp.float32), scratch_shapes=dma, interpret=CHECKED)(x)


def test_kernels_on_cores_are_checked():
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)

    @pl.kernel(out_type=S((2,), jnp.float32), mesh=mesh, interpret=CHECKED)
    def own(x, o):
        core = lax.axis_index("core")
        o[core] = x[3 * core]

    np.testing.assert_array_equal(own(X[:4]), [0, 3])
    with pytest.raises(IndexError, match=r"index 3 is out of bounds.*in program \(1,\)"):
        own(X[:3])

    def count(ref):
        @pl.core_map(mesh, interpret=CHECKED)
        def _():
            ref[2 * lax.axis_index("core")] += 1

    np.testing.assert_array_equal(pl.run_state(count)(np.zeros(3, np.float32)), [1, 0, 1])
    with pytest.raises(IndexError, match="index 2 is out of bounds"):
        pl.run_state(count)(np.zeros(2, np.float32))


@pytest.mark.parametrize("first, value", [("nan", np.nan), ("zero", 0)])
def test_what_memory_holds_before_it_is_written(first, value):
    def kernel(x, a, b, c, d, scratch):
        a[...] = scratch[...]
        pl.run_scoped(lambda own: b.__setitem__(..., own[...]), pltpu.VMEM((3,), jnp.float32))
        c[...] = x[...]

    for reads in ("raise", "uninitialized"):
        a, b, c, d = pl.pallas_call(
            kernel,
            [S((3,), jnp.float32)] * 2 + [S((4,), jnp.float32), S((2,), jnp.int32)],
            in_specs=[pl.BlockSpec((4,), lambda: 0)],
            scratch_shapes=[pltpu.VMEM((3,), jnp.float32)],
            interpret=pltpu.InterpretParams(uninitialized_memory=first, out_of_bounds_reads=reads),
        )(np.ones(3, np.float32))
        np.testing.assert_array_equal(np.stack([a, b]), np.full((2, 3), value))
        np.testing.assert_array_equal(c, [1, 1, 1, value])  # a block reaches beyond the end
        np.testing.assert_array_equal(d, 0 if first == "zero" else np.iinfo(np.int32).max)


@pytest.mark.parametrize("space", [pltpu.HBM, pl.ANY], ids=str)
def test_what_a_tpu_can_only_copy_is_not_read_or_written(space):
    far, near = pl.BlockSpec(memory_space=space), pl.BlockSpec(memory_space=pltpu.VMEM)

    def add(x, o):
        o[...] = x[...] + 1

    def load(x, o):
        pltpu.store(o, pltpu.load(x))

    def copied(x, o, room):
        pltpu.sync_copy(x.at[pl.ds(0, 8)], room)
        room[...] += 1
        pltpu.sync_copy(room, o)

    for kernel in (add, load):
        for read, written in ((far, near), (near, far)):
            specs = {"in_specs": [read], "out_specs": written}
            pl.pallas_call(kernel, S.like(X), **specs)(X)
            with pytest.raises(ValueError, match=rf"which is in {space}: a TPU computes on VMEM.*pltpu.sync_copy"):
                pl.pallas_call(kernel, S.like(X), **specs, interpret=CHECKED)(X)
    specs = {"in_specs": [far], "out_specs": far, "scratch_shapes": [pltpu.VMEM((8,), jnp.float32)]}
    np.testing.assert_array_equal(pl.pallas_call(copied, S((8,), "float32"), **specs, interpret=CHECKED)(X), X[:8] + 1)

    def scoped(x, o):
        pl.run_scoped(lambda room: (pltpu.sync_copy(x, room), pltpu.sync_copy(room, o))[1], space((16,), jnp.float32))

    allowed = pltpu.InterpretParams(allow_hbm_allocation_in_run_scoped=True)
    np.testing.assert_array_equal(pl.pallas_call(scoped, S.like(X), interpret=allowed)(X), X)
    with pytest.raises(ValueError, match=rf"cannot allocate float32\[16\] in {space}"):
        pl.pallas_call(scoped, S.like(X), interpret=CHECKED)(X)


@pytest.mark.parametrize(
    "index_map, place",
    [
        (lambda i, j: (j, 0), r"program \(1, 0\) returns to block \(0, 0\)"),
        (lambda i, j: (j % 2, 0), r"program \(0, 2\) returns to block \(0, 0\)"),
        (lambda i, j: ((i + 1) % 2, i), None),
        (lambda i, j: (j // 2, i % 2), r"program \(2, 0\) returns to block \(0, 0\)"),
        (lambda i, j: (0, 0), None),
    ],
    ids=["inner", "remainder", "other", "both", "constant"],
)
def test_a_block_to_which_the_grid_returns_is_refused(index_map, place):
    def kernel(o):
        o[...] = jnp.zeros_like(o)

    options = {"grid": (4, 4), "out_specs": pl.BlockSpec((2, 2), index_map)}
    pl.pallas_call(kernel, S((8, 8), jnp.float32), **options)()
    checked = pl.pallas_call(kernel, S((8, 8), jnp.float32), **options, interpret=CHECKED)
    if place is None:
        checked()
        return
    with pytest.raises(ValueError, match=place + " of outputs, after another block"):
        checked()


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_elements_out_of_bounds_that_a_mask_keeps_raise(wrap):
    def write(i, x, mask, o):
        o[...] = jnp.zeros(o.shape)
        pl.store(o, (pl.ds(i[0], 4), pl.ds(i[1], 4)), x[...].reshape(4, 4), mask=mask[...])

    def read(i, x, mask, o):
        o[...] = pl.load(x.reshape(4, 4), (pl.ds(i[0], 4), pl.ds(i[1], 4)), mask=mask[...], other=0)

    for kernel, params in ((write, CHECKED), (write, UNCHECKED), (read, CHECKED)):
        call = pl.pallas_call(kernel, S((4, 4), jnp.float32), interpret=params)
        for start in ((1, 0), (0, 2), (-1, 3), (9, 0)):
            rows, columns = np.arange(4)[:, None] + start[0], np.arange(4) + start[1]
            mask = (rows >= 0) & (rows < 4) & (columns >= 0) & (columns < 4)
            at = np.array(start, np.int32)
            assert wrap(lambda x, at=at, mask=mask: call(at, x, mask))(X).shape in ((4, 4), (16,))
            mask[np.argwhere(~mask)[-1][0], np.argwhere(~mask)[-1][1]] = True
            with pytest.raises(IndexError, match=f"out-of-bounds.*of the kernel {kernel.__name__}"):
                wrap(lambda x, at=at, mask=mask: call(at, x, mask))(X)


# -- races -----------------------------------------------------------------------------------------

RACES = pltpu.InterpretParams(detect_races=True)


def raced(body):
    """A kernel that copies X to scratch memory, as `body` says, and what it gives."""
    return pl.pallas_call(
        body, S.like(X), scratch_shapes=[pltpu.VMEM(X.shape, X.dtype), pltpu.SemaphoreType.DMA((2,))], interpret=RACES
    )(X)


def test_what_a_copy_writes_is_not_touched_before_it_is_waited_for():
    def attempt(touch, waits=False):
        def body(x, o, room, sems):
            copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], room.at[pl.ds(4, 8)], sems.at[0])
            copy.start()
            if waits:
                copy.wait()
            o[...] = x[...]  # the source may be read
            touch(x, o, room, sems)
            if not waits:
                copy.wait()

        raced(body)

    def in_a_loop(x, o, room, sems):
        lax.fori_loop(0, 3, lambda i, _: room.__setitem__(..., x[...]), None)

    def within_a_condition(x, o, room, sems):
        pl.when(x[0] < 5)(lambda: x.__setitem__(7, 1.0))

    races = {
        r"the kernel reads .*float32\[16\].* while the copy started at .*test_interpret_params.py:\d+.* writes": [
            lambda x, o, room, sems: room[...],
            lambda x, o, room, sems: room[4],
            lambda x, o, room, sems: room.at[2:6][...],
            lambda x, o, room, sems: pl.load(room, (pl.ds(11, 2),)),
            lambda x, o, room, sems: room.reshape(4, 4)[...],
            lambda x, o, room, sems: pltpu.emit_pipeline(
                copy, grid=4, in_specs=[pl.BlockSpec((4,), lambda i: i)], out_specs=[pl.BlockSpec((4,), lambda i: i)]
            )(room, o),
        ],
        "the kernel writes .* writes the same": [
            lambda x, o, room, sems: room.__setitem__(slice(3, 5), 0),
            lambda x, o, room, sems: pl.atomic_add(room, 4, 1.0),
            in_a_loop,
        ],
        "the kernel writes .* reads the same": [lambda x, o, room, sems: x.__setitem__(0, 1.0), within_a_condition],
        "a copy writes .* writes the same": [lambda x, o, room, sems: pltpu.sync_copy(o, room)],
        "a copy reads .* writes the same": [lambda x, o, room, sems: pltpu.async_copy(room, o, sems.at[1])],
    }
    for text, touches in races.items():
        for touch in touches:
            with pytest.raises(ValueError, match="race: " + text):
                attempt(touch)
            attempt(touch, waits=True)
    apart = [
        lambda x, o, room, sems: room[0:4],
        lambda x, o, room, sems: room.__setitem__(12, 0),
        lambda x, o, room, sems: x.__setitem__(slice(8, None), 1.0),
        lambda x, o, room, sems: room[x[0].astype(jnp.int32)],  # not shown to be one of them
        lambda x, o, room, sems: room.reshape(4, 4)[0],
        lambda x, o, room, sems: pl.load(room, (pl.ds(0, 8),), mask=jnp.arange(8) < 4),
        lambda x, o, room, sems: pltpu.async_copy(x.at[pl.ds(0, 4)], room.at[pl.ds(0, 4)], sems.at[1]).wait(),
    ]
    for touch in apart:
        attempt(touch)


def test_waits_for_the_same_semaphore_end_a_race_in_loops_branches_and_functions():
    def buffers(x, o, room, sems):
        def copied(i, slot):
            return pltpu.make_async_copy(x.at[pl.ds(i * 4, 4)], room.at[pl.ds(slot * 4, 4)], sems.at[slot])

        copied(0, 0).start()

        def turn(i, _):
            slot = i % 2
            pl.when(i < 3)(lambda: copied(i + 1, 1 - slot).start())
            copied(i, slot).wait()
            o[pl.ds(i * 4, 4)] = room[pl.ds(slot * 4, 4)]

        lax.fori_loop(0, 4, turn, None)

    np.testing.assert_array_equal(raced(buffers), X)

    def too_early(x, o, room, sems):
        def turn(i, _):
            part = pl.ds(i * 4, 4)
            copy = pltpu.async_copy(x.at[part], room.at[part], sems.at[0])
            o[part] = room[part]
            copy.wait()

        lax.fori_loop(0, 4, turn, None)

    with pytest.raises(ValueError, match="race: the kernel reads"):
        raced(too_early)

    def elsewhere(x, o, room, sems):
        pltpu.async_copy(x, room, sems.at[1])

        @gradix.jit
        def wait(sems):
            pltpu.make_async_copy(x, room, sems.at[1]).wait()

        wait(sems)
        o[...] = room[...]

    np.testing.assert_array_equal(raced(elsewhere), X)

    def other(x, o, room, sems):
        pltpu.async_copy(x, room, sems.at[1])
        pltpu.make_async_copy(x, room, sems.at[0]).wait()
        o[...] = room[...]

    with pytest.raises(ValueError, match="race: the kernel reads"):
        raced(other)
    pl.pallas_call(other, S.like(X), scratch_shapes=[pltpu.VMEM(X.shape, X.dtype), pltpu.SemaphoreType.DMA((2,))])(X)


def test_programs_of_a_parallel_axis_write_blocks_of_their_own():
    def call(semantics, params=RACES):
        def add(x, o):
            o[...] = x[...]

        return pl.pallas_call(
            add,
            S((8,), X.dtype),
            grid=(2, 2),
            in_specs=[pl.BlockSpec((4,), lambda i, j: 2 * i + j)],
            out_specs=pl.BlockSpec((4,), lambda i, j: i),
            compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
            interpret=params,
        )(X)

    np.testing.assert_array_equal(call(("parallel", "arbitrary")), [*X[4:8], *X[12:]])
    for semantics in (("parallel", "parallel"), ("arbitrary", pltpu.PARALLEL)):
        with pytest.raises(ValueError, match=r"race: programs \(0, 0\) and \(0, 1\) write block \(0,\) of outputs"):
            call(semantics)
        call(semantics, CHECKED)


@pytest.mark.parametrize("kind", [ValueError, IndexError, gradix.errors.JaxRuntimeError])
@pytest.mark.parametrize("index", [9, (slice(None), 9), pl.ds(5, 4), (0, pl.ds(0, 9))])
def test_known_indices_out_of_bounds_raise_an_error_of_each_kind(kind, index):
    @pl.kernel(
        mesh=pltpu.create_tensorcore_mesh("core", num_cores=2),
        out_type=S((8, 8), "float32"),
        scratch_types=[pltpu.VMEM((8, 8), jnp.float32)],
        interpret=CHECKED,
    )
    def kernel(x, o, room):
        @pl.when(lax.axis_index("core") == 1)
        def _():
            room[0, 0] = room[index].sum()

        pltpu.sync_copy(x, o)

    with pytest.raises(kind, match=r"^Out of bound (indexer|slice): .*mutable array Ref\{float32\[8,8\]\}"):
        kernel(jnp.ones((8, 8)))
