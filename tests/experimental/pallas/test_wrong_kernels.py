"""Wrong calls of kernels, and kernels that do what they cannot: which error each raises, and what it says."""

import contextlib

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import tpu as pltpu

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype
X4 = np.arange(4, dtype=np.float32)


def copy(x, o, *_):
    o[...] = x[...]


@pytest.mark.promotes
@pytest.mark.parametrize(
    "kind, words, kw",
    [
        (ValueError, r"args\[0\].*same number of dimensions", {"in_specs": [pl.BlockSpec((2, 2), lambda i: i)]}),
        (
            ValueError,
            r"<lambda> at .*test_wrong_kernels.py.*args\[0\] must return 1 values.*Currently returning 2",
            {"in_specs": [pl.BlockSpec((2,), lambda i: (i, 0))]},
        ),
        (
            ValueError,
            r"must return integer scalars. Output\[0\]",
            {"in_specs": [pl.BlockSpec((2,), lambda i: i * 1.0)]},
        ),
        (ValueError, "`in_specs` and `inputs` do not match", {"in_specs": [pl.BlockSpec((2,), lambda i: i)] * 2}),
        (ValueError, "must be a tuple or a list", {"in_specs": pl.BlockSpec((2,), lambda i: i)}),
        (ValueError, "positive sizes, got 0", {"in_specs": [pl.BlockSpec((0,), lambda i: i)]}),
        (
            TypeError,
            "with .the index along axis 0 of the grid., but its arguments are .i, j.",
            {"in_specs": [pl.BlockSpec((2,), lambda i, j: i)]},
        ),
        (TypeError, "must hold BlockSpecs", {"in_specs": [3]}),
        (TypeError, "grid must hold integers, got 2.5", {"grid": (2.5,)}),
        (TypeError, "grid must be an int or a tuple", {"grid": 2.5}),
        (ValueError, "'1:0' with input index 1 outside", {"input_output_aliases": {1: 0}}),
        (ValueError, "'0:1' with output index 1 outside", {"input_output_aliases": {0: 1}}),
        (ValueError, "`grid` must be `\\(\\)`. It is 2", {"grid_spec": pl.GridSpec(grid=2)}),
        (TypeError, "scratch shape must be a place of memory", {"scratch_shapes": ["no"]}),
        (ValueError, "grid must hold numbers of programs, got -1 at axis 0", {"grid": -1}),
        (ValueError, "at most 2..31 - 1 can be counted", {"grid": (1 << 20, 1 << 20)}),
        (TypeError, "must go from the numbers of arguments to those of results", {"input_output_aliases": {"x": 0}}),
        (TypeError, "must go from the numbers of arguments to those of results", {"input_output_aliases": {0}}),
        (TypeError, "name of a pallas_call must be a string, got 3", {"name": 3}),
        (TypeError, "must be a pl.GridSpec or a pltpu.PrefetchScalarGridSpec", {"grid": (), "grid_spec": {"grid": 2}}),
        (
            TypeError,
            r"<lambda> at .*for args\[0\] must return integer scalars. Output\[0\] is None",
            {"in_specs": [pl.BlockSpec((2,), lambda i: None)]},
        ),
        (
            ValueError,
            r"Output\[0\] has type int32\[2\]. Take one of its elements",
            {"in_specs": [pl.BlockSpec((2,), lambda i: jnp.arange(2))]},
        ),
        (
            ValueError,
            "padding of pl.Element at dimension 0",
            {"in_specs": [pl.BlockSpec((pl.Element(2, (-1, 0)),), lambda i: i)]},
        ),
        (TypeError, "must hold integers, got 2.0 at", {"in_specs": [pl.BlockSpec((pl.Blocked(2.0),), lambda i: i)]}),
        (ValueError, "Unsupported block dim type: .*bool", {"in_specs": [pl.BlockSpec((True,), lambda i: i)]}),
    ],
)
def test_wrong_calls_are_told(kind, words, kw):
    with pytest.raises(kind, match=words):
        pl.pallas_call(copy, S((4,), jnp.float32), **{"grid": 2, **kw})(X4)


@pytest.mark.parametrize(
    "kind, words, kernel",
    [
        (ValueError, "should return None", lambda x, o: x[...]),
        (
            ValueError,
            "Axis 1 is out of bounds for grid \\(\\)",
            lambda x, o: o.__setitem__(..., x[...] + pl.program_id(1)),
        ),
        (
            ValueError,
            "Out of bound slice: start=3, size=4, stride=1, dim=4",
            lambda x, o: o.__setitem__(..., x[pl.ds(3, 4)]),
        ),
        (ValueError, "Invalid dtype", lambda x, o: o.__setitem__(..., x[...].astype(int))),
        (ValueError, "Invalid shape", lambda x, o: o.__setitem__(..., x[:2])),
        (ValueError, "Cannot store a Ref into another Ref", lambda x, o: o.__setitem__(..., x)),
        (TypeError, "positional argument", lambda x: None),
        (TypeError, "start of a slice must be an integer, got 0.5", lambda x, o: o.__setitem__(..., x[pl.ds(0.5, 4)])),
        (TypeError, "size of a slice must be an integer", lambda x, o: o.__setitem__(..., x[pl.ds(0, x[0])])),
        (
            ValueError,
            r"index selects the shape \(2,\). Value shape: \(4,\)",
            lambda x, o: pl.store(o, (pl.ds(0, 2),), x[...]),
        ),
        (
            TypeError,
            r"a mask must hold booleans, got float32\[4\]",
            lambda x, o: o.__setitem__(..., pl.load(x, (slice(None),), mask=x[...])),
        ),
        (
            ValueError,
            r"the mask of shape \(3,\) does not broadcast",
            lambda x, o: pl.store(o, (slice(None),), x[...], mask=jnp.ones(3, bool)),
        ),
        (
            ValueError,
            r"the value of shape \(4,\) does not broadcast",
            lambda x, o: pl.store(o, (pl.ds(0, 2),), x[...], mask=jnp.ones(2, bool)),
        ),
        (TypeError, "a copy takes a reference to a semaphore", lambda x, o: pltpu.async_copy(x, o, o)),
        (TypeError, "pl.semaphore_signal takes a reference to a semaphore", lambda x, o: pl.semaphore_signal(o)),
        (TypeError, "pl.semaphore_read takes a reference to a semaphore", lambda x, o: pl.semaphore_read(x[0])),
    ],
)
def test_wrong_kernels_are_told(kind, words, kernel):
    with pytest.raises(kind, match=words):
        pl.pallas_call(kernel, S((4,), jnp.float32))(X4)


