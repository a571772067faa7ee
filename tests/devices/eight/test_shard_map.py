"""shard_map and the collectives: their definitions, derivatives, and what is wrong use."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import PartitionSpec as P
from tests.devices.eight.common import mesh, sharded

X = np.arange(32.0, dtype=np.float32).reshape(8, 4)
ROWS = np.arange(8.0, dtype=np.float32)
parts = X.reshape(4, 2, 4)  # of the four members along "x"


def mapped(f, ins, outs, **options):
    return gradix.shard_map(f, mesh=mesh(), in_specs=ins, out_specs=outs, **options)


def _permuted(pairs):
    out = np.zeros_like(parts)
    for s, t in pairs:
        out[t] = parts[s]
    return out


# Each collective over "x", and by NumPy what every member gets.
COLLECTIVES = {
    "psum": (lambda x: lax.psum(x, "x"), np.broadcast_to(parts.sum(0), parts.shape)),
    "pmean": (lambda x: lax.pmean(x, "x"), np.broadcast_to(parts.mean(0), parts.shape)),
    "pmax": (lambda x: lax.pmax(x, "x"), np.broadcast_to(parts.max(0), parts.shape)),
    "pmin": (lambda x: lax.pmin(x, "x"), np.broadcast_to(parts.min(0), parts.shape)),
    "psum in groups": (
        lambda x: lax.psum(x, "x", axis_index_groups=[[0, 3], [1, 2]]),
        np.stack([parts[0] + parts[3], parts[1] + parts[2]] * 1)[[0, 1, 1, 0]],
    ),
    "all_gather": (lambda x: lax.all_gather(x, "x"), np.broadcast_to(parts, (4, *parts.shape))),
    "all_gather tiled": (
        lambda x: lax.all_gather(x, "x", axis=1, tiled=True),
        np.broadcast_to(np.concatenate(list(parts), 1), (4, 2, 16)),
    ),
    "psum_scatter": (
        lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True),
        np.stack(np.split(parts.sum(0), 4, axis=1)),
    ),
    "psum_scatter whole": (lambda x: lax.psum_scatter(x, "x", scatter_dimension=1), parts.sum(0).T),
    "all_to_all": (
        lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True),
        np.stack([np.concatenate([p[:, i : i + 1] for p in parts], 0) for i in range(4)]),
    ),
    "all_to_all whole": (lambda x: lax.all_to_all(x, "x", 1, 0), parts.transpose(2, 0, 1)),
    "ppermute": (lambda x: lax.ppermute(x, "x", [(0, 1), (1, 2), (2, 3)]), _permuted([(0, 1), (1, 2), (2, 3)])),
    "pshuffle": (lambda x: lax.pshuffle(x, "x", [2, 0, 3, 1]), parts[[2, 0, 3, 1]]),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "x", 2), np.broadcast_to(parts[2], parts.shape)),
    "axis_index": (lambda x: x + lax.axis_index("x"), parts + np.arange(4).reshape(4, 1, 1)),
}


@pytest.mark.parametrize("checked", [True, False])
def test_collectives_are_their_definitions_and_so_are_their_gradients(checked):
    wrong = []
    names = list(COLLECTIVES)

    def every(x):
        outs = [COLLECTIVES[n][0](x) for n in names]
        return [
            (lax.pcast(o, "x", to="varying") if checked and "x" not in gradix.typeof(o).vma else o)[None] for o in outs
        ]

    whole = mapped(every, P("x"), P("x"), check_vma=checked)
    for n, got in zip(names, gradix.jit(whole)(X)):
        if not np.allclose(got, COLLECTIVES[n][1], rtol=1e-6):
            wrong.append(n)
    assert not wrong

    weights = [np.random.RandomState(i).randn(*COLLECTIVES[n][1].shape).astype("f") for i, n in enumerate(names)]
    loss = lambda f: lambda x: [(o * w).sum() for o, w in zip(f(x), weights)]  # noqa: E731
    plain = lambda x: gradix.vmap(lambda v: [COLLECTIVES[n][0](v) for n in names], axis_name="x")(x.reshape(4, 2, 4))  # noqa: E731
    ours = gradix.jit(gradix.jacrev(loss(whole)))(X)
    want = gradix.jit(gradix.jacrev(loss(plain)))(X)
    for n, a, b in zip(names, ours, want):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg=n)


def test_types_tell_what_varies():
    seen = []
    f = mapped(
        lambda x, w: (seen.append((gradix.typeof(x), gradix.typeof(w))), lax.psum(x * w, "x"))[1],
        (P("x", "y"), P()),
        P(None, "y"),
    )
    text = str(gradix.make_jaxpr(f)(X, np.float32(2)))
    assert str(seen[0]) == "(ShapedArray(float32[2,2]{V:(x,y)}), ShapedArray(float32[]))"
    assert "pvary[axes=('x', 'y')]" in text and "psum_invariant[axes=('x',)]" in text
    np.testing.assert_array_equal(f(X, np.float32(2)), 2 * parts.sum(0))


def test_gradients_inside_add_up_what_all_contribute():
    f = lambda w, x: gradix.grad(lambda w: ((w * x) ** 2).sum())(w)  # noqa: E731
    np.testing.assert_allclose(mapped(f, (P(), P("x")), P())(np.float32(2), ROWS), 4 * (ROWS**2).sum())
    square = lambda x: gradix.grad(lambda y: lax.psum(y * y, "x"))(x[0])[None]  # noqa: E731
    np.testing.assert_array_equal(mapped(square, P("x"), P("x"))(ROWS[:4]), 2 * ROWS[:4])
    np.testing.assert_array_equal(mapped(square, P("x"), P("x"), check_vma=False)(ROWS[:4]), 8 * ROWS[:4])


def test_transformations_of_the_whole():
    def body(w, x):
        return lax.psum(lax.scan(lambda c, y: (jnp.sin(c * w) + y, c), w, x)[1].sum(), "x")

    def plain(w, x):
        return sum(lax.scan(lambda c, y: (jnp.sin(c * w) + y, c), w, row)[1].sum() for row in x.reshape(4, 2))

    f, w = mapped(body, (P(), P("x")), P()), np.float32(0.5)
    both = lambda t: np.testing.assert_allclose(
        *[np.concatenate([np.ravel(v) for v in gradix.tree.leaves(t(g))]) for g in (f, plain)],  # noqa: E731
        rtol=1e-4,
        atol=1e-5,
    )
    both(lambda g: gradix.jit(g)(w, ROWS))
    both(lambda g: gradix.jit(gradix.grad(g, (0, 1)))(w, ROWS))
    both(lambda g: gradix.grad(gradix.checkpoint(g), (0, 1))(w, ROWS))
    both(lambda g: gradix.jit(gradix.vmap(g, (0, None)))(np.array([0.5, 0.7], "f"), ROWS))
    both(lambda g: gradix.jit(lambda: gradix.jvp(g, (w, ROWS), (w, ROWS)))())
    both(lambda g: gradix.jit(gradix.jacfwd(gradix.grad(g)))(w, ROWS))


def test_loops_make_the_first_carry_vary():
    f = mapped(lambda x: lax.scan(lambda c, y: (c + y, y), jnp.zeros(()), x)[0][None], P("x"), P("x"))
    np.testing.assert_array_equal(f(ROWS), ROWS.reshape(4, 2).sum(1))
    g = mapped(
        lambda x: lax.while_loop(lambda c: lax.pmin(c, "x") < 3, lambda c: c + x.sum(), jnp.float32(0))[None],
        P("x"),
        P("x"),
    )
    np.testing.assert_array_equal(g(np.ones(8, "f")), [4] * 4)


def test_some_axes_left_to_the_compiler_and_one_inside_another():
    f = gradix.shard_map(
        lambda x: lax.psum(x, "x") * 2 + lax.axis_index("x"),
        mesh=mesh(),
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    want = (2 * ROWS.reshape(4, 2).sum(0)[None] + np.arange(4)[:, None]).reshape(-1)
    np.testing.assert_array_equal(gradix.jit(f)(sharded(ROWS, mesh(), "y")), want)
    inner = lambda x: gradix.shard_map(
        lambda y: lax.psum(y, "y"), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"}
    )(x)  # noqa: E731
    g = gradix.shard_map(
        lambda x: inner(x) * lax.axis_index("x"), mesh=mesh(), in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )
    want = (parts[..., :2] + parts[..., 2:]) * np.arange(4).reshape(4, 1, 1)
    np.testing.assert_array_equal(gradix.jit(g)(X), want.reshape(8, 2))
    np.testing.assert_array_equal(
        gradix.grad(lambda x: g(x).sum())(X), np.repeat(np.arange(4.0), 2)[:, None] * np.ones((8, 4))
    )


def test_calls_callbacks_and_rules_inside():
    @gradix.custom_vjp
    def sine(x):
        return jnp.sin(x)

    sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x) * 3,))
    f = mapped(lambda x: lax.psum(gradix.jit(sine)(x), "x"), P("x"), P())
    np.testing.assert_allclose(gradix.grad(lambda x: f(x).sum())(ROWS), 3 * np.cos(ROWS), rtol=1e-5)
    g = mapped(lambda x: gradix.pure_callback(lambda v: np.asarray(v) + 1, x, x), P("x"), P("x"))
    np.testing.assert_array_equal(g(ROWS), ROWS + 1)
    h = mapped(lambda x: gradix.vmap(lambda y: lax.psum(y, ("x", "v")), axis_name="v")(x), P("x"), P())
    np.testing.assert_array_equal(h(ROWS[:, None]), [[28.0]] * 2)
    k = mapped(lambda x: jnp.linalg.cholesky(x.reshape(2, 2) + 3 * jnp.eye(2)), P("x"), P("x"))
    np.testing.assert_allclose(k(jnp.ones(16))[:2], np.linalg.cholesky(np.ones((2, 2)) + 3 * np.eye(2)), rtol=1e-5)


MAPS = functools.partial(mapped, lambda x: x * 2)


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (lambda: MAPS(P("x"), P())(ROWS), ValueError, "can't be statically inferred"),
        (lambda: MAPS(P("x"), P("x", "y"))(ROWS), ValueError, "out_specs entry which is too long"),
        (lambda: MAPS(P("x", "y"), P("x"))(ROWS), ValueError, "in_specs entry which is too long"),
        (lambda: MAPS(P("x"), P("x"))(ROWS[:7]), ValueError, "4 does not evenly divide 7"),
        (lambda: MAPS(P("z"), P("x"))(ROWS), ValueError, "refers to 'z'"),
        (lambda: MAPS((P(), P()), P("x"))(ROWS), ValueError, "length 2"),
        (lambda: MAPS("x", P("x"))(ROWS), TypeError, "PartitionSpec"),
        (lambda: mapped(lambda x: lax.psum(x, "q"), P("x"), P("x"))(ROWS), NameError, "unbound axis name: q"),
        (lambda: lax.psum(ROWS, "x"), NameError, "unbound axis name: x"),
        (
            lambda: gradix.shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x"))(ROWS),
            ValueError,
            "context mesh cannot be empty",
        ),
        (
            lambda: mapped(lambda x: lax.cond(x.sum() > 1, lambda: x[0], lambda: jnp.float32(0))[None], P("x"), P("x"))(
                ROWS
            ),
            TypeError,
            "manual axis types do not match",
        ),
        (lambda: mapped(lambda x: lax.pcast(x, "x", to="varying"), P("x"), P("x"))(ROWS), ValueError, "varies over"),
    ],
)
def test_wrong_use(call, kind, match):
    with pytest.raises(kind, match=match):
        call()


def test_each_device_gets_a_ref_to_its_part_of_a_mutable_array():
    def step(ref, x, n):
        ref[...] = n * ref[...] + lax.axis_index("x")
        return ref[...].sum()[None] + x

    stepped = mapped(step, (P("x"), P(), None), P("x"))
    for wrap in (lambda f: f, gradix.jit):
        ref = gradix.new_ref(jnp.arange(8.0))
        sums = wrap(lambda r, x: stepped(r, x, 2))(ref, jnp.float32(1))
        np.testing.assert_array_equal(ref[...], [0, 2, 5, 7, 10, 12, 15, 17])
        np.testing.assert_array_equal(sums, [3, 13, 23, 33])
        part = ref.at[:4]
        wrap(lambda r: stepped(r, jnp.float32(1), 2))(part)
        np.testing.assert_array_equal(ref[...], [0, 5, 12, 17, 10, 12, 15, 17])
    with pytest.raises(ValueError, match="in_specs of a mutable array"):
        mapped(step, P(), P("x"))(ref, jnp.float32(1), 2)


def test_arguments_without_a_spec_are_any_objects():
    class Unhashable:
        __hash__ = None

    def filled(x, shape, _):
        return x * jnp.ones(shape["of"])

    function = mapped(filled, (P("x"), None, None), P("x"))
    out = function(jnp.arange(4.0), {"of": (2, 1)}, Unhashable())
    np.testing.assert_array_equal(out[:, 0], [0, 0, 1, 1, 2, 2, 3, 3])


@pytest.mark.parametrize("check_vma", [True, False])
def test_policies_of_checkpoint_choose_what_is_kept_of_parts(check_vma):
    mesh = gradix.make_mesh((4, 2), ("x", "y"), axis_types=(gradix.sharding.AxisType.Auto,) * 2)

    def part(a, w):
        s = jnp.sin(a * w)
        total = lax.psum(s.sum(), "y")
        return jnp.cos(s) * total + jnp.exp(total)

    f = gradix.shard_map(part, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=check_vma)
    x, w = (np.linspace(a, 1, 8, dtype="f").reshape(4, 2) for a in (0.0, 0.5))
    want = gradix.jit(gradix.grad(lambda x, w: (f(x, w) ** 2).sum(), (0, 1)))(x, w)
    sines = lambda prim, *_, **__: str(prim) == "sin"  # noqa: E731
    for policy, again in (
        (sines, 0),
        (gradix.checkpoint_policies.nothing_saveable, 2),
    ):  # one is of the derivative of cos
        g = gradix.checkpoint(f, policy=policy)
        have = gradix.jit(gradix.grad(lambda x, w: (g(x, w) ** 2).sum(), (0, 1)))(x, w)  # noqa: B023
        for h, v in zip(have, want):
            np.testing.assert_allclose(h, v, rtol=1e-5)
        assert str(gradix.vjp(g, x, w)[1].jaxpr).count(" sin ") == again


def test_policies_of_checkpoint_reach_into_pmap():
    f = gradix.pmap(lambda x: jnp.sin(jnp.sin(x)))
    x = np.arange(4, dtype="f")
    for name, again in (("sin", (0, 2)), ("cos", (0, 0)), ("none", (1, 2))):
        g = gradix.checkpoint(f, policy=lambda prim, *_, **__: str(prim) == name)  # noqa: B023
        program = str(gradix.vjp(g, x)[1].jaxpr)
        assert (program.count(" sin "), program.count(" cos ")) == again
