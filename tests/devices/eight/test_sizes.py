"""Programs of real size, divided over devices in each way, against NumPy and one device."""

import itertools

import pytest

import gradix
from tests.sizes.limits import limits
from tests.sizes.programs import C128, F64, I64, PROGRAMS
from tests.sizes.sweep import DIVISIONS, MODES, check, fits

ALL = [p for family in PROGRAMS.values() for p in family]
# Below all limits, and above each one; what is done for more than 2**18 elements takes too long here.
SIZES = (600, *sorted({limit.value * 5 // 4 for limit in limits() if limit.value <= 1 << 18}))


def run(program, dtype, size, division, mode):
    with gradix.enable_x64(dtype in (F64, C128, I64)):
        check(program, dtype, size, division, mode)


def cases():
    """Every program once, while divisions, transformations and dtypes take turns."""
    turns = zip(
        itertools.cycle(("rows", "both", "columns", "rows by two", "on one", "columns by two", "repeated")),
        itertools.cycle(("jit", "grad", "jit", "eager", "vmap")),
    )
    for i, (program, (division, mode)) in enumerate(zip(ALL, turns)):
        dtype = program.dtypes[i % len(program.dtypes)] if i % 3 == 2 else program.dtypes[0]
        yield program, dtype, division, mode if fits(program, dtype, mode) else "jit"


@pytest.mark.parametrize("part", range(8))
def test_programs_of_real_size(part):
    for program, dtype, division, mode in list(cases())[part::32]:
        run(program, dtype, 17_408, division, mode)


@pytest.mark.slow
@pytest.mark.parametrize("program", ALL, ids=str)
def test_every_division(program):
    for division in DIVISIONS:
        for mode in MODES:
            if fits(program, program.dtypes[0], mode):
                run(program, program.dtypes[0], 17_408, division, mode)


@pytest.mark.slow
@pytest.mark.parametrize("program", ALL, ids=str)
def test_every_size_and_dtype(program):
    for size in SIZES:
        run(program, program.dtypes[0], size, "both", "jit")
    for dtype in program.dtypes[1:]:
        run(program, dtype, 17_408, "both", "jit")


@pytest.mark.slow
@pytest.mark.parametrize("program", ALL, ids=str)
def test_one_device(program):
    for size in SIZES:
        for dtype in program.dtypes:
            run(program, dtype, size, "one device", "jit")


@pytest.mark.parametrize("name", ["convolve[3]", "max of distinct[None]", "cumsum[1]"])
def test_gradients_over_divided_columns(name):
    (program,) = [p for p in ALL if p.name == name]
    for division in ("columns", "both"):
        run(program, "float32", 17_408, division, "grad")


def test_limits_are_found():
    found = {(limit.module, limit.name) for limit in limits()}
    assert {
        ("_platforms/cpu/extrema.py", "_SIZE"),
        ("_platforms/cpu/blocks.py", "_LEAST_ONCE"),
        ("_runtime/xla_buffers.py", "_SMALL"),
        ("_api/jit/fastcall.py", "_BYTES_LIMIT"),
        ("_runtime/host_kernels.py", "_SHARED"),
    } <= found
    assert max(SIZES) > 1 << 18 > 1 << 10 > min(SIZES)
