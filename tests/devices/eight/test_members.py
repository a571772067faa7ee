"""Members of meshes, shardings, specs, layouts and arrays, one expression each, beside the peer's."""

import copy
import importlib
import importlib.util
import pickle
import warnings

import numpy as np
import pytest

import gradix
from gradix.experimental.layout import Format, Layout
from gradix.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P, SingleDeviceSharding
from tests.devices.eight.common import mesh, on, sharded

# In order: the last ones delete `x`.
EXPRESSIONS = r"""
m
str(m)
m.shape
m.shape_tuple
m.size
m.empty
m.axis_sizes
m.axis_names
m.axis_types
m.device_ids
m.local_mesh
m.local_devices
m.is_multi_process
m.abstract_mesh
me.abstract_mesh
m.are_all_axes_auto
me.are_all_axes_explicit
mm.auto_axes
mm.explicit_axes
mm.manual_axes
mm.are_all_axes_manual
m.update(axis_names=("a","b"))
m.update(axis_types=(AT.Explicit,)*2)
m.update(devices=np.array(d).reshape(2,4))
m.update(foo=1)
m.devices.shape
m==me
m==copy.copy(m)
hash(m)==hash(s.Mesh(np.array(d).reshape(4,2),("x","y")))
s.Mesh(d,"x")
s.Mesh(d,("x","y"))
s.Mesh(np.array(d).reshape(4,2),("x","x"))
s.Mesh(np.array(d).reshape(4,2),("x",None))
s.Mesh(np.array(d).reshape(4,2),("x","y"),axis_types=AT.Explicit)
s.Mesh(np.array(d).reshape(4,2),("x","y"),axis_types=(AT.Explicit,))
s.Mesh(np.array(d).reshape(4,2),("x","y"),axis_types="Auto")
s.Mesh([],())
s.Mesh(np.array([d[0],d[0]]),("x",))
s.Mesh(np.array([1,2]),("x",))
m["x"]
len(m)
A((4,2),("x","y"))
A((4,2),("x",))
A((("x",4),("y",2)))
A((4,2),("x","y"),(AT.Explicit,AT.Manual)).manual_axes
A((4,2),("x","y")).empty
A((4,2),("x","y")).size
A((),()).empty
A((4,2),("x","y")).devices
A((4,2),("x","y")).device_ids
A((4,2),("x","y")).local_mesh
A((4,2),("x","y")).update(axis_sizes=(2,2))
A((4,2),("x","y")).update(foo=1)
A((4,2),("x","y")).update_axis_types({"x":AT.Explicit})
A((4,2),("x","y")).update_axis_types({"z":AT.Explicit})
A((4,2),("x","y")).abstract_device
m.abstract_mesh.abstract_device
A((4,2),("x","y"))==m.abstract_mesh
A((4,2),("x","x"))
A((4,-2),("x","y"))
A((4,2.5),("x","y"))
g.make_mesh((4,2),("x","y"))
g.make_mesh((4,2),("x",))
g.make_mesh((4,4),("x","y"))
g.make_mesh((2,),("x",))
g.make_mesh((2,),("x",),devices=d[4:6]).device_ids
g.make_mesh((4,2),("x","y"),axis_types=(AT.Auto,AT.Explicit)).axis_types
g.make_mesh((3,),("x",))
NS(m,P("x"))
str(NS(m,P("x")))
NS(m,P("z"))
NS(m,P("x","x"))
NS(m,P(("x","y"),"x"))
NS(m,("x",))
NS(m,None)
NS(None,P())
NS(m,P("x"),memory_kind="foo")
NS(m,P("x"),memory_kind="pinned_host")
NS(m,P("x")).memory_kind
NS(m.abstract_mesh,P("x")).memory_kind
NS(m,P("x")).with_memory_kind("pinned_host")
NS(m,P("x")).shard_shape((8,4))
NS(m,P("x")).shard_shape((6,4))
NS(m,P("x","y")).shard_shape((8,))
NS(m,P("x")).shard_shape(())
NS(m,P("x")).devices_indices_map((8,4))[d[3]]
NS(m,P("x","y")).addressable_devices_indices_map((8,4))[d[3]]
len(NS(m,P("x")).device_set)
NS(m,P("x")).num_devices
NS(m,P("x")).is_fully_replicated
NS(m,P(None)).is_fully_replicated
NS(m,P("x")).is_fully_addressable
NS(m,P("x")).has_addressable_devices
NS(m,P("x")).addressable_devices=={*d}
NS(m,P("x")).replicated_axes
NS(m,P("x")).update(spec=P("y"))
NS(m,P("x")).update(mesh=me)
NS(m,P("x")).update(foo=3)
NS(m,P("x")).is_equivalent_to(NS(m,P("x",None)),2)
NS(m,P("x")).is_equivalent_to(NS(me,P("x")),2)
NS(m,P()).is_equivalent_to(NS(m,P(None)),1)
NS(m,P("x"))==NS(m,P("x",None))
NS(m,P("x"))==NS(me,P("x"))
NS(m,P("x")).check_compatible_aval((8,))
NS(m,P("x","y")).check_compatible_aval((8,))
NS(m,P("x")).check_compatible_aval((7,))
NS(m.abstract_mesh,P("x"))
NS(m.abstract_mesh,P("x")).device_set
NS(m.abstract_mesh,P("x")).shard_shape((8,))
NS(m.abstract_mesh,P("x")).is_fully_addressable
NS(m.abstract_mesh,P("x")).num_devices
NS(m.abstract_mesh,P("x")).is_fully_replicated
NS(m.abstract_mesh,P("x")).addressable_devices
NS(m.abstract_mesh,P("x")).devices_indices_map((8,))
NS(m,P(P.UNCONSTRAINED,"x"))
NS(m,P(P.UNCONSTRAINED,"x")).shard_shape((8,8))
NS(m,P("x",unreduced={"y"}))
NS(m,P(unreduced={"x"},reduced={"y"}))
NS(m,P(unreduced={"z"}))
NS(m,P(reduced={"z"}))
NS(me,P(unreduced={"x"}))
pickle.loads(pickle.dumps(NS(m,P("x","y"))))==NS(m,P("x","y"))
S1(d[2])
S1(d[2],memory_kind="pinned_host")
S1(d[2],memory_kind="foo")
S1("cpu")
S1(d[2]).device_set
S1(d[2]).shard_shape((3,4))
S1(d[2]).devices_indices_map((3,))
S1(d[2]).is_equivalent_to(NS(s.Mesh(d[2:3],"x"),P()),1)
S1(d[2]).is_equivalent_to(NS(s.Mesh(d[2:3],"x"),P("x")),1)
NS(s.Mesh(d[2:3],"x"),P("x")).is_equivalent_to(S1(d[2]),1)
S1(d[2]).num_devices
S1(d[2]).is_fully_addressable
S1(d[2]).addressable_devices
S1(d[2]).with_memory_kind("pinned_host")
S1(d[2])==S1(d[2])
P("x",None)
P(("x","y"),None)
P(("x",),())
P([])
P(["x","y"])
P()
P(None)
P("x")+P("y")
P("x")+("y",)
("y",)+P("x")
P("x")+None
P("x").index("x")
P("x").index("y")
P("x",None,None).count(None)
P("x","y")[0]
P("x","y")[0:1]
len(P("x",None))
list(P("x",("y","z")))
tuple(P("x"))==("x",)
P("x")==("x",)
("x",)==P("x")
P("x")==P("x",None)
P(("x",))==P("x")
hash(P("x"))==hash(P(("x",)))
isinstance(P(),tuple)
P(unreduced={"x"})
P("x",unreduced={"y"},reduced={"z"})
P("x",unreduced={"x"})
P("x",unreduced="y")
P("x",unreduced={None})
P("x",unreduced={"y"},reduced={"y"})
P(unreduced={"x"})+P("y")
P("x").update(partitions=("y",))
P("x").update(unreduced={"z"})
P("x").update(foo=1)
P("x",unreduced={"y"}).unreduced
P("x",reduced={"y"}).reduced
P("x",unreduced={"y"},reduced={"z"}).to_ct_spec()
P("x",unreduced={"y"},reduced={"z"}).to_tangent_spec()
P("x",unreduced={"y"},reduced={"z"}).to_lo()
P("x",("y",))._partitions if hasattr(P("x"),"_partitions") else ("x","y")
P(P.UNCONSTRAINED)
P("x",P.UNCONSTRAINED)==P("x",P.UNCONSTRAINED)
copy.deepcopy(P("x",P.UNCONSTRAINED))
pickle.loads(pickle.dumps(P("x",P.UNCONSTRAINED,unreduced={"y"})))
P("x",1)
P(3.5)
x.sharding
x.committed
x.is_fully_addressable
x.is_fully_replicated
len(x.addressable_shards)
len(x.global_shards)
x.addressable_shards[3].index
x.addressable_shards[3].replica_id
x.addressable_shards[2].replica_id
x.addressable_shards[3].device
x.addressable_shards[3].data.sharding
x.addressable_shards[3].data.shape
x.addressable_shards[3]
x.addressable_data(3).shape
x.addressable_data(8)
x.devices()=={*d}
x.device
gnp.ones(3).device
g.device_put(1.,d[2]).device
x.format
x.on_device_size_in_bytes()
x.is_ready()
x.platform()
x.weak_type
x.aval
xe.aval
x.device_buffer
x.device_buffers
x.copy_to_host_async()
x.block_until_ready() is x
x.to_device(d[1]).sharding
x.to_device(NS(m,P("y"))).sharding
x.clone().sharding
x.delete()
x.is_deleted()
x+1
x.shape
x.sharding
np.asarray(x)
x.addressable_shards
L((0,1))
L((0,1),((8,128),))
L((0,1),((8,128),),0)
L(major_to_minor=(1,0))
L([0,1])
L((0,2))
L.AUTO
L((0,1))==L((0,1))
hash(L((0,1)))==hash(L((0,1)))
L((0,1)).update(major_to_minor=(1,0))
L((0,1)).update(foo=1)
L((0,1)).check_compatible_aval((2,3))
L((0,1)).check_compatible_aval((2,))
L((0,1)).major_to_minor
L((0,1),((8,128),)).tiling
L((0,1)).sub_byte_element_size_in_bits
F(L((0,1)),S1(d[0]))
F()
F(L.AUTO)
F(L.AUTO,S1(d[0]))
F(L((0,1)))
F(None,S1(d[0]))
F(L((0,1)),None)
F(3)
F(L((0,1)),"x")
F(L((0,1)),S1(d[0])).layout
F(L((0,1)),S1(d[0])).sharding
F(L((0,1)),S1(d[0]))==F(L((0,1)),S1(d[0]))
hash(F(L((0,1)),S1(d[0])))==hash(F(L((0,1)),S1(d[0])))
F(L((0,1)),P("x"))
xe.format
xe.format.layout
g.jit(lambda v:v*2, in_shardings=F(L.AUTO)).lower(g.ShapeDtypeStruct((4,8),np.float32)).compile().input_formats
g.jit(lambda v:v*2, out_shardings=F(L.AUTO)).lower(np.ones((4,8),np.float32)).compile().output_formats
g.jit(lambda v:v.T, out_shardings=F(L((1,0)),S1(d[0])))(np.ones((4,8),np.float32)).format
g.device_put(np.ones((4,8),np.float32),F(L((1,0)),S1(d[0]))).format.layout.major_to_minor
g.device_put(np.ones((4,8),np.float32),F(L((1,0)),NS(m,P("x")))).format.layout.major_to_minor
g.device_put(np.ones((4,8),np.float32),F(L((1,0,2)),S1(d[0])))
g.device_put(np.ones((4,8),np.float32),F(L.AUTO,S1(d[0])))
g.device_put(np.ones((4,8),np.float32),L((1,0)))
g.jit(lambda v:v, in_shardings=L.AUTO)(np.ones((2,2),np.float32))
g.jit(lambda v:v, in_shardings=F(L((1,0)),S1(d[0])))(np.ones((2,2),np.float32)).format.layout
lay.with_layout_constraint(np.ones((2,3),np.float32),L((1,0)))
g.jit(lambda v: lay.with_layout_constraint(v,L((1,0))))(np.ones((2,3),np.float32)).format.layout
g.jit(lambda v: lay.with_layout_constraint(v,L((1,0,2))))(np.ones((2,3),np.float32))
g.ShapeDtypeStruct((2,),np.float32,sharding=F(L((0,)),S1(d[0])))
g.ShapeDtypeStruct((2,),np.float32,sharding=F(L((0,)),S1(d[0]))).format
g.ShapeDtypeStruct((2,),np.float32,sharding=F(L((0,)),S1(d[0]))).sharding
g.ShapeDtypeStruct((2,),np.float32,sharding=NS(m,P("x")))
g.ShapeDtypeStruct((2,),np.float32,sharding=P("x"))
g.ShapeDtypeStruct((2,),np.float32,sharding="x")
g.ShapeDtypeStruct((2,),np.float32,sharding=NS(m,P("x","y")))
g.typeof(xe)
g.typeof(xe).sharding
g.typeof(x).sharding
g.typeof(gnp.ones(3)).sharding
s.get_abstract_mesh()
s.get_mesh()
AT.Auto
repr(AT.Explicit)
[a.name for a in AT]
AT.Auto==AT.Explicit
s.AbstractDevice("cpu",None,"cpu")
s.ManualAxisType(varying={"x"})
""".strip().splitlines()

