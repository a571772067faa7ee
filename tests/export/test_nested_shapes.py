"""Exported functions called where sizes are variables: what must hold for all of them, and trees and platforms of files."""

import collections

import pytest

import gradix
import gradix.numpy as jnp
from gradix import export


def rows(inner: str, outer: str):
    """The number of rows that a function exported for the shape `inner` returns, called with `outer`."""
    f = export.export(gradix.jit(lambda x: x.reshape((-1, x.shape[1]))))(
        gradix.ShapeDtypeStruct(export.symbolic_shape(inner), "float32")
    )
    whole = export.export(gradix.jit(f.call))(gradix.ShapeDtypeStruct(export.symbolic_shape(outer), "float32"))
    return str(whole.out_avals[0].shape[0])


@pytest.mark.parametrize(
    "inner, outer, want",
    [
        ("3, 4, c", "3, 4, 12", "36"),
        ("3, 4, c", "3, 4, c", "3*c"),
        ("3, a, a + b", "3, 4, 12", "36"),
        ("3, a, a + b", "3, 4, c + 4", "3*c + 12"),
        ("c, 4, 12", "d, 4, 12", "12*d"),
    ],
)
def test_sizes_that_fit_for_all_values_are_taken(inner, outer, want):
    assert rows(inner, outer) == want


@pytest.mark.parametrize(
    "inner, outer",
    [
        ("3, a, a + b", "3, 4, c"),  # b might be below 1
        ("3, 4, 12", "3, 4, c"),
        ("3, 4, 5*a", "3, 4, c"),
        ("3, a, a", "3, 4, c"),
        ("3, a, a + b", "c, 4, 12"),
    ],
)
def test_sizes_that_fit_for_some_values_only_are_refused(inner, outer):
    with pytest.raises(ValueError, match="do not match the polymorphic shapes specification"):
        rows(inner, outer)


def test_an_ordered_dict_is_in_files_by_itself():
    given = collections.OrderedDict(b=1.0, a=2.0)
    read = export.deserialize(export.export(gradix.jit(lambda d: d))(given).serialize())
    assert list(read.call(given).items()) == [("b", 1.0), ("a", 2.0)]
    with pytest.raises(ValueError, match="only strings are keys"):
        export.export(gradix.jit(lambda d: d))(collections.OrderedDict({1: 2.0})).serialize()


def test_platforms_of_any_name():
    e = export.export(
        gradix.jit(lambda x: gradix.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)), platforms=("other", "cpu")
    )(0.0)
    assert e.platforms == ("other", "cpu") and e.call(0.0) == 0.0


def test_a_program_of_fixed_sizes_says_so():
    fixed = export.export(gradix.jit(lambda x: x + 1))(jnp.ones(3))
    with pytest.raises(ValueError, match=r"exported for shape \(3,\) and is called with \(4,\)\. .*symbolic_shape"):
        fixed.call(jnp.ones(4))
