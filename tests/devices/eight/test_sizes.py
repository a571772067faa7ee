"""Programs of real size, divided over devices in each way, against NumPy and one device."""
import itertools

import pytest

import gradix
from tests.sizes.programs import C128, F64, I64, PROGRAMS
from tests.sizes.sweep import DIVISIONS, MODES, check, fits

ALL = [p for family in PROGRAMS.values() for p in family]
SIZES = (1 << 12, 17_408, 1 << 17)  # each lies above more of the limits that `tests/sizes/limits.py` finds


def run(program, dtype, size, division, mode):
    with gradix.enable_x64(dtype in (F64, C128, I64)):
        check(program, dtype, size, division, mode)


def cases():
    """Every program once, while divisions, transformations and dtypes take turns."""
    turns = zip(itertools.cycle(("rows", "both", "columns", "rows by two", "on one", "columns by two", "repeated")), itertools.cycle(("jit", "grad", "jit", "eager", "vmap")))
    for i, (program, (division, mode)) in enumerate(zip(ALL, turns)):
        dtype = program.dtypes[i % len(program.dtypes)] if i % 3 == 2 else program.dtypes[0]
        yield program, dtype, division, mode if fits(program, dtype, mode) else "jit"


@pytest.mark.parametrize("part", range(8))
def test_programs_of_real_size(part):
    for program, dtype, division, mode in list(cases())[part::24]:
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
def test_every_dtype_and_size(program):
    for dtype in program.dtypes:
        for size in SIZES:
            run(program, dtype, size, "both", "jit")
