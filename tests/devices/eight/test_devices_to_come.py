"""Programs lowered for an AbstractMesh: devices are named when they are compiled."""

import numpy as np
import pytest

import gradix
from gradix.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P, use_abstract_mesh

X = np.arange(16.0, dtype="f").reshape(8, 2)
MESH = gradix.make_mesh((2,), ("x",), (AxisType.Auto,))
ABSTRACT = NamedSharding(MESH.abstract_mesh, P("x"))
STRUCT = gradix.ShapeDtypeStruct((8, 2), "float32", sharding=ABSTRACT)
CPU = {"lowering_platforms": ("cpu",)}


def double(x):
    return x * 2


@pytest.mark.parametrize("options", [{}, {"in_shardings": ABSTRACT, "out_shardings": ABSTRACT}], ids=["given", "asked"])
def test_devices_are_named_at_compilation(options):
    lowered = gradix.jit(double, **options).trace(STRUCT).lower(**CPU)
    assert "num_partitions = 2" in lowered.as_text()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="device_assignment cannot be `None`.*tuple of 2 devices"):
            lowered.compile()
        with pytest.raises(ValueError, match="size of abstract mesh 2 .*must match the length of device assignment: 1"):
            lowered.compile(device_assignment=(gradix.devices()[0],))
        for devices in (MESH.devices, np.array(gradix.devices()[6:8])):
            there = NamedSharding(gradix.sharding.Mesh(devices, "x", (AxisType.Auto,)), P("x"))
            out = lowered.compile(device_assignment=tuple(devices.flat))(gradix.device_put(X, there))
            assert out.sharding == there
            np.testing.assert_array_equal(out, 2 * X)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="Passing lowering_platforms to .lower is required"):
        gradix.jit(double).lower(STRUCT)
    one = gradix.ShapeDtypeStruct((8, 2), "float32", sharding=NamedSharding(AbstractMesh((1,), ("x",)), P("x")))
    with pytest.raises(ValueError, match="AbstractMesh size: 1 does not match the device assignment size: 2"):
        gradix.jit(lambda x, y: (x, y)).lower(one, gradix.device_put(X, NamedSharding(MESH, P("x"))))


def test_an_abstract_mesh_in_force_divides_what_is_lowered():
    explicit = AbstractMesh((2,), ("x",), (AxisType.Explicit,))
    struct = gradix.ShapeDtypeStruct((8, 2), "float32")
    with use_abstract_mesh(explicit):
        assert "num_partitions = 2" in gradix.jit(double).trace(struct).lower(lowering_platforms=("tpu",)).as_text()
        placed = struct.update(sharding=NamedSharding(explicit, P("x")))
        assert '[{"x"}, {}]' in gradix.jit(double).trace(placed).lower(lowering_platforms=("tpu",)).as_text()
        other = struct.update(sharding=NamedSharding(AbstractMesh((1,), ("x",), (AxisType.Explicit,)), P("x")))
        with pytest.raises(ValueError, match="mesh in force.*should match that of the shardings"):
            gradix.jit(double).trace(other).lower(lowering_platforms=("tpu",))


def test_the_mesh_in_force_names_the_devices():
    f = gradix.jit(double, in_shardings=ABSTRACT, out_shardings=ABSTRACT)
    with gradix.set_mesh(gradix.make_mesh((2,), ("x",), (AxisType.Auto,), devices=gradix.devices()[2:])):
        assert "num_partitions = 2" in f.trace(gradix.ShapeDtypeStruct((8, 2), "float32")).lower().as_text()


GRID = gradix.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2)
BLOCKS = NamedSharding(GRID.abstract_mesh, P("a", "b"))


@pytest.mark.parametrize("mesh", [GRID, gradix.make_mesh((8,), ("x",), (AxisType.Auto,))], ids=["same", "other axes"])
def test_results_lie_on_the_mesh_in_force(mesh):
    with gradix.set_mesh(mesh):
        for f in (
            gradix.jit(double, out_shardings=BLOCKS),
            gradix.jit(
                lambda x: gradix.lax.scan(lambda c, _: (c * 2, None), x, None, length=1)[0], out_shardings=BLOCKS
            ),
        ):
            out = f(X)
            assert out.sharding == NamedSharding(GRID, P("a", "b")) == f.lower(X).compile().output_shardings
            assert [s.data.shape for s in out.addressable_shards] == [(2, 1)] * 8
            np.testing.assert_array_equal(out, 2 * X)


def test_results_lie_on_the_devices_of_arguments():
    across = gradix.device_put(X, NamedSharding(gradix.make_mesh((8,), ("x",), (AxisType.Auto,)), P("x")))
    out = gradix.jit(double, out_shardings=BLOCKS)(across)
    assert out.sharding == NamedSharding(GRID, P("a", "b"))
    np.testing.assert_array_equal(out, 2 * X)


def test_types_of_arguments_get_the_devices_in_force():
    struct = gradix.ShapeDtypeStruct((8, 2), "float32", sharding=BLOCKS)
    with gradix.set_mesh(GRID):
        compiled = gradix.jit(double).lower(struct).compile()
    there = NamedSharding(GRID, P("a", "b"))
    assert compiled.input_shardings == ((there,), {})
    np.testing.assert_array_equal(compiled(gradix.device_put(X, there)), 2 * X)


def test_calls_without_devices_are_refused():
    with pytest.raises(ValueError, match="double has shardings on an AbstractMesh.*name 8 of them.*set_mesh"):
        gradix.jit(double, out_shardings=BLOCKS)(X)
