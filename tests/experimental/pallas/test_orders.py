"""Simulations of a TPU: programs in any order, on several cores, with memory shared and padded."""

import itertools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import tpu as pltpu

ONE = pl.BlockSpec((1, 1), lambda i, j: (i, j))


def counting(grid, semantics, **params):
    """Which program each core runs when, and what a count in memory of its own says then."""
    seen = []

    def kernel(start, o, count):
        @pl.when(pl.program_id(len(grid) - 1) + 0 * start[0] < 0)
        def _():
            count[0] = 0

        start[0] += 1
        o[...] = jnp.full(o.shape, start[0])

    def record(token, at, core):
        seen.append((tuple(int(i) for i in at), int(core)))
        return token

    result = pl.pallas_call(
        kernel,
        gradix.ShapeDtypeStruct(grid, "int32"),
        grid=grid,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
        out_specs=pl.BlockSpec((1,) * len(grid), lambda *at: at),
        scratch_shapes=[pltpu.SMEM((1,), jnp.int32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
        interpret=pltpu.InterpretParams(grid_point_recorder=record, **params),
    )
    counts = np.asarray(gradix.jit(result)(jnp.zeros(1, "int32")))
    gradix.effects_barrier()
    return seen, counts


@pytest.mark.parametrize(
    ("cores", "seed", "parallel"), [(1, None, 1), (1, 12345, 2), (2, 12345, 1), (3, None, 2), (5, 12345, 1)]
)
def test_programs_of_parallel_axes_are_divided_among_cores_in_any_order(cores, seed, parallel):
    grid = (4, 3)
    semantics = ("parallel",) * parallel + ("arbitrary",) * (2 - parallel)
    seen, counts = counting(grid, semantics, random_seed=seed, num_cores_or_threads=cores)
    assert sorted(at for at, _ in seen) == list(itertools.product(*map(range, grid)))
    places = [list(dict.fromkeys(at[a] for at, _ in seen)) for a in range(2)]
    assert (places[0] == [0, 1, 2, 3]) == (seed is None)
    if parallel == 1:
        assert places[1] == [0, 1, 2]
    # whole turns of the parallel axes, as many for each core, and each core counts from zero
    turns = 4 if parallel == 1 else 12
    assert [core for _, core in seen] == [i // (-(-turns // cores) * 12 // turns) for i in range(12)]
    expected, numbers = np.zeros(grid, int), {}
    for at, core in seen:
        expected[at] = numbers[core] = numbers.get(core, 0) + 1
    np.testing.assert_array_equal(counts, expected)


def test_a_seed_gives_one_order():
    runs = [counting((5, 2), ("parallel", "arbitrary"), random_seed=s)[0] for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_without_parallel_axes_the_order_is_that_of_the_grid():
    seen, _ = counting((2, 2), ("arbitrary", "arbitrary"), random_seed=3, num_cores_or_threads=2)
    assert seen == [((i, j), 0) for i in range(2) for j in range(2)]


def test_sizes_of_parallel_axes_must_be_known_and_parallel_axes_first():
    def kernel(o):
        o[...] = jnp.zeros(o.shape)

    def call(n, semantics, **params):
        return pl.pallas_call(
            kernel,
            gradix.ShapeDtypeStruct((4, 4), "float32"),
            grid=(n, 4),
            out_specs=ONE,
            compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
            interpret=pltpu.InterpretParams(**params),
        )()

    with pytest.raises(gradix.errors.ConcretizationTypeError, match='size must be known. Call the axis "arbitrary"'):
        gradix.jit(lambda n: call(n, ("parallel", "arbitrary")))(4)
    assert gradix.jit(lambda n: call(n, ("arbitrary", "arbitrary")))(4).shape == (4, 4)
    assert call(4, ("arbitrary", "parallel")).shape == (4, 4)
    for params in ({"random_seed": 1}, {"num_cores_or_threads": 2}):
        with pytest.raises(ValueError, match=r"calls axes \[1\] of the grid parallel: they must be the first ones"):
            call(4, ("arbitrary", "parallel"), **params)


@pytest.mark.parametrize("is_simulated", [False, True])
def test_an_argument_that_shares_memory_with_a_result_shows_what_was_written(is_simulated):
    def kernel(x, o, count):
        @pl.when(pl.program_id(0) + pl.program_id(1) == 0)
        def _():
            count[0] = 0

        o[...] = x[...] + count[0]
        count[0] += 1

    x = np.arange(9, dtype=np.int32).reshape(3, 3) * 100
    result = pl.pallas_call(
        kernel,
        gradix.ShapeDtypeStruct((3, 3), "int32"),
        grid=(3, 3),
        in_specs=[ONE],
        out_specs=pl.BlockSpec((1, 1), lambda i, j: (j, i)),
        scratch_shapes=[pltpu.SMEM((1,), jnp.int32)],
        input_output_aliases={0: 0},
        interpret=pltpu.InterpretParams() if is_simulated else True,
    )(jnp.asarray(x))
    expected, source = x.copy(), x.copy()
    for n, (i, j) in enumerate(itertools.product(range(3), range(3))):
        expected[j, i] = (expected if is_simulated else source)[i, j] + n
    np.testing.assert_array_equal(result, expected)


def test_alike_blocks_of_an_argument_and_its_result_still_run_side_by_side():
    def kernel(x, o):
        o[...] = x[...] * 2

    call = pl.pallas_call(
        kernel, gradix.ShapeDtypeStruct((4, 4), "float32"), grid=(4, 4), in_specs=[ONE], out_specs=ONE,
        input_output_aliases={0: 0}, interpret=pltpu.InterpretParams(),
    )  # fmt: skip
    x = jnp.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(call(x), 2 * x)
    assert "stablehlo.while" not in gradix.jit(call).lower(x).as_text()


def test_derivatives_of_a_simulation_in_an_order_of_its_own():
    def kernel(x, o):
        o[...] = jnp.sin(x[...]) * (1 + pl.program_id(0))

    def call(x, interpret):
        return pl.pallas_call(
            kernel, gradix.ShapeDtypeStruct((4, 2), "float32"), grid=(4, 2), in_specs=[ONE], out_specs=ONE,
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")), interpret=interpret,
        )(x)  # fmt: skip

    x = jnp.linspace(0.0, 1.0, 8).reshape(4, 2)
    ordered = pltpu.InterpretParams(random_seed=1, num_cores_or_threads=2)
    got, expected = [gradix.grad(lambda x: (call(x, p) ** 2).sum())(x) for p in (ordered, True)]  # noqa: B023
    np.testing.assert_allclose(got, expected, rtol=1e-6)


# -- memory in whole tiles -----------------------------------------------------------------------------


def in_scratch(access, shape=(10, 150), dtype="float32", space=pltpu.VMEM, **params):
    """What `access` finds in scratch memory that holds 0, 1, 2 and so on."""
    size = int(np.prod(shape))

    def kernel(start, x, o, room):
        room[...] = x[...]
        o[...] = access(room, start[0])

    def call(start):
        return pl.pallas_call(
            kernel,
            gradix.ShapeDtypeStruct((8, 128), dtype),
            in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()],
            scratch_shapes=[space(shape, dtype)],
            interpret=pltpu.InterpretParams(**{"buffer_bounds": "padded", **params}),
        )(start, jnp.arange(size).reshape(shape).astype(dtype))

    return gradix.jit(call)(jnp.array([8], "int32"))


def written(room, start):
    room[pl.ds(8, 8), pl.ds(128, 128)] = jnp.full((8, 128), -1.0)
    return room[pl.ds(start, 8), pl.ds(128, 128)]


def masked(room, start):
    keep = jnp.ones((8, 128), bool)
    pltpu.store(room.at[pl.ds(start, 8), pl.ds(128, 128)], jnp.full((8, 128), -1.0), mask=keep)
    return room[pl.ds(8, 8), pl.ds(128, 128)]


def by_number(room, start):
    room[14] = jnp.full(150, 7.0)
    room[9, 149] = -1.0
    return jnp.broadcast_to(room[14, :128] + 0 * room[9, :128], (8, 128))


def copied(room, start):
    pltpu.sync_copy(room.at[pl.ds(0, 8), pl.ds(0, 128)], room.at[pl.ds(start, 8), pl.ds(128, 128)])
    return room[pl.ds(8, 8), pl.ds(128, 128)]


@pytest.mark.parametrize("access", [written, masked, copied])
def test_what_lies_beyond_the_shape_of_scratch_memory_is_not_kept(access):
    found = np.asarray(in_scratch(access))
    assert np.isnan(found[2:]).all() and np.isnan(found[:, 22:]).all()
    expected = np.arange(2)[:, None] * 150 + np.arange(22) if access is copied else -1
    np.testing.assert_array_equal(found[:2, :22], np.broadcast_to(expected, (2, 22)))


def test_numbers_may_lie_beyond_the_shape():
    assert np.isnan(np.asarray(in_scratch(by_number))).all()


@pytest.mark.parametrize(
    ("access", "params"),
    [
        (written, {"buffer_bounds": "logical"}),
        (written, {"space": pltpu.SMEM}),
        (lambda room, start: room[pl.ds(16, 8), pl.ds(0, 128)], {}),
        (lambda room, start: room[pl.ds(start + 1, 8), pl.ds(0, 128)], {}),
        (lambda room, start: room[pl.ds(start, 8), pl.ds(129, 128)], {}),
    ],
    ids=["logical", "scalar memory", "beyond the tile", "beyond the tile, traced", "beyond the lanes"],
)
def test_elsewhere_accesses_out_of_bounds_raise(access, params):
    with pytest.raises((ValueError, IndexError), match=r"[Oo]ut.of.bound"):
        in_scratch(access, **params)


def test_tiles_of_narrow_types_have_more_rows():
    found = in_scratch(lambda room, start: room[pl.ds(24, 8), pl.ds(0, 128)], (20, 128), "int8")
    np.testing.assert_array_equal(found, np.full((8, 128), 127))


# -- arithmetic left out -------------------------------------------------------------------------------


def test_arithmetic_on_floats_can_be_left_out():
    def kernel(x, o, n):
        @pl.when(x[0, 0] < 1e9)
        def _():
            n[0] = 3 * jnp.int32(2)

        def turn(i, c):
            o[i, :] = x[i, :] @ x[...]
            return c + jnp.sin(x[0, 1])

        o[3, 3] = gradix.lax.fori_loop(0, 2, turn, x[0, 0])
        o[2, :] = x[2, ::-1]

    call = pl.pallas_call(
        kernel,
        [gradix.ShapeDtypeStruct((4, 4), "float32"), gradix.ShapeDtypeStruct((1,), "int32")],
        interpret=pltpu.InterpretParams(skip_floating_point_ops=True, uninitialized_memory="zero"),
    )
    x = jnp.arange(16.0, dtype="float32").reshape(4, 4)
    o, n = call(x)
    expected = np.zeros((4, 4))
    expected[:2], expected[3, 3], expected[2] = np.inf, np.inf, [11, 10, 9, 8]
    np.testing.assert_array_equal(o, expected)
    assert int(n[0]) == 6
    text = gradix.jit(call).lower(x).as_text()
    assert "dot_general" not in text and "sine" not in text