# What is ours on purpose: one AxisType stands for all, a device has one place in a mesh, names the memory it stands for; errors that teach
# where the peer's come out of its insides. Values of NumPy are laid out as arrays are, and a spec finds its mesh
# where the description of an array is used.
OURS = {
    's.Mesh(np.array(d).reshape(4,2),("x","y"),axis_types=AT.Explicit)',
    's.Mesh(np.array([d[0],d[0]]),("x",))',
    's.Mesh(np.array([1,2]),("x",))',
    'NS(m,("x",))',
    'NS(m,P("x","y")).shard_shape((8,))',
    'NS(m,P("x")).shard_shape(())',
    'S1("cpu")',
    'P("x")+None',
    "L((0,1)).update(foo=1)",
    "lay.with_layout_constraint(np.ones((2,3),np.float32),L((1,0)))",
    'g.ShapeDtypeStruct((2,),np.float32,sharding=P("x"))',
}


def evaluated(name: str) -> dict:
    g = importlib.import_module(name)
    lay = importlib.import_module(name + ".experimental.layout")
    s, d = g.sharding, g.devices()
    grid = np.array(d).reshape(4, 2)
    m, me = s.Mesh(grid, ("x", "y")), g.make_mesh((4, 2), ("x", "y"))
    names = {
        "g": g,
        "gnp": importlib.import_module(name + ".numpy"),
        "lay": lay,
        "s": s,
        "d": d,
        "m": m,
        "me": me,
        "np": np,
        "copy": copy,
        "pickle": pickle,
        "P": s.PartitionSpec,
        "NS": s.NamedSharding,
        "S1": s.SingleDeviceSharding,
        "A": s.AbstractMesh,
        "AT": s.AxisType,
        "L": lay.Layout,
        "F": lay.Format,
        "mm": s.Mesh(grid, ("x", "y"), (s.AxisType.Explicit, s.AxisType.Auto)),
        "x": g.device_put(np.ones((8, 4), np.float32), s.NamedSharding(m, s.PartitionSpec("x"))),
        "xe": g.device_put(np.ones((8, 4), np.float32), s.NamedSharding(me, s.PartitionSpec("x", "y"))),
    }
    found = {}
    for text in EXPRESSIONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[text] = repr(eval(text, names)).replace("gradix", "jax")
            except Exception as e:
                found[text] = type(e).__name__
    return found


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the peer is not installed")
def test_members_as_the_peer_s():
    ours, peers = evaluated("gradix"), evaluated("jax")
    differing = {e: (ours[e], peers[e]) for e in EXPRESSIONS if ours[e] != peers[e]}
    assert differing.keys() == OURS, {e: v for e, v in differing.items() if e not in OURS}


