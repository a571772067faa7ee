"""Collectives over vmap's named axes against NumPy: values, groups, nesting, derivatives, and inside control flow."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from tests.same import assert_same

x3 = np.arange(3, dtype=np.float32) + 1
x33 = np.arange(9, dtype=np.float32).reshape(3, 3) + 0.5
weights = np.array([2, -1, 0.5], np.float32)


def over(f, x, **options):
    return gradix.vmap(f, axis_name="i", **options)(x)


def stacked(f):
    """Of a function of all members' values x[i, ...], its value for each member."""
    return lambda x: np.stack([f(x, i) for i in range(len(x))])


# name -> (what one member does, what it gets given all members' values)
CASES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda x, i: x.sum(0)),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda x, i: x.mean(0)),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda x, i: x.max(0)),
    "pmin": (lambda x: lax.pmin(x, "i"), lambda x, i: x.min(0)),
    "all_gather": (lambda x: lax.all_gather(x, "i"), lambda x, i: x),
    "all_gather axis 1": (lambda x: lax.all_gather(x, "i", axis=1), lambda x, i: np.moveaxis(x, 0, 1)),
    "all_gather axis -1": (lambda x: lax.all_gather(x, "i", axis=-1), lambda x, i: np.moveaxis(x, 0, -1)),
    "all_gather tiled": (lambda x: lax.all_gather(x, "i", tiled=True), lambda x, i: np.concatenate(x)),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), lambda x, i: x.sum(0)[i]),
    "psum_scatter tiled": (lambda x: lax.psum_scatter(x, "i", tiled=True), lambda x, i: np.split(x.sum(0), 3)[i]),
    "psum_scatter dimension -1": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=-1),
        lambda x, i: x.sum(0)[..., i],
    ),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), lambda x, i: x[:, i]),
    "all_to_all to the end": (lambda x: lax.all_to_all(x, "i", 0, -1), lambda x, i: np.moveaxis(x[:, i], 0, -1)),
    "all_to_all tiled": (
        lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
        lambda x, i: np.concatenate([np.split(m, 3)[i] for m in x]),
    ),
    "ppermute": (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), lambda x, i: x[i - 1]),
    "ppermute in part": (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), lambda x, i: x[i - 1] if i else 0 * x[0]),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [2, 0, 1]), lambda x, i: x[[2, 0, 1][i]]),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), lambda x, i: x[:, i]),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 1), lambda x, i: x[1]),
    "axis_index": (lambda x: x * lax.axis_index("i"), lambda x, i: i * x[i]),
    "axis_size": (lambda x: x * lax.axis_size("i"), lambda x, i: 3 * x[i]),
}
LINEAR = {k: v for k, v in CASES.items() if k not in ("pmax", "pmin")}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    f, reference = CASES[name]
    assert_same(over(f, x33), stacked(reference)(x33))
    assert_same(gradix.jit(lambda x: over(f, x))(x33), stacked(reference)(x33))
    assert_same(over(gradix.jit(f), x33), stacked(reference)(x33))
    assert_same(
        over(lambda x: f(jnp.asarray(x33[0])), x33), stacked(reference)(np.stack([x33[0]] * 3))
    )  # the same for all


@pytest.mark.parametrize("name", CASES)
def test_another_mapped_axis(name):
    f, reference = CASES[name]
    big = np.stack([x33, 2 * x33 + 1], -1)  # (member, 3, other)
    want = np.stack([stacked(reference)(big[..., k]) for k in range(2)])
    inner = gradix.vmap(lambda x: over(f, x), in_axes=2)(big)
    outer = over(gradix.vmap(f, in_axes=1, out_axes=0), big, out_axes=1)
    assert_same(inner, want)
    assert_same(outer, want)
    assert_same(over(gradix.vmap(f, in_axes=1, out_axes=0, axis_name="k"), big, out_axes=1), want)


def numeric_pull(reference, x, ct):
    """The adjoint of a linear function of all members' values, one unit vector at a time."""
    out = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        unit = np.zeros_like(x)
        unit[at] = 1
        out[at] = (stacked(reference)(unit) * ct).sum()
    return out


