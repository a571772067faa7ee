"""The mesh in force: what pjit, reshard, out_sharding, descriptions of arrays and set_mesh make of it."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import io_callback, multihost_utils
from gradix.experimental.layout import Format, Layout
from gradix.experimental.pjit import pjit
from gradix.sharding import AbstractDevice, AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec as P, reshard

AUTO, EXPLICIT, MANUAL = AxisType.Auto, AxisType.Explicit, AxisType.Manual
X = np.arange(16.0, dtype="float32").reshape(4, 4)


def mesh(*types):
    return gradix.make_mesh((2, 2), ("x", "y"), types)


def test_pjit_runs_on_the_mesh_of_a_with_block():
    same, whole, named = pjit(lambda x: x), pjit(lambda x: x * 2, out_shardings=None), pjit(lambda x: x, P("x"), None)
    assert len(same(jnp.asarray(X)).sharding.device_set) == 1
    with mesh(AUTO, AUTO) as m:
        for f in (same, whole, named, pjit(jnp.sin)):
            assert f(X).sharding == NamedSharding(m, P()), f
        assert named.lower(X).compile().output_shardings == NamedSharding(m, P())
        assert len(gradix.jit(lambda x: x)(jnp.asarray(X)).sharding.device_set) == 1
        with pytest.raises(ValueError, match="should not be used with jit when backend or device"):
            pjit(lambda x: x, device=gradix.devices()[0])(X)
        with pytest.raises(ValueError, match="incompatible devices"):
            whole(gradix.device_put(X, gradix.devices()[5]))
    np.testing.assert_array_equal(whole(X), 2 * X)
    with pytest.raises(RuntimeError, match="non-empty mesh in context"):
        named(X)


@pytest.mark.parametrize("types", [(AUTO, AUTO), (EXPLICIT, AUTO)])
def test_the_compiler_divides_over_auto_axes_after_reshard(types):
    with gradix.set_mesh(mesh(*types)) as m:
        x = gradix.device_put(X, P("x", "y"))
        left = P("x", "y") if types[0] is AUTO else P(None, "y")
        for f in (lambda x: reshard(x, P()), gradix.jit(lambda x: reshard(x * 2, P())), lambda x: reshard(x, P(None))):
            assert f(x).sharding == NamedSharding(m, left)


def test_types_divide_over_explicit_axes_alone():
    with gradix.set_mesh(mesh(EXPLICIT, AUTO)):
        for call in (
            lambda: reshard(X, P("y")),
            lambda: gradix.jit(lambda x: reshard(x, P("x", "y")))(X),
            lambda: jnp.einsum("ij,jk->ik", X, X, out_sharding=P("y")),
            lambda: jnp.zeros((4, 4), out_sharding=P("y")),
            lambda: jnp.reshape(X, (16,), out_sharding=P("y")),
        ):
            with pytest.raises(
                ValueError, match="axis names that are of type Auto or Manual.*with_sharding_constraint"
            ):
                call()
        with pytest.raises(ValueError, match="cannot be UNCONSTRAINED.*write None"):
            reshard(X, P(P.UNCONSTRAINED))


def test_explicit_axes_stay_whole_where_types_say_so():
    with gradix.set_mesh(mesh(EXPLICIT, AUTO)):
        x = gradix.device_put(X, P("x"))
        text = gradix.jit(lambda x: reshard(x, P(None, None))).lower(x).as_text()
        assert 'sharding_constraint %arg0 <@mesh, [{?}, {?}], replicated={"x"}>' in text
    with gradix.set_mesh(mesh(EXPLICIT, EXPLICIT)):
        x = gradix.device_put(X, P("x"))
        text = gradix.jit(lambda x: x.max()).lower(x).as_text()
        assert "<@mesh, []> : tensor<f32>" in text  # the maximum is on each device


@pytest.mark.parametrize("types", [(AUTO, AUTO), (EXPLICIT, EXPLICIT)])
def test_what_is_like_a_description_lies_where_that_says(types):
    m = mesh(*types)
    s = NamedSharding(m, P("x"))
    struct = gradix.ShapeDtypeStruct((4, 4), "float32", sharding=s)
    for f in (
        jnp.zeros_like,
        jnp.ones_like,
        jnp.empty_like,
        lambda a: jnp.full_like(a, 2),
        lambda a: lax.full_like(a, 2),
    ):
        assert f(struct).sharding == s
    assert len(jnp.zeros_like(struct, shape=(3,)).sharding.device_set) == 1
    with gradix.set_mesh(m):
        abstract = gradix.ShapeDtypeStruct((4, 4), "float32", sharding=NamedSharding(m.abstract_mesh, P("x")))
        assert jnp.zeros_like(abstract).sharding.is_equivalent_to(s, 2)


def test_descriptions_take_specs_on_the_mesh_of_their_use():
    struct = gradix.ShapeDtypeStruct((4, 4), "float32", sharding=P("x"))
    for m in (mesh(AUTO, AUTO), mesh(EXPLICIT, EXPLICIT)):
        with gradix.set_mesh(m):
            assert struct.sharding == NamedSharding(m, P("x"))
    with pytest.raises(TypeError, match="context mesh cannot be empty"):
        struct.sharding
    one = NamedSharding(mesh(AUTO, AUTO), P())
    with pytest.raises(ValueError, match="updating ShapeDtypeStruct.*Format"):
        gradix.ShapeDtypeStruct((4, 4), "float32", sharding=Format(Layout((0, 1)), one)).update(sharding=one)
    with pytest.raises(ValueError, match="does not evenly divide the dimension size 5"):
        gradix.core.ShapedArray(
            (5, 2), jnp.int32, sharding=NamedSharding(AbstractMesh((2,), ("x",), (EXPLICIT,)), P("x"))
        )


def test_compiled_programs_say_where_results_lie():
    s = NamedSharding(mesh(AUTO, AUTO), P("x"))
    assert gradix.jit(lambda x: x * 2).lower(gradix.device_put(X, s)).compile().out_info.sharding == s


def test_constraints_on_abstract_meshes_fit_the_devices():
    m = mesh(AUTO, AUTO)
    x = gradix.device_put(X, NamedSharding(m, P("x")))
    other = NamedSharding(AbstractMesh((2,), ("x",), (AUTO,)), P("x"))
    with pytest.raises(ValueError, match="Mesh shape of the input .* does not match the mesh shape of the target"):
        lax.with_sharding_constraint(x, other)
    with pytest.raises(ValueError, match="runs on 4 devices holds a sharding on .* which has 2"):
        gradix.jit(lambda x: lax.with_sharding_constraint(x, other))(x)


def test_meshes_and_devices_that_are_refused():
    for call, error, text in (
        (lambda: gradix.make_mesh(((4,), 2), ("x", "y")), ValueError, "should be a sequence of ints"),
        (lambda: gradix.set_mesh(Mesh(gradix.devices(), "x", (MANUAL,))), ValueError, "contains manual axes"),
        (
            lambda: gradix.jit(jnp.sin, device=gradix.devices()[0], backend="cpu"),
            ValueError,
            "both a device and a backend",
        ),
    ):
        with pytest.raises(error, match=text):
            call()
    assert gradix.make_mesh((np.int32(1), np.int64(1)), ("x", "y")).axis_sizes == (1, 1)


def test_the_same_devices_in_another_order_are_no_transfer():
    devices = np.array(gradix.devices()[:4])
    x = gradix.device_put(X, NamedSharding(Mesh(devices, "x"), P("x")))
    reordered = NamedSharding(Mesh(devices[::-1], "x"), P())
    with gradix.transfer_guard("disallow_explicit"):
        out = gradix.device_put(x, reordered)
    np.testing.assert_array_equal(out, X)
    assert out.sharding == reordered


def test_small_things_over_several_devices():
    m = mesh(AUTO, AUTO)
    x = gradix.device_put(X, NamedSharding(m, P("x")))
    assert multihost_utils.global_array_to_host_local_array(x, m, P("x")) is x
    seen = []

    def inside(x):
        io_callback(lambda v: seen.append(v.shape), (), x, ordered=True)  # returns None for no results
        return x

    gradix.jit(gradix.shard_map(inside, mesh=m, in_specs=P("x", "y"), out_specs=P("x", "y")))(X)
    gradix.effects_barrier()
    assert seen == [(2, 2)] * 4


def test_axes_join_before_one_that_is_whole():
    cube = gradix.make_mesh((2, 2, 2), ("x", "y", "z"))
    with gradix.set_mesh(cube):
        x = gradix.device_put(np.arange(16.0, dtype="float32").reshape(2, 2, 2, 2), P("x", "y", "z", None))
        out = gradix.jit(lambda x: x.reshape(16))(x)
        assert out.sharding == NamedSharding(cube, P(("x", "y", "z")))
        np.testing.assert_array_equal(out, np.arange(16.0))
        y = gradix.device_put(np.zeros((4, 2, 2), "float32"), P("x", "y", None))  # two elements on each device
        with pytest.raises(gradix.errors.ShardingTypeError, match="reshape is not supported"):
            y.reshape(16)


def test_constraints_divide_beside_types():
    with gradix.set_mesh(gradix.make_mesh((2, 2), ("x", "y"), (EXPLICIT, AUTO))):
        x = gradix.device_put(X, P("x"))
        for spec, found in ((P("y"), P(("x", "y"))), (P(None, "y"), P("x", "y"))):
            out = gradix.jit(lambda x, s=spec: lax.with_sharding_constraint(x, s))(x)
            assert out.sharding.is_equivalent_to(NamedSharding(out.sharding.mesh, found), 2)


@pytest.mark.parametrize("make", [lambda s: jnp.array(X, device=s), lambda s: jnp.zeros((4, 4), device=s)])
def test_arrays_made_in_programs_lie_where_they_are_asked_to(make):
    s = NamedSharding(mesh(AUTO, AUTO), P("x", "y"))
    assert gradix.jit(lambda: make(s))().sharding == s
    assert gradix.jit(lambda x: jnp.array(x, device=s))(X).sharding == s


def test_auto_axes_without_a_mesh_and_within_shard_map():
    whole = gradix.sharding.auto_axes(lambda x: x + 1, out_sharding=P())
    np.testing.assert_array_equal(gradix.jit(whole)(X), X + 1)
    m = mesh(AUTO, AUTO)

    def inside(x):
        return gradix.sharding.auto_axes(lambda x: x, axes=("x",), out_sharding=P("x"))(x)

    with gradix.set_mesh(m), pytest.raises(NotImplementedError, match="Going from `Manual` axes.*outside of shard_map"):
        gradix.shard_map(inside, mesh=m, in_specs=P("x"), out_specs=P("x"))(X)


def test_an_abstract_mesh_gives_the_devices_in_force_other_axes():
    with gradix.set_mesh(mesh(EXPLICIT, EXPLICIT)) as m:
        rows = m.abstract_mesh.update(axis_sizes=(4, 1), axis_names=("a", "b"))

        @gradix.jit
        def f(x):
            x = x + 1
            with gradix.sharding.use_abstract_mesh(rows):
                y = reshard(x, P(("a", "b"), None)) * 2
                assert y.aval.sharding == NamedSharding(rows, P(("a", "b"), None))
                return y, x

        x = gradix.device_put(X, P("x", "y"))
        y, before = f(x)
        np.testing.assert_array_equal(y, (X + 1) * 2)
        assert y.sharding == NamedSharding(
            Mesh(m.devices.reshape(4, 1), ("a", "b"), rows.axis_types), P(("a", "b"), None)
        )
        assert before.sharding == NamedSharding(m, P("x", "y"))
        with gradix.sharding.use_abstract_mesh(AbstractMesh((4,), "z")):
            assert jnp.arange(4).sharding.mesh == Mesh(m.devices.reshape(4), "z")
        with pytest.raises(ValueError, match="cannot change the size of the mesh.*of 4 devices.*of 8.*set_mesh"):
            gradix.sharding.use_abstract_mesh(AbstractMesh((8,), "x"))
        f = gradix.jit(lambda x: x)
        other = AbstractDevice("tpu", None, "tpu")
        f(1.0)
        with gradix.sharding.use_abstract_mesh(m.abstract_mesh.update(abstract_device=other)):
            f(1.0)  # devices of another kind are others, for which it is traced again
        assert f.stats().traces == 2


def test_arguments_on_other_meshes_are_returned_as_they_are():
    with gradix.set_mesh(mesh(EXPLICIT, EXPLICIT)):
        x = gradix.device_put(X, P("x", None))
    with gradix.set_mesh(mesh(AUTO, AUTO)) as other:
        y = jnp.ones(3)
    a, b, c, d = gradix.jit(lambda x, y: (x, y, x + y.sum(), 3.0))(x, y)
    assert a.sharding == x.sharding == c.sharding
    assert b.sharding.mesh == other and d.sharding.mesh == x.sharding.mesh


def test_explicit_axes_inside_of_a_mapped_program():
    """Batches are computed with the mesh around, whose axes the compiler divides over."""
    with gradix.set_mesh(mesh(AUTO, AUTO)):

        @gradix.jit
        def f(x):
            @gradix.sharding.explicit_axes(in_sharding=(P("y"),))
            def g(x):
                assert x.aval.sharding.spec == P("y")
                return x * reshard(x, P())

            return g(x)

        np.testing.assert_array_equal(gradix.jit(gradix.vmap(f, spmd_axis_name="x"))(X), X * X)


def test_mapped_axes_stay_divided():
    """Whatever a function does with an example, results have the division of the mapped axis."""
    with gradix.set_mesh(mesh(EXPLICIT, EXPLICIT)) as m:
        free = gradix.sharding.auto_axes(lambda x: jnp.where(x, jnp.ones(4), x), out_sharding=P())
        picked = lambda x: jnp.mean(x.at[jnp.arange(2)].get(out_sharding=P("y")))
        parts = lambda x: gradix.shard_map(jnp.cos, in_specs=P("y"), out_specs=P("y"))(reshard(x, P("y"))).sum()
        parts_of_y = lambda x: gradix.shard_map(jnp.cos, in_specs=P("y"), out_specs=P("y"), axis_names={"y"})(
            reshard(x, P("y"))
        ).sum()
        for f in (free, gradix.grad(picked), gradix.grad(parts), gradix.grad(parts_of_y)):
            for over in ("x", ("x", "y")) if f is free else ("x",):
                x = gradix.device_put(X, P(over, None))
                y = gradix.jit(gradix.vmap(f))(x)
                assert y.sharding == NamedSharding(m, P(over, None)), f
                np.testing.assert_array_equal(y, np.stack([f(row) for row in gradix.device_put(X, P())]))


def test_what_is_like_a_description_is_divided_in_programs_without_devices():
    m = AbstractMesh((2,), ("x",), (EXPLICIT,))
    with gradix.sharding.use_abstract_mesh(m):
        struct = gradix.ShapeDtypeStruct((4, 2), "float32", sharding=NamedSharding(m, P("x", None)))
        for like in (jnp.zeros_like, jnp.ones_like, lambda a: jnp.full_like(a, 3)):
            assert gradix.jit(lambda: like(struct)).trace().out_info.sharding == NamedSharding(m, P("x", None))


def test_formats_without_a_sharding_hold_no_parts():
    with pytest.raises(TypeError, match="sharding should be an instance of.*Pass Format"):
        gradix.make_array_from_callback((4,), Format(None, None), lambda i: X[0][i])


def test_types_within_jit_name_the_mesh_over_whose_auto_axes_arguments_are_divided():
    """A function that asks for it is traced for the mesh, and any other one once for all places."""
    auto = gradix.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    divided, whole = gradix.device_put(jnp.arange(8.0), NamedSharding(auto, P("x"))), jnp.arange(8.0)
    seen = []

    @gradix.jit
    def asks(x):
        seen.append([gradix.typeof(v).sharding for v in (x, 2 * x)])
        return 2 * x

    outer = gradix.jit(lambda x: asks(x) + 1)
    for _ in range(2):
        for f in (asks, outer):
            np.testing.assert_array_equal(f(divided) - f(whole), np.zeros(8))
    meshes = [s.mesh for pair in seen for s in pair]
    assert meshes == [auto.abstract_mesh] * 2 + [meshes[-1]] * 2 and meshes[-1].empty
    assert all(s.spec == P(None) for pair in seen for s in pair)

    other = gradix.jit(lambda x: 2 * x)
    for x in (divided, whole, gradix.device_put(whole, gradix.devices()[1])):
        other(x)
    assert other.stats().traces == 1 and outer.stats().traces == 2
    assert "the mesh of the arguments" in outer.stats().reasons[0]
