"""Every way to place an array × every division × sizes on both sides of the limits of transfers × dtypes."""

import functools

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import NamedSharding, PartitionSpec as P
from tests.devices.eight.common import mesh, on

MESHES = {
    "4x2": mesh(),
    "2x4": mesh((2, 4)),
    "8": mesh((8,), ("x",)),
    "2x2x2": mesh((2, 2, 2), ("x", "y", "z")),
    "2x2": mesh((2, 2)),
}
SPECS = (
    P(),
    P("x"),
    P(None, "x"),
    P("y"),
    P(None, "y"),
    P("x", "y"),
    P("y", "x"),
    P(("x", "y")),
    P(None, ("y", "x")),
    P("x", ("y", "z")),
    P("z"),
)
# Arrays of more than 64 KB are copied part by part, and those of 256 KB and more are not staged.
SHAPES = ((8, 8), (8, 16, 2), (128, 136), (200, 200), (264, 256), (520, 512))
DTYPES = ("float32", "bool", "int8", "uint16", "int64", "float64", "complex64", "bfloat16", "float8_e4m3fn", "int4")


def value(shape, dtype) -> np.ndarray:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return (np.arange(np.prod(shape)).reshape(shape) % 7).astype(kind)


def _rebuilt(x, s):
    shards = [gradix.device_put(x[i], d) for d, i in s.addressable_devices_indices_map(x.shape).items()]
    return gradix.make_array_from_single_device_arrays(x.shape, s, shards)


def _mapped(x, s):
    return gradix.jit(gradix.shard_map(lambda v: v, mesh=s.mesh, in_specs=s.spec, out_specs=s.spec))(x)


def _explicit(x, s):
    m = gradix.sharding.Mesh(
        s.mesh.devices, s.mesh.axis_names, axis_types=(gradix.sharding.AxisType.Explicit,) * len(s.mesh.axis_names)
    )
    with gradix.set_mesh(m):
        return gradix.sharding.reshard(gradix.device_put(x, NamedSharding(m, P())), s.spec)


WAYS = {
    "device_put": gradix.device_put,
    "device_put of an array": lambda x, s: gradix.device_put(jnp.asarray(x), s),
    "device_put of a view": lambda x, s: gradix.device_put(np.asfortranarray(x), s),
    "device_put of a divided array": lambda x, s: gradix.device_put(gradix.device_put(x, on(s.mesh, None, "x")), s),
    "device_put of an array on a device": lambda x, s: gradix.device_put(gradix.device_put(x, gradix.devices()[-1]), s),
    "may_alias": lambda x, s: gradix.device_put(x, s, may_alias=False),
    "donated": lambda x, s: gradix.device_put(jnp.array(x), s, donate=True),
    "jit in_shardings": lambda x, s: gradix.jit(lambda v: v, in_shardings=s, out_shardings=s)(x),
    "jit out_shardings": lambda x, s: gradix.jit(lambda v: v, out_shardings=s)(x),
    "with_sharding_constraint": lambda x, s: gradix.jit(lambda v: lax.with_sharding_constraint(v, s))(x),
    "eager constraint": lambda x, s: lax.with_sharding_constraint(gradix.device_put(x, on(s.mesh)), s),
    "make_array_from_callback": lambda x, s: gradix.make_array_from_callback(x.shape, s, lambda i: x[i]),
    "make_array_from_process_local_data": lambda x, s: gradix.make_array_from_process_local_data(s, x),
    "make_array_from_single_device_arrays": _rebuilt,
    "shard_map": _mapped,
    "reshard": _explicit,
}

COMPILED = ("jit in_shardings", "jit out_shardings", "with_sharding_constraint", "shard_map")  # each case compiles


def divisions(shape):
    for m in MESHES.values():
        for spec in SPECS:
            names = [a for e in spec for a in ((e,) if isinstance(e, str) else e or ())]
            if set(names) <= set(m.axis_names) and all(
                n % int(np.prod([m.shape[a] for a in ((e,) if isinstance(e, str) else e or ())], initial=1)) == 0
                for n, e in zip(shape, spec)
            ):
                yield NamedSharding(m, spec)


def check(way, shape, dtype, s):
    x = value(shape, dtype)
    given = x.copy()
    a = WAYS[way](given, s)
    given[...] = 0  # Nothing may share the user's memory.
    label = f"{way} {shape} {dtype} {s}"
    assert a.sharding.is_equivalent_to(s, a.ndim), label
    np.testing.assert_array_equal(np.asarray(a), x, label)
    for part in a.addressable_shards:
        np.testing.assert_array_equal(np.asarray(part.data), x[part.index], label)


@functools.cache
def cases():
    return [(shape, s) for shape in SHAPES for s in divisions(shape)]


