"""Files of programs for several devices: those with XLA's shardings alone, and those that leave some open."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export
from gradix._runtime.xla_partitioning import hlo_sharding_on_mesh
from gradix.export import serialization
from gradix.export.wire import I8, encode
from gradix.sharding import AxisType, NamedSharding, PartitionSpec as P

SHARDINGS = {7: "_in_named_shardings", 8: "_out_named_shardings"}


def _exported(spec, **options):
    mesh = gradix.make_mesh((2,), ("x",), devices=gradix.devices()[:2], axis_types=(AxisType.Auto,))
    rows = NamedSharding(mesh, P("x", None))
    out = {} if spec is None else {"out_shardings": NamedSharding(mesh, spec)}
    f = gradix.jit(lambda b: b * 2, in_shardings=(rows,), **out)
    return export.export(f, **options)(gradix.ShapeDtypeStruct((16, 4), jnp.float32, sharding=rows))


def _older(e, change=lambda proto: proto) -> bytes:
    """The file as earlier versions wrote it, with XLA's shardings and no named ones."""
    fields = serialization._table(e, 0)
    for slot in (20, 21, 24, 25, serialization.DIGEST):
        fields.pop(slot, None)
    for slot, name in SHARDINGS.items():
        natives = [s and hlo_sharding_on_mesh(s, 2).to_proto().SerializeToString() for s in getattr(e, name)]
        fields[slot] = [{} if s is None else {0: (I8, 1), 1: change(s)} for s in natives]
    return bytes(encode(fields))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("is_older", [False, True])
@pytest.mark.parametrize("spec", [None, P(None, "x"), P()])
def test_results_are_divided_as_the_file_says_or_as_the_compiler_chooses(kind, is_older, spec):
    e = _exported(spec)
    read = export.deserialize(_older(e) if is_older else e.serialize())
    mesh = gradix.make_mesh((2,), ("x",), devices=gradix.devices()[:2], axis_types=(kind,))
    a = np.arange(64, dtype=np.float32).reshape(16, 4)
    with gradix.set_mesh(mesh):
        out = read.call(gradix.device_put(a, NamedSharding(mesh, P("x", None))))
    np.testing.assert_array_equal(out, 2 * a)
    wanted = NamedSharding(mesh, P("x", None) if spec is None else spec)
    assert out.sharding.is_equivalent_to(wanted, 2)
    if spec != P():  # XLA alone decides whether what is whole is told apart from what is open
        assert out.sharding.mesh.axis_types == (kind,)


def test_shardings_of_xla_are_told():
    for e in (_exported(P(None, "x")), export.deserialize(_older(_exported(P(None, "x"))))):
        (given,), (found,) = e.in_shardings_hlo, e.out_shardings_hlo
        assert list(given.tile_assignment_dimensions()) == [2, 1]
        assert list(found.tile_assignment_dimensions()) == [1, 2]
    assert _exported(None).out_shardings_hlo == (None,)


@pytest.mark.parametrize("proto", [b"\x08\x03\x1a\x02\x03\x01\x22\x03\x00\x01\x02", b"\x08\x03\x1a\x01\x02"])
def test_shardings_of_xla_for_other_devices_are_refused(proto):
    with pytest.raises(ValueError, match=r"a sharding is wrong|damaged"):
        export.deserialize(_older(_exported(None), lambda _: proto))