def test_programs_need_a_kernel():
    with pytest.raises(ValueError, match="outside of a kernel"):
        pl.program_id(0)


@pytest.mark.parametrize(
    "kind, words, make",
    [
        (TypeError, "shape of a block before its index map, got <lambda> at", lambda: pl.BlockSpec(lambda i: i, (2,))),
        (TypeError, r"entry for each dimension of the array, got 2 .*Write \(2,\)", lambda: pl.BlockSpec(2)),
        (TypeError, "must be a function from the indices of a program.*got 3", lambda: pl.BlockSpec((2,), 3)),
        (ValueError, "must not be negative, got -1", lambda: pltpu.PrefetchScalarGridSpec(-1, grid=2)),
        (TypeError, "number of arguments to prefetch, got Array", lambda: pltpu.PrefetchScalarGridSpec(jnp.arange(3))),
        (ValueError, "uninitialized_memory must be one of", lambda: pltpu.InterpretParams(uninitialized_memory="ones")),
        (ValueError, r"copy at .* has a negative size: \(-4,\)", lambda: pl.pallas_call(copy, S((-4,), jnp.float32))),
        (TypeError, "arguments by position, got x by name", lambda: pl.pallas_call(copy, S((4,), jnp.float32))(x=X4)),
    ],
)
def test_wrong_specs_are_told(kind, words, make):
    with pytest.raises(kind, match=words):
        make()


def test_sizes_of_blocks_are_not_traced():
    def f(n):
        block = pl.BlockSpec((n,), lambda i: i)
        return pl.pallas_call(copy, S((4,), jnp.float32), grid=2, in_specs=[block], out_specs=block)(X4)

    with pytest.raises(TypeError, match=r"args\[0\] must be known, but that of dimension 0 is traced.*static_argnums"):
        gradix.jit(f)(2)
    assert (gradix.jit(f, static_argnums=0)(2) == X4).all()


def test_writes_to_arguments_stay_in_the_kernel():
    def kernel(x, o):
        x[...] = x[...] + 1
        o[...] = x[...]

    x = jnp.asarray(X4)
    for run in (lambda f: f, gradix.jit):
        np.testing.assert_array_equal(run(pl.pallas_call(kernel, S((4,), jnp.float32)))(x), X4 + 1)
        np.testing.assert_array_equal(x, X4)


def test_huge_blocks_and_no_programs():
    for n in (2, 1 << 40):
        block = pl.BlockSpec((n,), lambda i: i)
        call = pl.pallas_call(copy, S((4,), jnp.float32), grid=pl.cdiv(4, n), in_specs=[block], out_specs=block)
        np.testing.assert_array_equal(call(X4), X4)
    block = pl.BlockSpec((2,), lambda i: i)

    def some(n):
        return pl.pallas_call(copy, S((4,), jnp.float32), grid=n, in_specs=[block], out_specs=block)(X4)

    for n in (0, -3):  # known when the program runs
        assert np.isnan(gradix.jit(some)(n)).all()
    assert np.isnan(some(0)).all()
    np.testing.assert_array_equal(gradix.jit(some)(9), X4)


def test_loops_of_many_programs_compute_their_indices(monkeypatch):
    monkeypatch.setattr("gradix.experimental.pallas._running._TABLED_PROGRAMS", 4)

    def total(x, o):
        @pl.when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
        def _():
            o[...] = jnp.zeros(o.shape)

        o[...] += (1 + pl.program_id(0)) * x[...] ** (1 + pl.program_id(1))

    call = pl.pallas_call(
        total,
        S((1,), jnp.float32),
        grid=(4, 2),
        in_specs=[pl.BlockSpec((1,), lambda i, j: i)],
        out_specs=pl.BlockSpec((1,), lambda i, j: 0),
    )
    weights = np.arange(1, 5)
    np.testing.assert_allclose(call(X4), [(weights * (X4 + X4**2)).sum()])
    np.testing.assert_allclose(gradix.grad(lambda x: call(x)[0])(X4), weights * (1 + 2 * X4), rtol=1e-6)


@pytest.mark.parametrize("numbers", [(((2), (1)), ((1,), (2,))), ((1,), (0,)), (((1,), (0,)), ((), ()))])
def test_a_reference_that_is_multiplied_is_told_of_before_its_axes(numbers):
    def kernel(x, y, o):
        o[...] = gradix.lax.dot_general(x, y, numbers)

    with pytest.raises(ValueError, match=r"dot_general.*mutable array.*read its value"):
        pl.pallas_call(kernel, S((4,), "float32"))(X4, X4)
    with pytest.raises(TypeError, match="dimension_numbers=") if numbers[1] != ((), ()) else contextlib.nullcontext():
        gradix.lax.dot_general(jnp.ones((2, 2)), jnp.ones((2, 2)), numbers)