@pytest.mark.parametrize("way", WAYS)
def test_ways(way):
    step = 30 if way in COMPILED else 6
    with gradix.enable_x64():
        for i, (shape, s) in list(enumerate(cases()))[len(way) % step :: step]:
            check(way, shape, DTYPES[i // 6 % len(DTYPES)] if i % 2 else "float32", s)


@pytest.mark.parametrize("spec", [P("x"), P("y"), P(None, "y"), P()])
def test_a_batch_of_real_size(spec):
    check("device_put", (200, 200), "float32", on(mesh(), *spec))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_all_ways(way):
    with gradix.enable_x64():
        for shape, s in cases():
            for dtype in DTYPES:
                check(way, shape, dtype, s)


def test_donation_does_not_write_to_repeated_parts():
    x = value((256, 256), "float32")
    for s in (on(mesh(), "x"), on(mesh(), None, "y"), on(mesh())):
        a = gradix.device_put(x, s)
        b = gradix.jit(lambda v: v + 1, donate_argnums=0)(a)
        for part in b.addressable_shards:
            np.testing.assert_array_equal(np.asarray(part.data), x[part.index] + 1)


def test_a_mesh_as_a_context_names_axes_and_set_mesh_moves_programs_there():
    mesh = gradix.make_mesh((2,), ("x",), axis_types=(gradix.sharding.AxisType.Auto,))
    with mesh:
        x = jnp.arange(4.0)
        assert not x.committed and x.devices() == {gradix.devices()[0]}
        doubled = gradix.jit(lambda x: 2 * x, in_shardings=P("x"))(x)
        assert doubled.sharding.spec == P("x") and doubled.devices() == mesh.device_set
    with gradix.set_mesh(mesh):
        for x in (jnp.asarray(np.arange(4.0)), jnp.array([1.0, 2.0]), gradix.device_put(np.ones(2)), jnp.ones(2)):
            assert x.committed and x.devices() == mesh.device_set
        with mesh:
            assert jnp.ones(2).devices() == mesh.device_set
    constrained = mesh(lambda v: gradix.jit(lambda v: lax.with_sharding_constraint(v, P("x")))(v))
    assert constrained(np.ones(4)).sharding.spec == P("x")
    assert not jnp.ones(2).committed


def test_trees_of_local_data_under_one_sharding():
    s, tree = on(mesh(), "x"), {"a": np.arange(16.0).reshape(8, 2), "b": np.arange(8.0)}
    for shapes in (None, {"a": (8, 2), "b": (8,)}):
        made = gradix.make_array_from_process_local_data(s, tree, shapes)
        assert {k: (v.shape, v.sharding) for k, v in made.items()} == {k: (v.shape, s) for k, v in tree.items()}
    with pytest.raises(ValueError, match="local_data has shape"):
        gradix.make_array_from_process_local_data(s, tree, (8, 2))
    parts = [gradix.device_put(np.float32([i]), d) for i, d in enumerate(gradix.devices())]
    with pytest.raises(ValueError, match="dtype must be that of the arrays"):
        gradix.make_array_from_single_device_arrays((8,), on(mesh((8,), ("x",)), "x"), parts, dtype=np.int32)


def test_what_is_made_of_an_array_on_one_device_lies_there():
    x = gradix.device_put(np.arange(4.0), gradix.devices()[1])
    assert all(row.devices() == x.devices() for row in x)
    assert lax.full_like(x, 1.0, shape=(3,)).devices() == x.devices()
    assert gradix.ShapeDtypeStruct.like(jnp.ones(2)).sharding is None
    assert gradix.ShapeDtypeStruct.like(x).sharding == x.sharding


def test_types_are_lowered_without_places_and_results_are_announced_with_theirs():
    x, whole = gradix.device_put(np.arange(16.0).reshape(8, 2), on(mesh(), "x", "y")), on(mesh())
    assert gradix.jit(lambda v: v @ v.T).lower(gradix.core.ShapedArray((8, 2), np.float32)).compile()(
        np.ones((8, 2), np.float32)
    ).shape == (8, 8)
    double = gradix.jit(lambda v: v * 2, in_shardings=x.sharding, out_shardings=whole)
    assert double.lower(x.aval).compile()(x).sharding == whole
    assert double.eval_shape(x).sharding == whole


def test_marks_of_mesh_axes_cannot_change():
    import copy
    import pickle

    from gradix.sharding import ManualAxisType

    a = ManualAxisType(varying={"x"}, reduced={"y"})
    assert a is ManualAxisType(varying=("x",), reduced=["y"]) is copy.deepcopy(a) is pickle.loads(pickle.dumps(a))
    with pytest.raises(AttributeError, match="varying"):
        a.varying = frozenset()
    with pytest.raises(ValueError, match="nested tuple"):
        P(("x", ("y",)))


def test_arrays_sharded_alike_are_mapped_and_callbacks_return_known_values():
    from gradix.experimental.shard_alike import shard_alike

    x = gradix.device_put(np.arange(16.0).reshape(8, 2), on(mesh(), "x"))
    one, other = gradix.jit(gradix.vmap(shard_alike))(x, jnp.zeros((8, 2)))
    np.testing.assert_array_equal(one, x)
    assert other.shape == (8, 2)
    with pytest.raises(gradix.errors.UnexpectedTracerError, match="within a traced context"):
        gradix.jit(lambda v: gradix.make_array_from_callback(v.shape, on(mesh(), "x"), lambda i: v[i]))(np.ones((8, 2)))

    @gradix.jit
    def argument_like(v):  # which is whole, while what it is to be like is divided
        return shard_alike(v, gradix.lax.with_sharding_constraint(v, on(mesh(), "x")) * 2)

    for out, factor in zip(argument_like(np.arange(8.0)), (1, 2)):
        np.testing.assert_array_equal(out, factor * np.arange(8.0))
        assert out.sharding.is_equivalent_to(on(mesh(), "x"), 1)
