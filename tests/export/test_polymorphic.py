"""Programs traced once with symbolic shapes and called at several sizes: the results of the plain functions."""

import pytest

import gradix
from gradix import export
from tests.export.common import SIZES, arrays_of, assert_same, function_of, specs_of
from tests.export.programs import PROGRAMS


def check(text, shapes, all_sizes):
    f = function_of(text, len(shapes))
    exported = export.export(gradix.jit(f))(*specs_of(shapes))
    for sizes in all_sizes:
        args = arrays_of(shapes, sizes)
        assert_same(exported.call(*args), gradix.jit(f)(*args))


def names(rows):
    return [f"{text} of {'; '.join(shapes)}" for text, shapes in rows]


@pytest.mark.parametrize(("text", "shapes"), PROGRAMS[::19], ids=names(PROGRAMS[::19]))
def test_one_export_serves_two_sizes(text, shapes):
    check(text, shapes, SIZES[:2])


@pytest.mark.slow
@pytest.mark.parametrize(("text", "shapes"), PROGRAMS, ids=names(PROGRAMS))
def test_one_export_serves_all_sizes(text, shapes):
    check(text, shapes, SIZES)


def test_there_are_many_programs():
    assert len(set(PROGRAMS)) == len(PROGRAMS) >= 400
