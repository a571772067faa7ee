"""Products that contract several axes at once, and stacks of products whose first operands are transposed."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

NAME = "products_over_one_axis"
# shapes of both operands, and the contracted and batched axes of each
JOINED = {
    "last axes": ((2, 5, 3, 4), (2, 6, 3, 4), ((2, 3), (2, 3)), ((0,), (0,))),
    "last and first": ((5, 3, 4), (3, 4, 6), ((1, 2), (0, 1)), ((), ())),
    "written backwards": ((5, 3, 4), (6, 3, 4), ((2, 1), (2, 1)), ((), ())),
    "three axes": ((2, 3, 4), (2, 3, 4, 5), ((0, 1, 2), (0, 1, 2)), ((), ())),
    "batch behind": ((2, 5, 3, 4), (6, 3, 4, 2), ((2, 3), (1, 2)), ((0,), (3,))),
    "no elements": ((5, 3, 0), (6, 3, 0), ((1, 2), (1, 2)), ((), ())),
}
APART = {
    "crossed": ((5, 3, 4), (4, 3, 6), ((1, 2), (1, 0)), ((), ())),
    "axes between": ((3, 5, 4), (3, 4, 6), ((0, 2), (0, 1)), ((), ())),
    "first axes": ((3, 4, 5), (3, 4, 6), ((0, 1), (0, 1)), ((), ())),
    "one axis": ((3, 5), (3, 6), ((0,), (0,)), ((), ())),
}


def product(case):
    *_, contracted, batch = case
    return lambda x, y: lax.dot_general(x, y, (contracted, batch))


def operands(case, dtype):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.integers(-4, 5, shape).astype(dtype)) for shape in case[:2]]


def taken(f, *args, name=NAME):
    return gradix.jit(f).lower(*args)._module.facts.rewrites.get(name, 0)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "complex64"])
@pytest.mark.parametrize("name", JOINED)
def test_the_same_products(name, dtype):
    case = JOINED[name]
    x, y = operands(case, dtype)
    assert taken(product(case), x, y) == 1
    got = gradix.jit(product(case))(x, y)
    with gradix.disable_jit():
        want = product(case)(x, y)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(np.asarray(got, dtype="complex64"), np.asarray(want, dtype="complex64"))


@pytest.mark.parametrize("name", APART)
def test_axes_that_cannot_be_joined(name):
    case = APART[name]
    x, y = operands(case, "float32")
    assert taken(product(case), x, y) == 0
    with gradix.disable_jit():
        want = product(case)(x, y)
    np.testing.assert_array_equal(gradix.jit(product(case))(x, y), want)


def test_a_wider_result():
    x, y = operands(JOINED["last axes"], "int8")
    f = lambda x, y: lax.dot_general(x, y, (((2, 3), (2, 3)), ((0,), (0,))), preferred_element_type=jnp.int32)
    want = np.einsum("bkij,blij->bkl", np.asarray(x, "int32"), np.asarray(y, "int32"))
    np.testing.assert_array_equal(gradix.jit(f)(x, y), want)


STACKS = {
    "first": ("bkm,bkn->bmn", (3, 40, 33), (3, 40, 35), 1),
    "two batches": ("abkm,abkn->abmn", (2, 3, 32, 33), (2, 3, 32, 35), 1),
    "second transposed too": ("bkm,bnk->bmn", (3, 40, 33), (3, 35, 40), 1),
    "small": ("bkm,bkn->bmn", (3, 31, 33), (3, 31, 35), 0),
    "last": ("bmk,bkn->bmn", (3, 33, 40), (3, 40, 35), 0),
    "vectors": ("bkm,bk->bm", (3, 40, 33), (3, 40), 0),
}


@pytest.mark.parametrize("name", STACKS)
def test_stacks_of_transposed_matrices(name):
    equation, left, right, count = STACKS[name]
    rng = np.random.default_rng(1)
    x, y = [rng.integers(-4, 5, shape).astype("float32") for shape in (left, right)]
    f = lambda x, y: jnp.einsum(equation, x, y)
    assert taken(f, x, y, name="stacks_without_transposes") == count
    np.testing.assert_array_equal(gradix.jit(f)(x, y), np.einsum(equation, x, y))


@pytest.mark.parametrize("size, count", [(8, 1), (4, 0)])
def test_stacks_over_several_axes(size, count):
    """Such are gradients of mapped attention to its keys."""
    rng = np.random.default_rng(3)
    x, y = [rng.integers(-4, 5, (3, 4, size, n)).astype("float32") for n in (33, 35)]
    f = lambda x, y: jnp.einsum("bijk,bijl->bkl", x, y)
    for name in (NAME, "stacks_without_transposes"):
        assert taken(f, x, y, name=name) == count
    np.testing.assert_array_equal(gradix.jit(f)(x, y), np.einsum("bijk,bijl->bkl", x, y))


def test_stacks_whose_transposes_are_written():
    rng = np.random.default_rng(2)
    x, y = rng.integers(-4, 5, (3, 40, 33)).astype("float32"), rng.integers(-4, 5, (3, 40, 35)).astype("float32")
    x[0, 0, 0] = np.nan
    f = lambda x, y: x.swapaxes(1, 2) @ y
    assert taken(f, x, y, name="stacks_without_transposes") == 1
    np.testing.assert_array_equal(gradix.jit(f)(x, y), np.swapaxes(x, 1, 2) @ y)
    loss = lambda x, y: (f(x, y) ** 2).sum()
    with gradix.disable_jit():
        want = gradix.grad(loss, (0, 1))(x[1:], y[1:])
    for g, w in zip(gradix.jit(gradix.grad(loss, (0, 1)))(x[1:], y[1:]), want):
        np.testing.assert_allclose(g, w, rtol=1e-5)
