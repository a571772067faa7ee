"""Places in the user's program, and modules imported late."""

import contextlib
import functools
import os
import sys

import pytest

import gradix._base
from gradix._base import source
from gradix._base.lazy import lazy_module

INSIDE = os.path.join(os.path.dirname(gradix._base.__file__), "imagined.py")


def inside(code):
    """A function as if defined in a file of the package."""
    namespace = {"source": source}
    exec(compile(code, INSIDE, "exec"), namespace)
    return namespace["f"]


def here():
    return sys._getframe(1).f_lineno


def test_the_caller_is_found_through_frames_of_the_package():
    direct, line = source.current(), here()
    assert (direct.file, direct.line, direct.function) == (__file__, line, sys._getframe().f_code.co_qualname)
    nested = inside("def g(): return source.current()\ndef f(): return (lambda: g())()")
    place, line = nested(), here()
    assert (place.file, place.line) == (__file__, line)
    assert str(place) == f"{__file__}:{line} ({place.function})" and str(place) in repr(place)


def test_plumbing_of_decorators_is_no_user_frame():
    @contextlib.contextmanager
    def nothing():
        yield

    find = inside("def f(): return source.current()")
    assert nothing()(find)().file == __file__
    assert functools.partial(find)().file == __file__


def test_positions_and_equality():
    places = [source.current() for _ in range(2)]
    assert places[0] == places[1] and len(set(places)) == 1 and places[0] != source.current()
    line, end_line, column, end_column = places[0].position
    assert line == end_line == places[0].line and 0 <= column < end_column


def test_main_program_is_the_users():
    main = os.path.join(os.path.dirname(os.path.dirname(INSIDE)), "__main__.py")
    assert source._is_inside(INSIDE) and not source._is_inside(main) and not source._is_inside("<stdin>")


def test_lazy_module():
    fractions = lazy_module("fractions")
    assert fractions is lazy_module("fractions") and fractions.Fraction(1, 2) * 2 == 1
    assert "Fraction" in dir(fractions) and repr(fractions) == "<lazy module 'fractions'>"
    with pytest.raises(AttributeError, match="no_such_thing"):
        fractions.no_such_thing


def test_lazy_module_that_is_missing():
    with pytest.raises(ModuleNotFoundError, match="pip install no_such_package") as caught:
        lazy_module("no_such_package.part").something
    assert caught.value.name == "no_such_package"


def test_lazy_module_that_misses_something_else(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import no_such_other\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_other"):
        lazy_module("half_there").something
