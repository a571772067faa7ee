"""Blocks of arrays that are replaced, where XLA would read what it has just replaced, or what another device has."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from tests.devices.eight.common import mesh, on, sharded
from tests.platforms.test_defects import DEFECTS, equal

ROWS = np.random.default_rng(0).permutation(48).astype(np.float32).reshape(16, 3)


@pytest.mark.parametrize("name", ["blocks_replaced_apart", "scattered_blocks_apart"])
def test_programs_that_run_alike_on_all_devices(name):
    for f, x, wanted in DEFECTS[name]:
        assert equal(np.asarray(gradix.jit(f)(sharded(x, mesh()))), wanted)


def rows_halved(x):
    """A half of the rows, of what they are in another shape."""
    b = jnp.sin(x)
    c = b.reshape(16, 3, 1)
    return lax.dynamic_update_slice(c, c[:, :1] * 0.5 + b[:, 2:, None], (0, 1, 0)).reshape(16, 3)


def test_rows_are_replaced_where_they_are():
    step = gradix.jit(rows_halved, in_shardings=on(mesh(), "x"))
    x = sharded(ROWS, mesh(), "x")
    wanted = np.sin(ROWS)
    wanted[:, 1] = wanted[:, 0] * 0.5 + wanted[:, 2]
    np.testing.assert_allclose(step(x), wanted, rtol=1e-6)
    text = step.lower(x).compile().as_text()
    assert "all-gather" not in text and "replaced_block" in text


WRITES = {
    "set": lambda z, i: z.at[2].set(7),
    "a traced place": lambda z, i: z.at[i].set(7),
    "add": lambda z, i: z.at[i].add(7),
    "multiply": lambda z, i: z.at[i].multiply(3),
    "max": lambda z, i: z.at[i].max(20),
    "one of a list": lambda z, i: z.at[np.array([2])].set(7),
    "behind the end": lambda z, i: z.at[i + 50].set(7),
    "before the start": lambda z, i: z.at[i - 50].set(7, mode="drop"),
    "at the end": lambda z, i: z.at[i + 50].set(7, mode="clip"),
    "of another row": lambda z, i: z.at[2].set(z[9]),
    "of a loop": lambda z, i: lax.fori_loop(0, 3, lambda k, z: z.at[k].set(z[k + 1] * 2), z),
}


@pytest.mark.parametrize("name", WRITES)
def test_one_row_of_an_array_that_was_whole_on_each_device(name):
    """A device that does not have the row writes what it has of the divided array, not of the whole one."""
    m = mesh()

    def f(x, i):
        return WRITES[name](jnp.sort(x, 0), i)

    with gradix.disable_jit():
        wanted = np.asarray(f(jnp.asarray(ROWS), np.int32(5)))
    for spec in (("x",), (("x", "y"),)):
        step = gradix.jit(f, out_shardings=on(m, *spec))
        np.testing.assert_array_equal(step(sharded(ROWS, m, *spec), np.int32(5)), wanted)


OUTSIDE = {
    "replaced": lambda x, i: lax.dynamic_update_slice(x, x[:2] * 3, (i, 0)),
    "a row replaced": lambda x, i: lax.dynamic_update_index_in_dim(x, x[0] * 2, i, 0),
    "a column replaced": lambda x, i: lax.dynamic_update_index_in_dim(x.T, x[:, 0] * 2, i, 0).T,
    "sliced": lambda x, i: lax.dynamic_slice(x, (i, 0), (8, 3)),
    "rows of a slice": lambda x, i: lax.dynamic_slice(x, (i, 0), (9, 3))[jnp.arange(8) + i],
    "clipped rows of a slice": lambda x, i: lax.dynamic_slice(x, (i, 0), (9, 3)).at[jnp.arange(8) - i].get(mode="clip"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_blocks_that_would_lie_outside_are_moved_inside(name):
    f, m = OUTSIDE[name], mesh((8,), ("x",))
    step = gradix.jit(lambda x, i: f(x, i), out_shardings=on(m, "x"))
    for i in (0, 3, 15, 100, -1, -100):
        i = np.int32(i)
        with gradix.disable_jit():
            wanted = np.asarray(f(jnp.asarray(ROWS), jnp.asarray(i)))
        for spec in (("x",), ()):
            np.testing.assert_array_equal(step(sharded(ROWS, m, *spec), i), wanted, err_msg=f"{i} {spec}")
