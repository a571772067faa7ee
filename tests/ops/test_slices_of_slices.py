"""Places outside of what a slice has: they are moved inside or dropped, also where XLA joins the slice with another one."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

X = np.arange(1, 11, dtype=np.float32)
ROWS = X[:9].reshape(3, 3)


def block(x, i, size):
    return lax.dynamic_slice(x, (i,), (size,))


PROGRAMS = {
    "a block": lambda x, i, j: block(block(x, i, 3), j, 1),
    "of what is computed": lambda x, i, j: block(block(x * 2, i, 3), j, 2),
    "an element": lambda x, i, j: block(x, i, 3)[j],
    "an element, by lax": lambda x, i, j: lax.dynamic_index_in_dim(block(x, i, 3), j, keepdims=False),
    "clipped": lambda x, i, j: block(x, i, 3).at[j].get(mode="clip"),
    "filled": lambda x, i, j: block(x, i, 3).at[j].get(mode="fill", fill_value=-1),
    "written": lambda x, i, j: block(x, i, 3).at[j].set(99),
    "added": lambda x, i, j: block(x, i, 3).at[j].add(99),
    "written, in another shape": lambda x, i, j: block(x, i, 4).reshape(2, 2).at[j].set(99),
    "replaced": lambda x, i, j: lax.dynamic_update_slice(block(x, i, 3), block(block(x, i, 3), j, 1) * 10, (j,)),
    "replaced within": lambda x, i, j: lax.dynamic_update_slice(
        x, lax.dynamic_update_slice(block(x, i, 3), jnp.full(1, 99, x.dtype), (j,)), (i,)
    ),
    "along two axes": lambda x, i, j: lax.dynamic_slice(
        lax.dynamic_slice(x.reshape(5, 2), (i, 0), (2, 2)), (j, j), (1, 1)
    ),
    "in another shape": lambda x, i, j: block(block(x, i, 4).reshape(2, 2).reshape(4), j, 2),
    "in a function inside": lambda x, i, j: gradix.jit(lambda b: b.at[j].set(99))(block(x, i, 3)),
    "in a loop": lambda x, i, j: lax.fori_loop(0, 3, lambda k, c: c + block(block(x, i, 3), j + k, 1)[0], x[0]),
    "of rows": lambda x, i, j: lax.dynamic_slice(x[:9].reshape(3, 3), (j, 0), (2, 3)).at[i].set(99),
    "of each row": lambda x, i, j: lax.scan(lambda c, r: (c, r.at[j].set(99)), i, x[:9].reshape(3, 3))[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_as_eager(name):
    f = PROGRAMS[name]
    compiled = gradix.jit(lambda x, i, j: f(x, i, j))
    for i in (0, 3, 8, 12, -2):
        for j in (0, 2, 3, 7, -1, -4, 100):
            i, j = np.int32(i), np.int32(j)
            with gradix.disable_jit():
                wanted = f(jnp.asarray(X), jnp.asarray(i), jnp.asarray(j))
            np.testing.assert_array_equal(compiled(X, i, j), wanted, err_msg=f"{i} {j}")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_types_of_places(dtype):
    with gradix.enable_x64(dtype.endswith("64")):
        for x in (X, np.arange(300, dtype=np.float32)):
            f = gradix.jit(lambda x, i, j: block(block(x, i, 3), j, 1))
            for i in (0, 7, 120, -3 if dtype[0] == "i" else 100):
                for j in (0, 2, 90, -2 if dtype[0] == "i" else 5):
                    i, j = np.array(i, dtype), np.array(j, dtype)
                    inner = min(max(int(i) + (x.size if i < 0 else 0), 0), x.size - 3)
                    wanted = x[inner + min(max(int(j) + (3 if j < 0 else 0), 0), 2)]
                    assert f(x, i, j)[0] == wanted, (i, j)


def test_derivatives():
    step = gradix.jit(gradix.grad(lambda x, i, j: (block(block(x, i, 3), j, 1) ** 2).sum()))
    for i, j in ((0, 5), (3, -4), (8, 0), (8, 1)):
        at = min(i, 7) + min(max(j + 3 if j < 0 else j, 0), 2)
        np.testing.assert_array_equal(step(X, i, j), np.where(np.arange(10) == at, 2 * X, 0))
