"""Shardings, devices and options arrive where they were asked for, or are refused."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental.pjit import pjit
from gradix.sharding import AxisType, NamedSharding, PartitionSpec as P, SingleDeviceSharding


def explicit(*sizes):
    return gradix.make_mesh(sizes, ("x", "y")[: len(sizes)], axis_types=(AxisType.Explicit,) * len(sizes))


def auto(*sizes):
    return gradix.make_mesh(sizes, ("x", "y")[: len(sizes)], axis_types=(AxisType.Auto,) * len(sizes))


HERE = SingleDeviceSharding(gradix.devices()[0])


def test_results_on_explicit_meshes_have_an_entry_for_each_axis():
    with gradix.set_mesh(explicit(2)):
        for out in (jnp.sin(np.eye(3)), jnp.eye(3) + 1, jnp.repeat(np.eye(3), np.array((1, 2, 1)), axis=0)):
            assert out.sharding.spec == P(None, None)
        rows = gradix.device_put(jnp.eye(4), P("x"))
        assert jnp.repeat(rows, np.array((1, 1, 1, 1)), axis=0, out_sharding=P("x")).sharding.spec == P("x", None)


def test_the_type_of_an_array_on_one_device_names_no_mesh():
    with gradix.set_mesh(explicit(2)):
        assert gradix.typeof(jnp.zeros(8)).sharding.mesh.axis_names == ("x",)
        assert gradix.typeof(gradix.device_put(jnp.zeros(8), HERE)).sharding.mesh.empty


def test_axes_of_size_one_stay_in_the_result():
    mesh = gradix.make_mesh((1, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    with gradix.set_mesh(mesh):
        out = gradix.jit(lambda: jnp.ones((2, 2), out_sharding=P("x", None)))()
    assert out.sharding.spec == gradix.typeof(out).sharding.spec == P("x", None)


def test_results_that_vmap_repeats_are_divided_as_the_mapped_axis():
    with gradix.set_mesh(explicit(2)):
        rows = gradix.device_put(np.arange(8), P("x"))
        out = gradix.vmap(lambda x: (x, jnp.zeros(4)), out_axes=(0, -1))(rows)[1]
    assert out.shape == (4, 8) and out.sharding.spec == P(None, "x")


@pytest.mark.parametrize("of", [lambda mesh: mesh, lambda mesh: mesh.abstract_mesh], ids=["mesh", "abstract"])
def test_constraints_inside_vmap_are_over_its_mesh_axis_too(of):
    mesh = auto(2, 2)
    x = gradix.device_put(np.arange(16.0).reshape(8, 2), NamedSharding(mesh, P("x", "y")))
    half = lambda v: lax.with_sharding_constraint(v, NamedSharding(of(mesh), P("x"))) * 2
    for axis, spec in ((None, P(None, "x")), ("y", P("y", "x"))):
        out = gradix.jit(gradix.vmap(half, spmd_axis_name=axis))(x)
        assert out.sharding.spec == spec
        np.testing.assert_array_equal(out, 2 * np.arange(16.0).reshape(8, 2))
    one = lambda v: lax.with_sharding_constraint(v, HERE)
    with pytest.raises(ValueError, match="takes a NamedSharding"):
        gradix.jit(gradix.vmap(one, spmd_axis_name="y"))(np.arange(8.0))


def test_compiling_for_other_devices_or_with_unknown_options():
    struct = gradix.ShapeDtypeStruct((8, 2), np.float32, sharding=NamedSharding(auto(2), P("x")))
    lowered = gradix.jit(lambda x: x + 1).lower(struct)
    with pytest.raises(ValueError, match="must match the devices"):
        lowered.compile(device_assignment=tuple(gradix.devices()[:4]))
    assert lowered.compile(device_assignment=tuple(gradix.devices()[:2])) is not None
    with pytest.raises(gradix.errors.JaxRuntimeError, match="invalid_key"):
        lowered.compile({"invalid_key": "1"})
    assert lowered.compile({"xla_embed_ir_in_executable": True}) is not None


def test_compiler_options_of_a_jitted_function_within_another_are_refused():
    inner = gradix.jit(lambda x: x * 2, compiler_options={"xla_embed_ir_in_executable": True})
    assert float(inner(1.0)) == float(gradix.grad(inner)(1.0)) == 2.0
    with pytest.raises(ValueError, match="outermost"):
        gradix.jit(lambda x: inner(x))(1.0)


def test_none_means_whole_for_pjit_under_a_mesh():
    x = np.ones((8, 8), np.float32)
    with auto(2):
        out = pjit(lambda x, y: x + y, in_shardings=(P("x"), P("x")), out_shardings=None)(x, x)
    assert out.sharding.spec == P() and len(out.addressable_shards) == 2


def test_a_sharding_of_another_mesh_than_the_one_in_force():
    other = NamedSharding(auto(2).abstract_mesh, P(None, None))
    with gradix.set_mesh(explicit(2)):
        x, y = gradix.device_put(np.ones((8, 2)), P("x", None)), gradix.device_put(np.ones((2, 8)), P(None, "x"))
        with pytest.raises(ValueError, match="Context mesh"):
            gradix.jit(lambda x, y: jnp.einsum("xy,yz->xz", x, y, out_sharding=other))(x, y)


def test_pcast_of_wrong_axes_and_outside_of_shard_map():
    with gradix.set_mesh(explicit(2)):
        with pytest.raises(ValueError, match="inside of gradix.shard_map"):
            lax.pcast(np.arange(8.0), "x", to="varying")
        with pytest.raises(TypeError, match="must be a tuple or a str"):
            gradix.shard_map(lambda x: lax.pcast(x, {"x"}, to="varying"), in_specs=P(), out_specs=P("x"))(
                np.arange(8.0)
            )


def test_shard_map_over_another_mesh_than_that_of_its_argument():
    x = gradix.device_put(np.arange(8.0), NamedSharding(auto(2), P("x")))
    other = gradix.make_mesh((2,), ("y",), axis_types=(AxisType.Auto,)).abstract_mesh
    with pytest.raises(ValueError, match="does not match the mesh shape"):
        gradix.shard_map(lambda x: x, mesh=other, in_specs=P("y"), out_specs=P("y"))(x)


def test_smap_over_an_auto_axis_is_told_the_axes_of_arguments():
    with gradix.set_mesh(auto(2)), pytest.raises(TypeError, match="in_axes was not specified"):
        gradix.smap(lambda x: x * 2, out_axes=0, axis_name="x")(np.arange(4))


def test_specs_with_unreduced_axes_are_not_extended():
    for extended in (lambda s: s + (None,), lambda s: (None,) + s):
        with pytest.raises(TypeError, match="not extended by a tuple"):
            extended(P("x", unreduced={"y"}))


def test_gradients_of_examples_stay_divided_as_the_examples():
    with gradix.set_mesh(explicit(2, 2)):
        rows = gradix.device_put(np.arange(48.0, dtype=np.float32).reshape(6, 8), P("x", None))
        f = lambda x: jnp.cos(gradix.sharding.reshard(x, P("y"))).sum()
        out = gradix.jit(gradix.vmap(gradix.grad(f)))(rows)
    assert out.sharding.spec == P("x", None)
    np.testing.assert_allclose(out, -np.sin(np.asarray(rows)), rtol=1e-5, atol=1e-6)