@pytest.mark.parametrize("name", LINEAR)
def test_derivatives_of_all_members(name):
    f, reference = CASES[name]
    y = stacked(reference)(x33)
    ct = np.arange(y.size, dtype=np.float32).reshape(y.shape) - 3
    assert_same(gradix.jvp(lambda x: over(f, x), (x33,), (2 * x33,)), (y, 2 * y))
    want = numeric_pull(reference, x33, ct)
    assert_same(gradix.vjp(lambda x: over(f, x), x33)[1](ct)[0], want)
    assert_same(gradix.jit(gradix.grad(lambda x: (over(f, x) * ct).sum()))(x33), want)
    assert_same(gradix.grad(lambda x: (over(gradix.jit(f), x) * ct).sum())(x33), want)


@pytest.mark.parametrize("name", LINEAR)
def test_derivatives_of_each_member(name):
    """Inside the mapped function: the sum over members of what their results owe to one's value."""
    f, reference = CASES[name]
    y = stacked(reference)(x33)
    want = numeric_pull(reference, x33, 2 * y)
    assert_same(over(gradix.grad(lambda x: (f(x) ** 2).sum()), x33), want)
    assert_same(over(gradix.grad(gradix.jit(lambda x: (f(x) ** 2).sum())), x33), want)
    assert_same(over(lambda x: gradix.jvp(f, (x,), (2 * x,))[1], x33), 2 * y)


def test_derivatives_of_extremes_go_to_who_attains_them():
    assert_same(gradix.grad(lambda x: over(lambda v: lax.pmax(v, "i"), x)[0])(x3), np.array([0, 0, 1]))
    assert_same(gradix.grad(lambda x: over(lambda v: lax.pmin(v, "i"), x)[0])(x3), np.array([1, 0, 0]))
    assert_same(gradix.jvp(lambda x: over(lambda v: lax.pmax(v, "i"), x), (x3,), (x3 * 2,))[1], np.full(3, 6))


# -- groups, numbers, trees, dtypes ------------------------------------------------------------------------------------


def test_groups():
    x, groups = np.arange(4, dtype=np.float32), [[0, 2], [3, 1]]
    of = {i: g for g in groups for i in g}
    for f, r in ((lax.psum, np.sum), (lax.pmax, np.max), (lax.pmin, np.min), (lax.pmean, np.mean)):
        assert_same(over(lambda v: f(v, "i", axis_index_groups=groups), x), np.array([r(x[of[i]]) for i in range(4)]))
    assert_same(
        over(lambda v: lax.all_gather(v, "i", axis_index_groups=groups), x), np.stack([x[of[i]] for i in range(4)])
    )
    assert_same(
        gradix.grad(lambda x: (over(lambda v: lax.psum(v, "i", axis_index_groups=groups), x) * x).sum())(x),
        2 * np.array([x[of[i]].sum() for i in range(4)]),
    )


@pytest.mark.x32
def test_numbers_trees_and_dtypes():
    got = over(lambda x: lax.psum({"a": x, "n": 2, "f": 1.5, "none": None}, "i"), x3)
    assert_same(got, {"a": np.full(3, 6), "n": np.full(3, 6), "f": np.full(3, 4.5), "none": None})
    assert got["n"].dtype == np.int32 and over(lambda x: lax.psum(x > 1, "i"), x3).dtype == np.int32
    assert over(lambda x: lax.pmean(x, "i"), np.arange(4)).dtype == np.float32
    assert over(lambda x: lax.pmean(x, "i"), x3.astype(np.float16)).dtype == np.float16
    assert isinstance(over(lambda x: x * isinstance(lax.psum(1, "i"), int), x3), gradix.Array)
    sizes = []
    over(lambda x: sizes.append((lax.psum(1, "i"), lax.axis_size("i"))) or x, x3)
    assert sizes == [(3, 3)]


def test_several_axes():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    both = lambda f: gradix.vmap(gradix.vmap(f, axis_name="j"), axis_name="i")(x)
    assert_same(both(lambda v: lax.psum(v, ("i", "j"))), np.full((2, 3), 15))
    assert_same(both(lambda v: lax.psum(lax.psum(v, "i"), "j")), np.full((2, 3), 15))
    assert_same(both(lambda v: lax.psum(v, "i")), np.broadcast_to(x.sum(0), (2, 3)))
    assert_same(both(lambda v: lax.pmax(v, ("j", "i"))), np.full((2, 3), 5))
    assert_same(both(lambda v: lax.axis_index(("i", "j"))), x)
    assert_same(both(lambda v: lax.axis_index("j") - lax.axis_index("i")), np.arange(3)[None] - np.arange(2)[:, None])
    assert_same(
        gradix.grad(
            lambda x: (
                gradix.vmap(gradix.vmap(lambda v: lax.psum(v, ("i", "j")), axis_name="j"), axis_name="i")(x) * x
            ).sum()
        )(x),
        np.full((2, 3), 30),
    )


