"""Programs divided over eight devices, in files that go to JAX and come from it."""

import dataclasses
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export, lax
from gradix._runtime import xla_artifact
from gradix.sharding import NamedSharding, PartitionSpec as P
from tests.devices.eight.common import mesh

X, W = np.arange(64, dtype=np.float32).reshape(8, 8), np.ones((8, 8), np.float32)


def on(*spec, where=None):
    return NamedSharding(where or mesh(), P(*spec))


def f(a, w):
    return jnp.sin(a) @ w, a.sum(0)


def exported():
    jitted = gradix.jit(f, in_shardings=(on("x", None), on(None, "y")), out_shardings=(on("x", "y"), None))
    return export.export(jitted)(X, W)


def test_shardings_are_written_and_read():
    e = exported()
    assert e.nr_devices == 8 and [s.spec for s in e._in_named_shardings] == [P("x", None), P(None, "y")]
    assert e.out_shardings_jax(mesh()) == (on("x", "y"), None)
    read = export.deserialize(e.serialize(vjp_order=1))
    assert (read.nr_devices, read._in_named_shardings, read._out_named_shardings) == (
        8,
        e._in_named_shardings,
        e._out_named_shardings,
    )
    with pytest.raises(ValueError, match="exported for the mesh"):
        read.in_shardings_jax(mesh((2, 4)))
    for program in (e, read):
        out, total = program.call(X, W)
        assert out.sharding.spec == P("x", "y") and len(out.addressable_shards) == 8
        np.testing.assert_allclose(out, np.sin(X) @ W, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(total, X.sum(0), rtol=1e-6)
        gradient = gradix.grad(lambda a, program=program: program.call(a, W)[0].sum())(X)
        assert gradient.sharding.spec == P("x")
        np.testing.assert_allclose(gradient, 8 * np.cos(X), rtol=1e-5, atol=1e-5)


def test_divided_programs_for_several_platforms_are_one_file():
    jitted = gradix.jit(
        lambda a, w: lax.platform_dependent(f(a, w), cpu=lambda x: x, default=lambda x: (-x[0], x[1])),
        in_shardings=(on("x", None), on(None, "y")),
        out_shardings=(on("x", "y"), None),
    )
    (n,) = export.symbolic_shape("8*n")
    for spec in (X, gradix.ShapeDtypeStruct((n, 8), "float32")):
        read = export.deserialize(export.export(jitted, platforms=("tpu", "cpu"))(spec, W).serialize(vjp_order=1))
        assert (read.nr_devices, read.platforms) == (8, ("tpu", "cpu"))
        out, total = read.call(X, W)
        assert out.sharding.spec == P("x", "y") and len(out.addressable_shards) == 8
        np.testing.assert_allclose(out, np.sin(X) @ W, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(total, X.sum(0), rtol=1e-6)
        gradient = gradix.grad(lambda a, read=read: read.call(a, W)[0].sum())(X)
        np.testing.assert_allclose(gradient, 8 * np.cos(X), rtol=1e-5, atol=1e-5)


def test_a_program_runs_where_its_arguments_lie():
    read = export.deserialize(exported().serialize())
    turned = gradix.sharding.Mesh(np.array(gradix.devices())[::-1].reshape(4, 2), ("x", "y"))
    out, _ = read.call(gradix.device_put(X, on("x", where=turned)), W)
    assert out.sharding.mesh.devices.flat[0] == gradix.devices()[7]
    np.testing.assert_allclose(gradix.jit(read.call)(X, W)[0], np.sin(X) @ W, rtol=1e-5, atol=1e-5)


def test_divided_batches_of_any_size():
    (n,) = export.symbolic_shape("8*n")
    divided = gradix.jit(
        lambda x: lax.with_sharding_constraint(jnp.cumsum(x, axis=1), on("x", None)) * 2, in_shardings=on("x", None)
    )
    e = export.deserialize(export.export(divided)(gradix.ShapeDtypeStruct((n, 3), "float32")).serialize())
    for rows in (8, 16):
        x = np.ones((rows, 3), "f4")
        np.testing.assert_allclose(e.call(x), 2 * np.cumsum(x, axis=1))


def test_parts_of_programs_written_for_one_device():
    summed = gradix.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh(), in_specs=P("x"), out_specs=P())
    e = export.deserialize(export.export(gradix.jit(summed, in_shardings=on("x")))(X[:, 0]).serialize())
    np.testing.assert_allclose(e.call(X[:, 0]), X[:, 0].reshape(4, 2).sum(0))


def test_devices_that_are_not_there_are_named():
    blob = exported().serialize()
    e = export.deserialize(blob)
    object.__setattr__(e, "nr_devices", 16)
    with pytest.raises(ValueError, match="exported for 16 devices.*8 devices"):
        e.call(X, W)


@pytest.mark.parity
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_divided_programs_go_to_jax_and_come_from_it():
    import jax
    from jax import export as their

    place = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    at = lambda *s: jax.sharding.NamedSharding(place, jax.sharding.PartitionSpec(*s))
    ins = (at("x", None), at(None, "y"))
    ours = their.deserialize(exported().serialize(vjp_order=1))
    assert ours.nr_devices == 8 and [tuple(s.spec) for s in ours._in_named_shardings] == [("x", None), (None, "y")]
    np.testing.assert_allclose(jax.jit(ours.call, in_shardings=ins)(X, W)[0], np.sin(X) @ W, rtol=1e-5, atol=1e-5)
    gradient = jax.jit(jax.grad(lambda a, w: ours.call(a, w)[0].sum()), in_shardings=ins)(X, W)
    np.testing.assert_allclose(gradient, 8 * np.cos(X), rtol=1e-5, atol=1e-5)
    several = gradix.jit(f, in_shardings=(on("x", None), on(None, "y")))
    both = their.deserialize(export.export(several, platforms=("cuda", "cpu"))(X, W).serialize())
    np.testing.assert_allclose(jax.jit(both.call, in_shardings=ins)(X, W)[0], np.sin(X) @ W, rtol=1e-5, atol=1e-5)
    g = lambda a, w: (jax.numpy.sin(a) @ w, a.sum(0))
    theirs = their.export(jax.jit(g, in_shardings=ins, out_shardings=(at("x", "y"), None)))(X, W)
    several = their.export(jax.jit(g, in_shardings=ins), platforms=("cuda", "cpu"))(X, W)
    np.testing.assert_allclose(
        export.deserialize(several.serialize()).call(X, W)[0], np.sin(X) @ W, rtol=1e-5, atol=1e-5
    )
    read = export.deserialize(theirs.serialize(vjp_order=1))
    assert [s.spec for s in read._in_named_shardings] == [P("x", None), P(None, "y")] and read._out_named_shardings[
        1
    ] is None
    out, _ = read.call(X, W)
    assert out.sharding.spec == P("x", "y")
    np.testing.assert_allclose(out, np.sin(X) @ W, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradix.grad(lambda a: read.call(a, W)[0].sum())(X), 8 * np.cos(X), rtol=1e-5, atol=1e-5)


def test_parts_of_arrays_that_lie_nowhere_in_particular():
    """A shard_map whose program says of no argument where it lies is called with plain arrays, and differentiated."""
    part = gradix.shard_map(
        lambda x: x * lax.axis_index("x") + lax.psum(x.sum(), ("x", "y")),
        mesh=mesh(),
        in_specs=P("x", "y"),
        out_specs=P("x", "y"),
    )
    e = export.deserialize(export.export(gradix.jit(part))(X).serialize(vjp_order=1))
    np.testing.assert_allclose(e.call(X), gradix.jit(part)(X), rtol=1e-6)
    total = lambda g: lambda x: (g(x) ** 2).mean()
    np.testing.assert_allclose(
        gradix.jit(gradix.grad(total(e.call)))(X), gradix.jit(gradix.grad(total(part)))(X), rtol=1e-5
    )
    # out of jit too, where what the call gave lies as no mesh says that the arguments are on
    assert isinstance(e.call(X).sharding, gradix.sharding.GSPMDSharding)
    np.testing.assert_allclose(gradix.grad(total(e.call))(X), gradix.jit(gradix.grad(total(part)))(X), rtol=1e-5)


def test_parts_of_open_sizes_are_exported():
    shift = [(i, (i + 1) % 4) for i in range(4)]
    function = lambda v: (lax.psum(jnp.sin(v).sum(), ("x", "y")), lax.ppermute(v + v, "x", shift))
    part = gradix.shard_map(function, mesh=mesh(), in_specs=P("x", "y"), out_specs=(P(), P("x", "y")))
    for sizes in ("8*n, 2*m", "8*n, 4", "8, 2*m"):
        e = export.export(gradix.jit(part))(gradix.ShapeDtypeStruct(export.symbolic_shape(sizes), "float32"))
        read = export.deserialize(e.serialize())
        for shape in ((8, 4), (16, 4) if "8*n" in sizes else (8, 6)):
            x = np.random.RandomState(0).rand(*shape).astype("f4")
            for call in (e.call, read.call, gradix.jit(read.call)):
                for got, want in zip(call(gradix.device_put(x, on())), part(x)):
                    np.testing.assert_allclose(got, want, rtol=1e-5)


def _uses_sizes(x):
    total = lax.psum(x.sum(), ("x", "y"))
    return x * x.shape[0] + jnp.arange(x.shape[1]) + total / (x.shape[0] // 2) + jnp.ones(x.shape)[:1]


def _in_a_loop(x):
    return lax.scan(lambda c, row: (c + row.sum() * x.shape[0], row + c), x[0, 0] * 0, x)[1]


def _within_another(x):
    def inner(x):
        return x * x.shape[1] + lax.axis_index("y")

    spec = P(None, "y")
    part = gradix.shard_map(inner, in_specs=spec, out_specs=spec, axis_names={"y"})
    return part(x) * x.shape[0]


@pytest.mark.parametrize(
    "function, axes", [(_uses_sizes, {"x", "y"}), (_in_a_loop, {"x", "y"}), (_within_another, {"x"})]
)
def test_sizes_that_parts_use_are_exported(function, axes):
    spec = P("x", "y") if len(axes) == 2 else P("x")
    part = gradix.shard_map(function, mesh=mesh(), in_specs=spec, out_specs=spec, axis_names=axes)
    f = lambda x: gradix.jit(part)(part(x) / 100)
    e = export.export(gradix.jit(f))(gradix.ShapeDtypeStruct(export.symbolic_shape("16*n, 2*m"), "float32"))
    read = export.deserialize(e.serialize(vjp_order=1))
    # called with sizes that are open in the program around it, in terms of other variables
    around = export.export(gradix.jit(read.call))(gradix.ShapeDtypeStruct(export.symbolic_shape("32*k, 4"), "float32"))
    for shape in ((16, 6), (32, 4)):
        x = gradix.device_put(np.random.RandomState(0).rand(*shape).astype("f4"), on("x", "y"))
        for call in (e.call, read.call, gradix.jit(read.call), *([around.call] if shape == (32, 4) else [])):
            np.testing.assert_allclose(call(x), gradix.jit(f)(x), rtol=1e-5)
        slopes = [gradix.grad(lambda x, g=g: (g(x) ** 2).sum())(x) for g in (read.call, gradix.jit(f))]
        np.testing.assert_allclose(*slopes, rtol=1e-5)


@pytest.mark.parametrize("wrong", ["n|m", "floordiv(n, 0)|2*m", "n|other", "n|;", "n|*"])
def test_a_file_that_tells_sizes_of_parts_wrongly_is_refused(wrong):
    part = gradix.shard_map(_uses_sizes, mesh=mesh(), in_specs=P("x", "y"), out_specs=P("x", "y"))
    e = export.export(gradix.jit(part))(gradix.ShapeDtypeStruct(export.symbolic_shape("16*n, 2*m"), "float32"))
    text = e.mlir_module()
    assert "4*n|m" in text
    module = xla_artifact.serialize(text.replace("4*n|m", wrong))
    damaged = dataclasses.replace(e, mlir_module_serialized=bytes(module))
    with pytest.raises(ValueError):
        damaged.call(np.ones((16, 6), "f4"))


def test_sizes_that_parts_use_are_open_in_one_trace():
    part = gradix.shard_map(lambda x: x * 2, mesh=mesh(), in_specs=P("x"), out_specs=P("x"))
    f = gradix.jit(part, symbolic="8*n, _")
    assert [f(np.ones((k, 3), "f4")).sum() for k in (8, 16)] == [48, 96] and f.stats().traces == 1


@pytest.mark.parity
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_a_file_with_parts_of_open_sizes_does_not_end_the_process(tmp_path):
    """XLA's refinement ends the process if parts use sizes; the reference implementation writes such files."""
    write = (
        "import jax, sys, numpy as np; from jax import export; from jax.sharding import PartitionSpec as P; n, = export.symbolic_shape('n');"
        "jax.config.update('jax_num_cpu_devices', 2);"
        "mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ('d',)); f = lambda g: jax.shard_map(g, mesh=mesh, in_specs=P('d'), out_specs=P('d'));"
        "[open(sys.argv[1] + str(k), 'wb').write(export.export(jax.jit(f(g)))(jax.ShapeDtypeStruct((2 * n, 3), 'float32')).serialize())"
        " for k, g in enumerate([lambda x: x * 2, lambda x: x + x])]"
    )
    subprocess.run([sys.executable, "-c", write, str(tmp_path / "parts")], check=True, capture_output=True)
    with pytest.raises(ValueError, match="shard_map that uses sizes which are symbolic"):
        export.deserialize((tmp_path / "parts0").read_bytes()).call(np.ones((4, 3), "f4"))
    doubled = export.deserialize((tmp_path / "parts1").read_bytes()).call(np.ones((4, 3), "f4"))
    np.testing.assert_array_equal(doubled, np.full((4, 3), 2))


def test_arrays_on_several_devices_and_no_mesh_are_computed_with():
    part = gradix.shard_map(lambda x: x * 2, mesh=mesh(), in_specs=P("x", "y"), out_specs=P("x", "y"))
    y = export.export(gradix.jit(part))(X).call(X)
    assert not hasattr(y.sharding, "spec")
    doubled = {
        "eager": y + y,
        "jit": gradix.jit(lambda v: v + v)(y),
        "with a named one": y + gradix.device_put(2 * X, on("x", "y")),
        "in place of a whole one": gradix.device_put(2 * X, on()) + y,
        "grad": gradix.grad(lambda v: (v * v).sum())(y),
        "vmap": gradix.vmap(lambda v: v + v)(y),
    }
    for how, z in doubled.items():
        np.testing.assert_allclose(z, 4 * X, err_msg=how)
        assert len(z.sharding.device_set) == 8, how
    for how in ("eager", "jit", "vmap"):  # as it lay, and not gathered
        assert {d.data.shape for d in doubled[how].addressable_shards} == {(2, 4)}, how
    np.testing.assert_allclose(y.sum(0) + y[0], 2 * (X.sum(0) + X[0]))


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_where_arguments_lie_is_exported(kind):
    """Of arguments that lie on a mesh, without in_shardings; along explicit axes results lie as their types say."""
    where = gradix.make_mesh((4, 2), ("x", "y"), axis_types=(gradix.sharding.AxisType[kind],) * 2)
    x = gradix.device_put(X, on("x", "y", where=where))
    part = gradix.shard_map(
        lambda v: lax.psum(v.sum(), ("x", "y")) * v, mesh=where, in_specs=P("x", "y"), out_specs=P("x", "y")
    )
    for function in (lambda v: jnp.sin(v) * v, part):
        for argument in (x, gradix.ShapeDtypeStruct(X.shape, "float32", sharding=x.sharding)):
            e = export.export(gradix.jit(function))(argument)
            assert (e.nr_devices, e._in_named_shardings[0].spec) == (8, P("x", "y"))
            assert [s and s.spec for s in e._out_named_shardings] == ([P("x", "y")] if kind == "Explicit" else [None])
        read = export.deserialize(e.serialize(vjp_order=1))
        total = lambda g: lambda v: (g(v) ** 2).sum()
        want = gradix.grad(total(gradix.jit(function)))(x)
        for program in (e, read):
            for call in (program.call, gradix.jit(program.call)):
                assert call(x).sharding.is_equivalent_to(x.sharding, 2) and gradix.typeof(call(x)) is gradix.typeof(x)
                np.testing.assert_allclose(call(x), gradix.jit(function)(x), rtol=1e-5, atol=1e-5)
            with gradix.set_mesh(where):
                for gradient in (gradix.grad(total(program.call)), gradix.jit(gradix.grad(total(program.call)))):
                    np.testing.assert_allclose(gradient(x), want, rtol=1e-4, atol=1e-4)


def test_the_types_of_an_exported_program_are_divided_over_explicit_axes():
    m = gradix.make_mesh((4, 2), ("x", "y"))
    x = gradix.device_put(np.arange(16.0).reshape(8, 2), gradix.sharding.NamedSharding(m, P("x", None)))
    exported = export.export(gradix.jit(lambda x: x.T * 2))(x)
    for e in (exported, export.deserialize(exported.serialize())):
        assert e.in_avals[0].sharding.spec == P("x", None) and e.out_avals[0].sharding.spec == P(None, "x")
        assert e.in_shardings_jax(m.abstract_mesh)[0].memory_kind == "device"
        np.testing.assert_array_equal(e.call(x), 2 * np.asarray(x).T)
