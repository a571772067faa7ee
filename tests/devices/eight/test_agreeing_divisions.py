"""Types that must say the same division: carries, branches, mapped axes, moved sums; and what is refused."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._base.config import override
from gradix.sharding import AxisType, NamedSharding, PartitionSpec as P, reshard


@pytest.fixture(autouse=True)
def mesh():
    made = gradix.make_mesh((4, 2), ("x", "y"))
    with gradix.set_mesh(made):
        yield made


def divided(*spec, shape=(8, 4)):
    return gradix.device_put(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), P(*spec))


LOOPS = {
    "scan": lambda x: lax.scan(lambda c, _: (reshard(c, P()), None), x, None, length=2)[0],
    "while_loop": lambda x: lax.while_loop(lambda c: c.sum() < 3, lambda c: reshard(c, P()), x),
    "fori_loop": lambda x: lax.fori_loop(0, 2, lambda i, c: reshard(c, P()), x),
    "cond": lambda x: lax.cond(x.sum() > 1, lambda c: reshard(c, P()), lambda c: c, x),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", LOOPS)
def test_carries_and_branches_keep_their_division(name, jitted):
    f = gradix.jit(LOOPS[name]) if jitted else LOOPS[name]
    with pytest.raises(TypeError, match="equal"):
        f(divided("x"))
    assert f(divided()).shape == (8, 4)


@pytest.mark.parametrize("loop", [lambda x: lax.scan(lambda c, r: (c, r), 0, x), lambda x: lax.map(jnp.sin, x)])
def test_rows_of_a_divided_axis_are_refused(loop):
    with pytest.raises(ValueError, match="0th dimension of all xs should be replicated") as e:
        gradix.jit(loop)(divided("x", "y"))
    assert "reshard(xs, P(None, 'y'))" in str(e.value)
    gradix.jit(loop)(divided(None, "y"))


@pytest.mark.parametrize("other", [lambda: divided(), lambda: divided("y"), lambda: np.ones((8, 4), np.float32)])
def test_mapped_axes_are_divided_in_the_same_way(other):
    f = gradix.jit(gradix.vmap(lambda a, b: (a, b)))
    with pytest.raises(ValueError, match="divided differently"):
        f(divided("x"), other())
    assert [r.sharding.spec for r in f(divided("x"), divided("x", "y"))] == [P("x", None), P("x", "y")]


MOVES = {
    "reshape": lambda x, s: jnp.reshape(x, (4, 2), out_sharding=s),
    "ravel": lambda x, s: jnp.ravel(x, out_sharding=s),
    "lax.reshape": lambda x, s: lax.reshape(x, (4, 2), out_sharding=s),
    "broadcast_to": lambda x, s: jnp.broadcast_to(x, (3, 8), out_sharding=s),
}


@pytest.mark.parametrize("kind", ["unreduced", "reduced"])
@pytest.mark.parametrize("name", MOVES)
def test_moved_elements_are_summed_over_the_same_axes(name, kind):
    spec = P(**{kind: {"x"}})
    with pytest.raises(ValueError, match=f"cannot contain {kind}"):
        MOVES[name](np.arange(8.0), spec)
    held = reshard(jnp.arange(8.0), spec)
    with pytest.raises(ValueError, match=f"must be {kind} over the same mesh axes as operand"):
        MOVES[name](held, P("y" if name != "broadcast_to" else None))
    got = MOVES[name](held, spec)
    assert getattr(got.sharding.spec, kind) == {"x"}
    np.testing.assert_array_equal(reshard(got, P()), MOVES[name](jnp.arange(8.0), None))


def test_pieces_of_a_summand_are_summands():
    held = reshard(jnp.arange(8.0), P(unreduced={"x"}))
    pieces = gradix.jit(lambda x: lax.split(x, (3, 5)))(held)
    assert [p.sharding.spec.unreduced for p in pieces] == [{"x"}, {"x"}]
    np.testing.assert_array_equal(reshard(pieces[1], P()), np.arange(3.0, 8.0))

    def total(x):
        a, b = lax.split(x, (4, 4))
        return reshard(a * 2.0 + b, P()).sum()

    got = gradix.jit(gradix.grad(total))(held)
    assert got.sharding.spec.reduced == {"x"}
    np.testing.assert_array_equal(got, [2.0] * 4 + [1.0] * 4)


def test_open_entries_need_an_axis_that_the_compiler_decides_about(mesh):
    with pytest.raises(ValueError, match="cannot contain `P.UNCONSTRAINED`"):
        NamedSharding(mesh, P(P.UNCONSTRAINED))
    half = gradix.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
    assert NamedSharding(half, P(P.UNCONSTRAINED)).spec == P(P.UNCONSTRAINED)


def test_a_constraint_that_the_type_fulfils_is_no_operation():
    f = gradix.jit(lambda x: lax.with_sharding_constraint(x, P("x")))
    assert not f.trace(divided("x")).jaxpr.eqns
    with pytest.raises(AssertionError, match="acts as an assert"):
        f(divided())


def auto(sizes, names):
    return gradix.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))


@pytest.mark.parametrize("name", ["x", ("y", "x")])
def test_examples_are_not_divided_over_an_axis_of_the_function(name):
    mesh = auto((4, 2), ("x", "y"))
    of_rows = gradix.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    wider = gradix.shard_map(jnp.sin, mesh=mesh, in_specs=P("y"), out_specs=P(("x", "y")), check_vma=False)
    rows = np.arange(32.0, dtype="float32").reshape(4, 8)
    with gradix.set_mesh(mesh):
        for f in (of_rows, wider):
            with pytest.raises(ValueError, match="spmd_axis_name cannot appear in shard_map"):
                gradix.jit(gradix.vmap(f, spmd_axis_name=name))(rows)
        with override("jax_disable_vmap_shmap_error", True):
            np.testing.assert_allclose(gradix.vmap(of_rows, spmd_axis_name=name)(rows), np.sin(rows), rtol=1e-6)
        np.testing.assert_allclose(gradix.vmap(of_rows, spmd_axis_name="y")(rows), np.sin(rows), rtol=1e-6)


@pytest.mark.parametrize("jitted", [False, True])
def test_values_are_not_made_to_vary_where_that_is_off(jitted):
    f = gradix.smap(lambda x, y: x * y, in_axes=(0, None), out_axes=0, axis_name="x")
    f = gradix.jit(f) if jitted else f
    x, y = divided("x"), divided(shape=(2, 4))
    with gradix.auto_pcast(False), pytest.raises(ValueError, match="requires varying manual axes to match"):
        f(x, y)
    np.testing.assert_array_equal(f(x, y), np.asarray(x) * np.tile(y, (4, 1)))

    def cast(x, y):
        return x * lax.pcast(y, "x", to="varying")

    with gradix.auto_pcast(False):
        got = gradix.jit(gradix.smap(cast, in_axes=(0, None), out_axes=0, axis_name="x"))(x, y)
    np.testing.assert_array_equal(got, f(x, y))


def test_sums_of_parts_are_over_axes_that_types_name():
    mesh = auto((4, 2), ("x", "y"))
    for kind in ("unreduced", "reduced"):
        spec = P(**{kind: {"x"}})
        for where in ({"in_specs": spec, "out_specs": P()}, {"in_specs": P(), "out_specs": spec}):
            with pytest.raises(ValueError, match="axis names all of type `Explicit`"):
                gradix.shard_map(lambda x: x, mesh=mesh, **where)(np.arange(8))
            with pytest.raises(NotImplementedError, match="full manual mode"):
                gradix.shard_map(lambda x: x, mesh=mesh, axis_names={"x"}, **where)(np.arange(8))


def test_a_type_says_along_which_manual_axes_it_is_equal(mesh):
    found = []

    @gradix.shard_map(in_specs=P("x"), out_specs=P("x"))
    def f(x):
        inside = gradix.sharding.get_abstract_mesh()
        found.append(gradix.typeof(x).mat.invarying(inside))
        shape = gradix.eval_shape(lambda a: a.sum(), x)
        found.append((shape.vma, gradix.typeof(lax.full_like(shape, 1)).mat.varying))
        return x

    gradix.jit(f)(divided("x"))
    assert found == [{"y"}, ({"x"}, {"x"})]
    assert gradix.typeof(divided("x")).mat.invarying(mesh) == frozenset()


def test_axes_of_one_device_can_be_left_out_of_types():
    mesh = gradix.make_mesh((4, 2, 1), ("x", "y", "z"))
    with gradix.set_mesh(mesh), gradix.remove_size_one_mesh_axis_from_type(True):
        x = gradix.device_put(np.arange(16.0).reshape(8, 2), P(("x", "z"), "y"))
        assert gradix.typeof(x).sharding.spec == P("x", "y")
        doubled = gradix.jit(lambda x: x * 2)(x)
        assert doubled.sharding.spec == P("x", "y")
        rows = gradix.jit(gradix.vmap(lambda r: r * 2, spmd_axis_name=("x", "z")))(x)
        assert rows.sharding.spec == P("x", "y")
        seen = []
        part = gradix.shard_map(lambda a: [seen.append(gradix.typeof(a).vma), a * 2][1], out_specs=P("x", "y"))
        np.testing.assert_array_equal(gradix.jit(part)(x), doubled)
        assert seen == [{"x", "y"}]
        one = gradix.device_put(np.arange(4.0), P("z"))
        whole = gradix.shard_map(lambda a: a + 1, in_specs=P("z"), out_specs=P())
        np.testing.assert_array_equal(gradix.jit(whole)(one), np.arange(1.0, 5.0))
        assert not gradix.jit(lambda a: lax.pcast(a, "z", to="varying")).trace(one).jaxpr.eqns
    assert gradix.typeof(gradix.device_put(np.arange(4.0), NamedSharding(mesh, P("z")))).sharding.spec == P("z")


# Functions of one example whose programs are mapped apart: the examples stay divided, in gradients too.
MAPPED = {
    "jit": gradix.jit(jnp.sin),
    "pad in jit": gradix.jit(lambda x: jnp.pad(x, ((0, 0), (1, 0)))),
    "scan": lambda x: lax.scan(lambda c, r: (c + r, jnp.sin(r)), jnp.zeros(6), x)[0],
    "rows of scan": lambda x: lax.scan(lambda c, r: (c + r.sum(), jnp.sin(r)), 0.0, x)[1],
    "cond": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "while_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c + i, x),
    "checkpoint": gradix.checkpoint(lambda x: jnp.sin(jnp.sin(x))),
    "custom_jvp": gradix.nn.relu,
    "repeated": gradix.jit(lambda x: jnp.zeros(3)),
    "auto_axes": gradix.jit(gradix.sharding.auto_axes(jnp.sin, out_sharding=P(None, None))),
    "vmap": gradix.jit(gradix.vmap(gradix.jit(jnp.sin))),
}


@pytest.mark.parametrize("name", MAPPED)
def test_programs_inside_vmap_keep_the_examples_divided(name):
    f, x = MAPPED[name], divided("x", shape=(8, 2, 6))
    got = gradix.jit(gradix.vmap(f))(x)
    assert got.sharding.spec == P("x", *[None] * (got.ndim - 1))
    np.testing.assert_allclose(got, np.stack([f(row) for row in np.asarray(x)]), rtol=1e-5, atol=1e-6)
    total = lambda x: gradix.vmap(f)(x).sum()
    back = gradix.jit(gradix.grad(total))(x)
    assert back.sharding.spec == P("x", None, None)
    np.testing.assert_allclose(back, gradix.grad(total)(np.asarray(x)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "kernel, images", [(P(), P("x")), (P("y"), P("x")), (P("y"), P()), (P(), P(("x", "y"))), (P("x"), P("y"))]
)
def test_gradients_of_convolutions_over_divided_examples(kernel, images):
    rng = np.random.default_rng(0)
    k, x = [rng.normal(size=shape).astype(np.float32) for shape in ((4, 3, 3), (8, 3, 9))]
    loss = lambda k, x: jnp.sin(lax.conv_general_dilated(x, k, (1,), "SAME")).sum()
    placed = gradix.device_put(k, kernel), gradix.device_put(x, images)
    got = gradix.jit(gradix.grad(loss, (0, 1)))(*placed)
    for g, a, want in zip(got, placed, gradix.grad(loss, (0, 1))(k, x)):
        assert g.sharding.spec == gradix.typeof(a).sharding.spec
        np.testing.assert_allclose(g, want, rtol=1e-4, atol=1e-4)