JOINT = {  # over names ("i", "j") of sizes 2 and 3: what one member does; what it gets of all 6, by joint index
    "all_gather": (lambda v: lax.all_gather(v, ("i", "j")), lambda x, m: x),
    "all_gather axis 1": (lambda v: lax.all_gather(v, ("i", "j"), axis=1), lambda x, m: x.T),
    "all_gather tiled": (lambda v: lax.all_gather(v, ("i", "j"), tiled=True), lambda x, m: x.ravel()),
    "psum_scatter": (lambda v: lax.psum_scatter(v, ("i", "j")), lambda x, m: x.sum(0)[m]),
    "psum_scatter tiled": (
        lambda v: lax.psum_scatter(jnp.tile(v, 2), ("i", "j"), tiled=True),
        lambda x, m: np.split(np.tile(x.sum(0), 2), 6)[m],
    ),
    "all_to_all": (lambda v: lax.all_to_all(v, ("i", "j"), 0, 0), lambda x, m: x[:, m]),
    "ppermute": (
        lambda v: lax.ppermute(v, ("i", "j"), [(0, 1), (1, 2), (2, 5), (5, 0)]),
        lambda x, m: {1: x[0], 2: x[1], 5: x[2], 0: x[5]}.get(m, 0 * x[0]),
    ),
    "pshuffle": (lambda v: lax.pshuffle(v, ("i", "j"), [2, 0, 1, 5, 4, 3]), lambda x, m: x[[2, 0, 1, 5, 4, 3][m]]),
    "axis_index": (lambda v: v * lax.axis_index(("i", "j")), lambda x, m: m * x[m]),
}


@pytest.mark.parametrize("name", JOINT)
def test_joint_axes(name):
    f, reference = JOINT[name]
    x = np.arange(36, dtype=np.float32).reshape(6, 6) + 0.5
    mapped = gradix.vmap(gradix.vmap(f, axis_name="j"), axis_name="i")
    run = lambda x: mapped(x.reshape(2, 3, 6))
    want = stacked(reference)(x)
    assert_same(run(x), want.reshape(2, 3, *want.shape[1:]))
    assert_same(gradix.jit(run)(x), want.reshape(2, 3, *want.shape[1:]))
    ct = np.cos(np.arange(want.size, dtype=np.float32)).reshape(want.shape)
    assert_same(
        gradix.vjp(run, jnp.asarray(x))[1](ct.reshape(2, 3, *want.shape[1:]))[0], numeric_pull(reference, x, ct), 1e-3
    )


GROUPS = [[0, 2], [3, 1]]
GROUP_OF = {i: g for g in GROUPS for i in g}
GROUPED = {
    "psum_scatter": (
        lambda v: lax.psum_scatter(v[:2], "i", axis_index_groups=GROUPS),
        lambda x, m: x[GROUP_OF[m]].sum(0)[GROUP_OF[m].index(m)],
    ),
    "psum_scatter tiled": (
        lambda v: lax.psum_scatter(v, "i", axis_index_groups=GROUPS, tiled=True),
        lambda x, m: np.split(x[GROUP_OF[m]].sum(0), 2)[GROUP_OF[m].index(m)],
    ),
    "all_to_all": (
        lambda v: lax.all_to_all(v[:2], "i", 0, 0, axis_index_groups=GROUPS),
        lambda x, m: x[GROUP_OF[m], GROUP_OF[m].index(m)],
    ),
    "all_to_all tiled": (
        lambda v: lax.all_to_all(v, "i", 0, 0, axis_index_groups=GROUPS, tiled=True),
        lambda x, m: np.concatenate([np.split(r, 2)[GROUP_OF[m].index(m)] for r in x[GROUP_OF[m]]]),
    ),
}


@pytest.mark.parametrize("name", GROUPED)
def test_exchange_in_groups(name):
    f, reference = GROUPED[name]
    x = np.arange(16, dtype=np.float32).reshape(4, 4) + 0.5
    want = stacked(reference)(x)
    assert_same(over(f, x), want)
    ct = np.cos(np.arange(want.size, dtype=np.float32)).reshape(want.shape)
    assert_same(gradix.vjp(lambda x: over(f, x), jnp.asarray(x))[1](ct)[0], numeric_pull(reference, x, ct), 1e-3)


