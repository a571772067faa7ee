"""`abstracted_axes`: names for axes, which promise equal sizes and change no result."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp


def dot(x, y):
    return (x * y).sum()


@pytest.mark.parametrize(
    "axes", [("n",), {0: "n"}, ({0: "n"}, {0: "n"}), (("n",), {-1: "n"}), ({0: "n"}, None), {}, None]
)
def test_the_result_is_the_same_and_each_size_has_its_program(axes):
    f = gradix.jit(dot, abstracted_axes=axes)
    for n in (3, 4, 3, 5, 4):
        assert f(jnp.arange(n) + 1.0, np.ones(n, "f4")) == n * (n + 1) / 2
    assert f.stats().traces == 3


def test_axes_of_one_name_must_agree():
    f = gradix.jit(lambda x, y: x.sum() + y.sum(), abstracted_axes=({0: "n"}, {1: "n"}))
    assert f(jnp.ones(3), jnp.ones((2, 3))) == 9
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"'n' to axes of different sizes: 3, axis 0 of args\[0\], and 4, axis 1 of args\[1\]"
        ):
            f(jnp.ones(3), jnp.ones((2, 4)))
    with pytest.raises(ValueError, match="different sizes"):
        f.lower(jnp.ones(3), gradix.ShapeDtypeStruct((2, 4), jnp.float32))
    with pytest.raises(ValueError, match="different sizes"):
        gradix.make_jaxpr(f)(jnp.ones(3), jnp.ones((2, 4)))


def test_trees_statics_and_keywords():
    @gradix.jit
    def plain(p, n, k=1.0):
        return p["w"].sum() * n * k

    axes = {"w": ("rows", "columns"), "b": {0: "columns"}}, None
    f = gradix.jit(lambda p, n, k=1.0: plain(p, n, k), static_argnums=1, abstracted_axes=axes)
    assert f({"w": jnp.ones((2, 3)), "b": jnp.ones(3)}, 2, k=jnp.ones(())) == 12
    with pytest.raises(ValueError, match=r"'columns' .*args\[0\]\['b'\], and 3, axis 1 of args\[0\]\['w'\]"):
        f({"w": jnp.ones((2, 3)), "b": jnp.ones(2)}, 2)
    g = gradix.jit(lambda p: p[1] + p[2], abstracted_axes=("n",))  # a dict with numbers as keys, and None, as arguments
    assert g({1: jnp.ones(2), 2: np.ones(2), 3: None})[0] == 2


@pytest.mark.parametrize("axes", [3, "n", [1], ({0: "n"}, 3), {"x": {0: ["n"]}}, {0: None}, (("n", 2),)])
def test_what_names_no_axes_is_refused(axes):
    with pytest.raises(TypeError, match=r"abstracted_axes names axes .* got "):
        gradix.jit(dot, abstracted_axes=axes)


@pytest.mark.parametrize("axes", [({5: "n"}, {}), (("n", "m"), ("n",)), ({0: "n"},), ({0: "n"}, {}, {})])
def test_what_does_not_fit_the_arguments_is_refused(axes):
    with pytest.raises(ValueError, match="abstracted_axes of dot"):
        gradix.jit(dot, abstracted_axes=axes)(jnp.ones(3), jnp.ones(3))


def test_as_a_decorator_and_under_transformations():
    @gradix.jit(abstracted_axes={0: "n"})
    def f(x, y):
        return (x * y).sum()

    np.testing.assert_array_equal(gradix.grad(f)(jnp.ones(3), jnp.arange(3.0)), [0, 1, 2])
    np.testing.assert_array_equal(gradix.vmap(f)(jnp.ones((2, 3)), jnp.ones((2, 3))), [3, 3])
