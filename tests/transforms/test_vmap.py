"""vmap as documented: in_axes and out_axes as trees, keywords, sizes, names, what is shared, and errors."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from tests.same import assert_same

x3 = np.arange(3, dtype=np.float32) + 1
m23 = np.arange(6, dtype=np.float32).reshape(2, 3)


# -- the examples of the documentation ---------------------------------------------------------------------------------


def test_matrix_products_from_dot_products():
    a, b, c = 2, 3, 4
    x, y = np.arange(b * a, dtype=np.float32).reshape(b, a), np.arange(a * c, dtype=np.float32).reshape(a, c)
    mv = gradix.vmap(jnp.vdot, (0, None), 0)
    mm = gradix.vmap(mv, (None, 1), 1)
    assert_same(mv(x, y[:, 0]), x @ y[:, 0])
    assert_same(mm(x, y), x @ y)
    mv1, mv2 = gradix.vmap(jnp.vdot, (0, 0), 0), gradix.vmap(jnp.vdot, (0, 1), 0)
    assert_same(mv1(x, x), (x * x).sum(1))
    assert_same(mv2(x, x.T), (x * x).sum(1))
    assert_same(
        gradix.vmap(mv2, (1, 1), 0)(np.stack([x, 2 * x], 1), np.stack([x.T, x.T], 1)),
        [(x * x).sum(1), 2 * (x * x).sum(1)],
    )


def test_axes_in_containers():
    A, B, C, D, K = 2, 3, 4, 5, 6

    def f(tree):
        x, (y, z) = tree
        return jnp.dot(x, jnp.dot(y, z))

    tree = jnp.ones((K, A, B)), (jnp.ones((B, K, C)), jnp.ones((C, D, K)))
    assert gradix.vmap(f, in_axes=((0, (1, 2)),))(tree).shape == (K, A, D)
    g = gradix.vmap(lambda d, x: d["a"] + d["b"] + x, in_axes=({"a": None, "b": 0}, None))
    assert_same(g({"a": 0.0, "b": jnp.arange(5.0)}, 1.0), [1, 2, 3, 4, 5])
    assert_same(gradix.vmap(lambda t: t["a"] * t["b"], in_axes=({"a": 0, "b": None},))({"a": x3, "b": 2.0}), 2 * x3)
    assert_same(gradix.vmap(lambda p, x: p + x, in_axes=[0, None])(x3, 2.0), x3 + 2)


def test_unmapped_results():
    f = gradix.vmap(lambda x, y: (x + y, y * 2.0), in_axes=(0, None), out_axes=(0, None))
    mapped, shared = f(jnp.arange(2.0), 4.0)
    assert_same(mapped, [4, 5])
    assert shared == 8 and jnp.shape(shared) == ()
    assert_same(
        gradix.vmap(lambda x, y: (x + y, y * 2.0), in_axes=(0, None), out_axes=0)(jnp.arange(2.0), 4.0)[1], [8, 8]
    )


def test_collectives_over_the_name():
    xs = jnp.arange(12.0).reshape(3, 4)
    assert_same(gradix.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(xs), np.broadcast_to(xs.sum(0), (3, 4)))


# -- where axes go -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out", [0, 1, 2, -1, -3])
def test_every_axis(axis, out):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    got = gradix.vmap(lambda x: x * 2, axis, out)(x)
    assert_same(got, 2 * np.moveaxis(x, axis, out))
    assert_same(gradix.jit(gradix.vmap(lambda x: x * 2, axis, out))(x), got)


def test_out_axes_in_containers():
    got = gradix.vmap(lambda x: (x, {"a": x, "b": 3.0}), out_axes=(0, {"a": 1, "b": None}))(m23)
    assert_same(got[0], m23)
    assert_same(got[1]["a"], m23.T)
    assert_same(got[1]["b"], 3)
    assert_same(gradix.vmap(lambda x: (x, x), out_axes=1)(m23)[1], m23.T)
    assert_same(gradix.vmap(lambda x: 3.0, out_axes=-1)(m23), [3, 3])


def test_keywords_map_over_their_first_axis():
    assert_same(gradix.vmap(lambda x, s: x + s)(x3, s=x3), 2 * x3)
    assert_same(gradix.vmap(lambda x, s: x + s["k"], in_axes=(None,))(1.0, s={"k": x3}), x3 + 1)


def test_sizes():
    assert gradix.vmap(lambda x: x + 1)(np.zeros((0, 3))).shape == (0, 3)
    assert gradix.vmap(lambda x: x.sum())(np.zeros((0, 3))).shape == (0,)
    assert_same(gradix.vmap(lambda: 1.0, axis_size=3)(), [1, 1, 1])
    assert gradix.vmap(lambda: 1.0, axis_size=0)().shape == (0,)
    assert_same(gradix.vmap(lambda x: x, in_axes=None, axis_size=2)(5.0), [5, 5])
    assert_same(gradix.vmap(lambda x: x)(m23[:1]), m23[:1])


def test_what_is_shared_need_be_no_array():
    assert_same(gradix.vmap(lambda x, s: x * len(s), in_axes=(0, None))(x3, "abc"), 3 * x3)
    assert_same(gradix.vmap(lambda f, x: f(x), in_axes=(None, 0))(jnp.negative, x3), -x3)
    assert_same(
        gradix.vmap(lambda x, o: x + o["n"], in_axes=(0, {"n": None, "f": None}))(x3, {"n": 1, "f": len}), x3 + 1
    )
    got = gradix.vmap(lambda t: (t[0], None))((x3, None))
    assert_same(got[0], x3)
    assert got[1] is None


def test_nested():
    f = gradix.vmap(gradix.vmap(lambda x: lax.psum(x, ("i", "j")), axis_name="j"), axis_name="i")
    assert_same(f(m23), np.full((2, 3), 15))
    inner_wins = gradix.vmap(gradix.vmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")
    assert_same(inner_wins(m23), [[3, 3, 3], [12, 12, 12]])


def test_with_other_transformations():
    np.testing.assert_allclose(gradix.vmap(gradix.grad(jnp.sin))(x3), np.cos(x3), rtol=1e-6)
    np.testing.assert_allclose(gradix.grad(lambda x: gradix.vmap(jnp.sin)(x).sum())(x3), np.cos(x3), rtol=1e-6)
    per_example = gradix.vmap(gradix.grad(lambda w, x: (w * x).sum() ** 2), in_axes=(None, 0))(
        x3, np.stack([x3, 2 * x3])
    )
    np.testing.assert_allclose(per_example, [2 * 14 * x3, 4 * 28 * x3])
    assert_same(gradix.vmap(gradix.jit(lambda x: x * 2))(x3), 2 * x3)


def test_keys_are_mapped_as_the_scalars_they_are():
    keys = gradix.random.split(gradix.random.key(0), 3)
    assert_same(gradix.vmap(gradix.random.uniform)(keys), [gradix.random.uniform(k) for k in keys])


# -- errors ------------------------------------------------------------------------------------------------------------


def bad(f, *args, **options):
    return lambda: gradix.vmap(f, **options)(*args)


def two(first, second):
    return first


@pytest.mark.parametrize(
    "call, error, message",
    [
        (bad(two, np.ones(3), np.ones(4)), ValueError, r"inconsistent sizes(.|\n)*first.*size 3\n.*second.*size 4"),
        (bad(two, {"k": np.ones(3)}, np.ones(4)), ValueError, r"first\['k'\]"),
        (bad(lambda x: x, np.ones(4), axis_size=3), ValueError, "axis_size=3"),
        (bad(two, 1.0, np.ones(3)), ValueError, "along axis 0.*rank should be at least 1.*only 0: argument first"),
        (
            bad(two, m23, m23, in_axes=(0, 2)),
            ValueError,
            r"axis 2.*rank should be at least 3.*argument second.*\(2, 3\)",
        ),
        (bad(two, m23, m23, in_axes=-3), ValueError, "rank should be at least 3"),
        (bad(two, 1.0, 2.0, in_axes=None), ValueError, "at least one non-None value in in_axes"),
        (bad(two, x3, x3, in_axes=(0,)), ValueError, "1 entries.*2 positional arguments"),
        (bad(two, x3, x3, in_axes=(0, (0, 0))), ValueError, "tree prefix"),
        (bad(two, x3, x3, in_axes="i"), TypeError, "in_axes must be an int, None, or a tuple"),
        (bad(two, x3, x3, in_axes=1.0), TypeError, "in_axes must be an int"),
        (bad(two, x3, x3, in_axes=(0, "i")), TypeError, "'i' is of type str"),
        (bad(lambda x: x, x3, out_axes=None), ValueError, "out_axes is None.*depends on the mapped argument"),
        (
            bad(lambda x: (1, {"a": [x]}), x3, out_axes=(None, {"a": [None]})),
            ValueError,
            r"at vmap out_axes\[1\]\['a'\]\[0\], got axis spec None but output was batched on axis 0",
        ),
        (bad(lambda x: x, x3, out_axes=1), ValueError, "out_axes=1 is out of range"),
        (bad(lambda x: (x, x), x3, out_axes=(0,)), ValueError, "tree prefix"),
        (bad(lambda x: x, x3, out_axes="i"), TypeError, "out_axes must be an int"),
        (bad(lambda x: "text", x3), TypeError, "output is not an array"),
        (bad(lambda x: x, "text"), ValueError, "nothing is mapped"),
        (bad(lambda x: 1 if x > 0 else 0, x3), gradix.errors.TracerBoolConversionError, "lax.cond"),
        (lambda: gradix.vmap(3), TypeError, "expects a function"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