def test_named_and_positional_axes_together():
    assert_same(over(lambda x: lax.psum(x, ("i", 0)), x33), np.full(3, x33.sum()))
    assert_same(over(lambda x: lax.pmax(x, (-1, "i")), x33), np.full(3, x33.max()))


# -- inside other functions --------------------------------------------------------------------------------------------


def test_control_flow():
    assert_same(
        over(lambda x: lax.scan(lambda c, t: (c + lax.psum(x * t, "i"), c), 0.0, jnp.arange(3.0))[0], x3),
        np.full(3, 18),
    )
    assert_same(
        over(lambda x: lax.cond(x > 1, lambda v: v * 0 + lax.psum(v, "i"), lambda v: v, x), x3), np.array([1, 6, 6])
    )
    assert_same(over(lambda x: lax.cond(True, lambda v: lax.psum(v, "i"), lambda v: v, x), x3), np.full(3, 6))
    assert_same(over(lambda x: lax.while_loop(lambda c: lax.psum(c, "i") < 100.0, lambda c: c * 2, x), x3), 32 * x3)
    assert_same(
        over(lambda x: lax.fori_loop(0, 3, lambda i, c: c + lax.axis_index("i") + lax.psum(c, "i"), x), x3),
        np.array([145, 149, 153]),
    )
    step = lambda x: lax.scan(lambda c, _: (lax.psum(c * x, "i"), None), x, None, length=2)[0]
    eps = 1e-2
    slope = [
        (over(step, x3 + eps * e).sum() - over(step, x3 - eps * e).sum()) / (2 * eps)
        for e in np.eye(3, dtype=np.float32)
    ]
    np.testing.assert_allclose(gradix.grad(lambda x: over(step, x).sum())(x3), slope, rtol=1e-3)
    np.testing.assert_allclose(
        gradix.jit(gradix.grad(lambda x: over(gradix.checkpoint(step), x).sum()))(x3), slope, rtol=1e-3
    )


def test_custom_rules():
    @gradix.custom_vjp
    def f(x):
        return lax.psum(x, "i")

    f.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, ct: (ct * lax.axis_index("i"),))
    assert_same(gradix.grad(lambda x: over(f, x).sum())(x3), np.arange(3))


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: lax.psum(1.0, "i"), NameError, "unbound axis name: i.*axis_name='i'"),
        (lambda: lax.axis_index("i"), NameError, "unbound axis name: i"),
        (lambda: lax.axis_size("i"), NameError, "unbound axis name: i"),
        (lambda: gradix.jit(lambda x: lax.psum(x, "q"))(1.0), NameError, "unbound axis name: q"),
        (lambda: over(lambda x: lax.psum(x, "k"), x3), NameError, "unbound axis name: k. Named axes bound here: 'i'"),
        (lambda: gradix.jit(lambda x: gradix.make_jaxpr(lambda x: lax.all_gather(x, "q"))(x))(1.0), NameError, "q"),
        (
            lambda: over(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [1, 2]]), np.arange(4.0)),
            ValueError,
            "exactly once",
        ),
        (
            lambda: over(lambda x: lax.psum(x, "i", axis_index_groups=[[0], [1, 2]]), x3),
            NotImplementedError,
            "different sizes",
        ),
        (lambda: over(lambda x: lax.psum_scatter(x, "i"), np.ones((3, 2))), ValueError, "size 3, got 2"),
        (
            lambda: over(lambda x: lax.psum_scatter(x, "i", tiled=True), np.ones((3, 2))),
            ValueError,
            "(divide into 3|into 3 equal)",
        ),
        (lambda: over(lambda x: lax.all_to_all(x, "i", 0, 0), np.ones((3, 2))), ValueError, "size 3"),
        (
            lambda: over(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), np.ones((3, 2))),
            ValueError,
            "(divide into 3|into 3 equal)",
        ),
        (lambda: over(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), x3), ValueError, "unique"),
        (lambda: over(lambda x: lax.ppermute(x, "i", [(0, 7)]), x3), ValueError, r"within \[0, 3\)"),
        (lambda: over(lambda x: lax.pshuffle(x, "i", [0, 0, 1]), x3), ValueError, "permutation"),
        (lambda: over(lambda x: lax.psum("s", "i"), x3), TypeError, "is not an array"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
