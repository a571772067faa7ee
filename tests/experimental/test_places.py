"""`compute_on`, `topologies` and `extend.sharding`: places and shardings in the compiler's form."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental import topologies
from gradix.experimental.compute_on import compute_on, compute_on2
from gradix.extend import sharding


def lowered(f, x=1.0):
    return gradix.jit(f).lower(x).as_text()


def test_operations_inside_are_marked_and_no_others():
    @compute_on("device_host")
    @gradix.jit
    def host(x):
        return jnp.sin(x)

    def with_block(x):
        with compute_on("device_host"):
            y = jnp.sin(x)
        return jnp.cos(y)

    for f in (lambda x: jnp.cos(host(x)), with_block, gradix.grad(with_block)):
        lines = [x for x in lowered(f).splitlines() if "stablehlo.sine" in x or "stablehlo.cosine" in x]
        assert any('_xla_compute_type = "host"' in x for x in lines)
    assert "_xla_compute_type" not in [x for x in lowered(with_block).splitlines() if "cosine" in x][0]
    assert np.allclose(gradix.jit(with_block)(2.0), np.cos(np.sin(2.0)))


def test_kinds_of_places():
    def on(kind):
        def f(x):
            with compute_on(kind):
                return jnp.sin(x)

        return f

    assert "frontend_attributes" not in lowered(on("device"))
    assert '_xla_stream_annotation = "3"' in lowered(on("gpu_stream:3"))
    assert '"sparse"' in lowered(on("tpu_sparsecore"))
    for wrong in ("bogus", "gpu_stream:", "gpu_stream:x", None):
        with pytest.raises(ValueError, match=f"Invalid compute type {wrong}"):
            compute_on(wrong)


def test_functions_on_the_host():
    space = gradix.memory.Space.Device
    f = compute_on2(lambda x, y: {"sum": x + y}, compute_type="device_host", out_memory_spaces=space)
    assert gradix.jit(f)(1, 2)["sum"] == 3 and f(1, y=2)["sum"] == 3
    assert '_xla_compute_type = "host"' in gradix.jit(f).lower(1, 2).as_text()

    @compute_on2(compute_type="device_host", out_memory_spaces=space)
    def named(x):
        return x * x

    assert named.__name__ == "named" and gradix.grad(named)(3.0) == 6


def test_topologies():
    topo = topologies.get_attached_topology("cpu")
    assert topo.devices == gradix.devices("cpu")
    mesh = topologies.make_mesh(topologies.TopologyDescription(topo.devices[:1]), (1,), ("x",))
    assert mesh.axis_names == ("x",) and mesh.axis_types == (gradix.sharding.AxisType.Auto,)
    with pytest.raises(NotImplementedError, match="topology not implemented for v5e:2x2.*get_attached_topology"):
        topologies.get_topology_desc("v5e:2x2", "tpu")


def test_bytes_of_shardings():
    whole = sharding.get_hlo_sharding_from_serialized_proto(b"")
    assert whole.is_replicated()
    from jaxlib import xla_client

    op = xla_client.OpSharding()
    op.type = xla_client.OpSharding.Type.OTHER
    op.tile_assignment_dimensions, op.tile_assignment_devices = [2, 1], [0, 1]
    native = xla_client.HloSharding.from_proto(op)
    data = sharding.get_serialized_proto_from_hlo_sharding(native)
    assert data and sharding.get_hlo_sharding_from_serialized_proto(data) == native
    assert list(sharding.get_op_sharding_from_serialized_proto(data).tile_assignment_dimensions) == [2, 1]
    assert sharding.GSPMDSharding.get_replicated(gradix.devices()).is_fully_replicated
