"""Axes with more elements than 32 bits number: their places are refused, what needs none is not."""

import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

N = 2**31 + 10
LONG = gradix.ShapeDtypeStruct((N,), np.int8)
pytestmark = pytest.mark.x32

REFUSED = {
    "argmax": jnp.argmax,
    "nanargmin": lambda x: jnp.nanargmin(x.astype("bfloat16")),
    "argmin of rows": lambda x: jnp.argmin(x[None], axis=1),
    "argsort": jnp.argsort,
    "lexsort": lambda x: jnp.lexsort((x, x)),
    "nonzero": lambda x: jnp.nonzero(x, size=3),
    "argwhere": lambda x: jnp.argwhere(x, size=3),
    "where": lambda x: jnp.where(x > 0, size=3),
    "unique": lambda x: jnp.unique(x, size=3, return_index=True),
    "searchsorted": lambda x: jnp.searchsorted(x, 5),
    "digitize": lambda x: jnp.digitize(x[:3], x),
}

TAKEN = {
    "from the front": lambda x: x[5],
    "from the end": lambda x: x[-1],
    "beyond": lambda x: x[2**31 + 3],
    "part": lambda x: x[2**31 : 2**31 + 6],
    "set": lambda x: x.at[2**31 + 3].set(1),
    "bincount": lambda x: jnp.bincount(x, length=3),
    "delete": lambda x: jnp.delete(x, 2**31 + 3),
    "insert": lambda x: jnp.insert(x, 2**31 + 3, 1),
    "flip": jnp.flip,
    "roll": lambda x: jnp.roll(x, 3),
    "sum of a mask": lambda x: jnp.sum(x, where=x > 3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_places_beyond_int32_are_refused(name):
    with pytest.raises(
        OverflowError, match=r"21474836\d\d places of elements are out of bounds for int32.*'jax_enable_x64'"
    ):
        gradix.eval_shape(REFUSED[name], LONG)


@pytest.mark.parametrize("name", TAKEN)
def test_what_needs_no_place_beyond_int32_compiles(name):
    assert "func.func public @main" in gradix.jit(TAKEN[name]).lower(LONG).as_text()


def test_64_bits_number_them():
    with gradix.enable_x64():
        assert gradix.eval_shape(jnp.argmax, LONG).dtype == np.int64
        assert [i.dtype for i in gradix.eval_shape(lambda x: jnp.nonzero(x, size=3), LONG)] == [np.int64]


@pytest.mark.parametrize("find", [lax.argmax, lax.argmin])
def test_the_dtype_that_was_asked_for_numbers_the_elements(find):
    with pytest.raises(
        OverflowError, match=re.escape(f"{find.__name__}: 300 places of elements are out of bounds for int8")
    ):
        find(jnp.zeros(300), 0, np.int8)
    assert find(jnp.zeros(128), 0, np.int8) == 0
    with pytest.raises(OverflowError, match="argsort: 257 places of elements are out of bounds for uint8"):
        jnp.argsort(jnp.zeros(257), dtype="uint8")