def test_axes_that_are_to_be_summed_are_explicit():
    explicit = gradix.make_mesh((4, 2), ("x", "y"))
    assert repr(NamedSharding(explicit, P("x", unreduced={"y"})).spec) == "P('x', unreduced={'y'})"
    assert P("x", unreduced={"y"}).to_ct_spec() == P("x", reduced={"y"}) and P("x").to_tangent_spec() == P("x")
    for make, match in (
        (lambda: NamedSharding(mesh(), P(unreduced={"x"})), "of type `Explicit`.*axis_types="),
        (lambda: NamedSharding(explicit, P(reduced={"z"})), "Reduced axes z is not found"),
        (lambda: P("x", unreduced={"y"}, reduced={"y"}), "cannot overlap"),
    ):
        with pytest.raises(ValueError, match=match):
            make()


def test_layouts_and_formats():
    one = SingleDeviceSharding(gradix.devices()[0])
    assert (
        repr(Format(Layout.AUTO)) == "Format(layout=AUTO, sharding=None)"
        and pickle.loads(pickle.dumps(Layout.AUTO)) is Layout.AUTO
    )
    assert Layout((0, 1)).update(major_to_minor=(1, 0)) == Layout((1, 0))
    buffer = gradix.jit(lambda v: v + 1)(np.ones((2, 3)))._buffer
    assert Layout.from_pjrt_layout(buffer._pjrt_layout) == Layout((0, 1), ())
    compiled = (
        gradix.jit(lambda v: v * 2, in_shardings=Format(Layout.AUTO), out_shardings=Format(Layout.AUTO))
        .lower(np.ones((4, 8), "f"))
        .compile()
    )
    assert compiled.input_formats[0][0].layout == compiled.output_formats.layout == Layout((0, 1), ())
    shaped = gradix.ShapeDtypeStruct((2, 3), np.float32, sharding=Format(Layout((0, 1)), one))
    assert (
        shaped.sharding == one
        and shaped.format == Format(Layout((0, 1)), one)
        and shaped.update(shape=(3, 2)).layout == Layout((0, 1))
    )
    x = np.ones((2, 3), np.float32)
    for call, error, match in (
        (lambda: Layout((0, 1)).check_compatible_aval((2,)), ValueError, r"major_to_minor=\(0, 1\) and shape=\(2,\)"),
        (lambda: Format(Layout((0, 1)), P("x")), TypeError, "NamedSharding\\(mesh, spec\\)"),
        (lambda: gradix.device_put(x, Format(Layout.AUTO, one)), ValueError, "should be concrete"),
        (lambda: gradix.device_put(x, Format(Layout((0, 1, 2)), one)), ValueError, "rank of the value"),
        (lambda: gradix.jit(lambda v: v, in_shardings=Layout((0, 1)))(x), ValueError, "Create a `Format`"),
        (
            lambda: gradix.jit(lambda v: v, in_shardings=Format(Layout((0, 1, 2)), one))(x),
            ValueError,
            "key path v is incompatible",
        ),
        (lambda: gradix.ShapeDtypeStruct((2, 3), np.float32, sharding=Format(Layout.AUTO, one)), TypeError, "AUTO"),
        (
            lambda: gradix.ShapeDtypeStruct((2, 3), np.float32, sharding=P("x")).sharding,
            TypeError,
            "context mesh cannot be empty",
        ),
        (lambda: gradix.ShapeDtypeStruct((2, 3), np.float32, sharding="x"), ValueError, "should be an instance"),
        (
            lambda: gradix.ShapeDtypeStruct((2,), np.float32, sharding=on(mesh(), "x", "y")),
            ValueError,
            "rank at least 2",
        ),
    ):
        with pytest.raises(error, match=match):
            call()


def test_what_meshes_and_arrays_tell():
    m = mesh()
    x = sharded(np.ones((8, 4), np.float32), m, "x")
    assert x.on_device_size_in_bytes() == 256 and gradix.typeof(x).sharding == NamedSharding(
        m.abstract_mesh, P(None, None)
    )
    alone = gradix.sharding.Mesh(gradix.devices()[2:3], "i")
    assert SingleDeviceSharding(gradix.devices()[2]).is_equivalent_to(on(alone, "i"), 1)
    assert repr(m.abstract_mesh.abstract_device) == "AbstractDevice(device_kind=cpu, num_cores=None, platform=cpu)"
    for call, error, match in (
        (
            lambda: gradix.sharding.Mesh(np.array(gradix.devices()).reshape(4, 2), ("x", None)),
            ValueError,
            "cannot be None",
        ),
        (lambda: gradix.sharding.Mesh([1, 2], "x"), TypeError, "needs devices"),
        (lambda: AbstractMesh((4,), ("x",), AxisType.Auto).update(foo=1), TypeError, "foo"),
        (lambda: SingleDeviceSharding(gradix.devices()[0], memory_kind="disk"), ValueError, "pinned_host.*disk"),
    ):
        with pytest.raises(error, match=match):
            call()
