"""Specs and shardings that contradict types, meshes or each other, and the specs that results have."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec as P, reshard

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def made(sizes, names, *kinds):
    return gradix.make_mesh(sizes, names, axis_types=kinds)


# -- jit and with_sharding_constraint ---------------------------------------------------------------


def test_shardings_of_jit_are_checked_when_it_is_made():
    for option in ("in_shardings", "out_shardings"):
        with pytest.raises(TypeError, match=f"{option} leaf.*'x' of type str"):
            gradix.jit(lambda x: x, **{option: "x"})
        open_spec = NamedSharding(made((1,), ("x",), AUTO), P(P.UNCONSTRAINED, "x"))
        with pytest.raises(ValueError, match=f"Unconstrained dims.*{option}"):
            gradix.jit(lambda x: x, **{option: (open_spec,)})


def test_constraints_on_meshes_without_devices_need_arrays_with_some():
    mesh = made((2,), ("x",), AUTO)
    abstract = NamedSharding(mesh.abstract_mesh, P("x"))
    with pytest.raises(ValueError, match="requires an Array.*ndarray"):
        lax.with_sharding_constraint(np.arange(8), abstract)
    with pytest.raises(TypeError, match="must have a NamedSharding"):
        lax.with_sharding_constraint(jnp.arange(8), abstract)
    placed = gradix.device_put(np.arange(8), NamedSharding(mesh, P("x")))
    assert lax.with_sharding_constraint(placed, abstract).sharding.spec == P("x")


@pytest.mark.parametrize("check_vma", [True, False])
def test_constraints_in_shard_map_name_no_manual_axes(check_vma):
    mesh = made((2, 2), ("i", "j"), AUTO, AUTO)

    def run(spec, names):
        def part(x):
            return lax.with_sharding_constraint(x, NamedSharding(mesh, spec)) * 2

        options = {"in_specs": P("i"), "out_specs": P("i"), "axis_names": names, "check_vma": check_vma}
        return gradix.jit(gradix.shard_map(part, mesh=mesh, **options))(jnp.arange(16.0).reshape(4, 4))

    for spec in (P("i", "j"), P("i")):
        with pytest.raises(ValueError, match="manual axes"):
            run(spec, {"i"})
    with pytest.raises(ValueError, match="manual axes"):
        run(P(None, "j"), {"i", "j"})
    np.testing.assert_array_equal(run(P(None, "j"), {"i"}), 2 * np.arange(16.0).reshape(4, 4))


# -- shard_map and smap -----------------------------------------------------------------------------


def test_equal_parts_are_not_summed():
    with gradix.set_mesh(made((2, 2), ("x", "y"), EXPLICIT, EXPLICIT)):
        a, b = (np.arange(8.0, dtype="float32").reshape(s) for s in ((2, 4), (4, 2)))

        def product(in_specs):
            given = [gradix.device_put(v, s) for v, s in zip((a, b), in_specs)]
            f = gradix.shard_map(lambda a, b: a @ b, out_specs=P("x", None, unreduced={"y"}))
            return gradix.jit(f)(*given)

        with pytest.raises(ValueError, match="add the whole again.*pcast"):
            product((P("x", None), P(None, None)))
        np.testing.assert_array_equal(reshard(product((P("x", "y"), P("y", None))), P()), a @ b)


@pytest.mark.parametrize("staged", [False, True])
def test_smap_divides_arguments_as_it_is_told(staged):
    x = np.arange(32.0, dtype="float32").reshape(4, 8)
    with gradix.set_mesh(made((2, 2, 2), ("x", "y", "z"), EXPLICIT, EXPLICIT, EXPLICIT)):

        def inner(v):
            assert gradix.typeof(v).mat.varying == v.mat.varying == {"x", "y"}
            return v * v

        outer = gradix.smap(gradix.smap(inner, in_axes=0, out_axes=0, axis_name="y"), out_axes=0, axis_name="x")
        got = (gradix.jit(outer) if staged else outer)(gradix.device_put(x, P("x", "y")))
        np.testing.assert_array_equal(got, x * x)
        undivided = gradix.smap(lambda v: v + 1, in_axes=1, out_axes=1, axis_name="z")
        np.testing.assert_array_equal((gradix.jit(undivided) if staged else undivided)(x), x + 1)


# -- vmap -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("staged", [False, True])
def test_mapped_axes_are_divided_alike(staged):
    with gradix.set_mesh(made((2, 2), ("x", "y"), EXPLICIT, EXPLICIT)):
        x = gradix.device_put(np.arange(16).reshape(8, 2), P("x", None))
        y = gradix.device_put(np.arange(16).reshape(2, 8), P(None, "y"))

        def run(*args, **options):
            f = gradix.vmap(lambda a, b: a @ b, **options)
            return (gradix.jit(f) if staged else f)(*args)

        with pytest.raises(ValueError, match="divided differently, over 'x' and over 'y'"):
            run(x, y, in_axes=(0, 1))
        with pytest.raises(ValueError, match="spmd_axis_name='y' contradicts"):
            run(x, x, spmd_axis_name="y")
        assert run(x, x, spmd_axis_name="x").sharding.spec == P("x")


def test_updates_of_rows_divided_as_asked():
    with gradix.set_mesh(made((2,), ("x",), EXPLICIT)):
        x, i = np.arange(12.0, dtype="float32").reshape(4, 3), np.array([0, 2, 1, 2])

        def move(row, at):
            kept = gradix.typeof(row).sharding
            return row.at[at].set(row.at[0].get(out_sharding=kept) + 1, out_sharding=kept)

        got = gradix.jit(gradix.vmap(move))(gradix.device_put(x, P("x")), gradix.device_put(i, P("x")))
        want = x.copy()
        want[np.arange(4), i] = x[:, 0] + 1
        np.testing.assert_array_equal(got, want)
        assert got.sharding.spec == P("x", None)


# -- the specs of results ---------------------------------------------------------------------------


def test_results_without_axes_have_no_entries():
    sharding = NamedSharding(made((1, 2), ("x", "y"), AUTO, AUTO), P("x"))
    x = gradix.device_put(np.arange(16).reshape(8, 2), sharding)
    assert jnp.sum(x).sharding.spec == P()
    assert jnp.sum(x).sharding != x.sharding


def test_specs_on_partly_explicit_meshes_have_an_entry_for_each_axis():
    mesh = made((2, 2, 2), ("x", "y", "z"), AUTO, EXPLICIT, EXPLICIT)
    with gradix.set_mesh(mesh):
        asked = NamedSharding(mesh, P(("y", "z"), None))
        got = gradix.jit(lambda: lax.broadcasted_iota("int32", (16, 24), 1, out_sharding=asked))()
        assert got.sharding == asked
        assert gradix.jit(lambda: jnp.ones((4, 4)))().sharding.spec == P(None, None)


def test_random_bits_are_divided_as_asked():
    with gradix.set_mesh(made((2,), ("x",), EXPLICIT)):
        key = np.arange(1, 5, dtype="uint32")

        def draw(key):
            return lax.rng_bit_generator(key, (4, 8), out_sharding=P("x"))

        (state, bits), (staged_state, staged_bits) = draw(key), gradix.jit(draw)(key)
        assert bits.sharding.spec == staged_bits.sharding.spec == P("x", None)
        np.testing.assert_array_equal(bits, staged_bits)
        np.testing.assert_array_equal(state, staged_state)


@pytest.mark.parametrize("staged", [False, True])
def test_zero_cotangents_of_reduced_arrays_are_unreduced(staged):
    with gradix.set_mesh(made((2,), ("x",), EXPLICIT)):
        x = reshard(np.arange(8.0, dtype="float32"), P(reduced={"x"}))
        f = gradix.grad(lambda x, y: y.sum(), (0, 1))
        for ct, want in zip((gradix.jit(f) if staged else f)(x, x), (0.0, 1.0)):
            assert gradix.typeof(ct).sharding.spec == P(None, unreduced={"x"})
            np.testing.assert_array_equal(reshard(ct, P()), np.full(8, want))


def test_summands_are_printed_without_their_sum():
    with gradix.set_mesh(made((2,), ("x",), EXPLICIT)):
        x = gradix.device_put(jnp.arange(8.0, dtype="float32"), P("x"))
        total = lax.reduce_sum(x, [0], out_sharding=P(unreduced={"x"}))
        for text in (str(total), repr(total)):
            assert text.startswith("Array(shape=(), dtype=float32, sharding=NamedSharding(")
            assert "unreduced={'x'}" in text


def test_meshes_without_axes_are_empty():
    for mesh in (Mesh(np.empty((), object), []), AbstractMesh((), ())):
        assert mesh.empty and mesh.size == 0
        assert mesh.abstract_mesh.empty and mesh.abstract_mesh.size == 0


def test_specs_have_no_subclasses():
    with pytest.raises(TypeError, match="cannot be subclassed, as Own does"):
        type("Own", (P,), {})


@pytest.mark.parametrize("order", ["grad", "jit of map", "map of jit"])
def test_examples_over_an_axis_that_the_function_sums_over(order):
    """Without types the gradient sums over all axes that specs leave out, and must not mix examples."""
    mesh = made((2, 2), ("x", "y"), AUTO, AUTO)

    def part(x):
        return jnp.sin(lax.psum(jnp.sum(jnp.cos(x)), "y"))

    f = gradix.grad(gradix.shard_map(part, mesh=mesh, in_specs=P("y"), out_specs=P(), check_vma=False))
    x = np.arange(16.0, dtype="float32").reshape(4, 4)
    placed = gradix.device_put(x, NamedSharding(mesh, P("x", "y")))
    whole = gradix.vmap(gradix.jit(f) if order == "map of jit" else f, spmd_axis_name="x")
    got = (gradix.jit(whole) if order == "jit of map" else whole)(placed)
    want = gradix.vmap(gradix.grad(lambda x: jnp.sin(jnp.cos(x).sum())))(x)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_gradients_of_summands():
    with gradix.set_mesh(made((2,), ("x",), EXPLICIT)):
        summands = reshard(jnp.arange(8.0), P(unreduced={"x"}))
        for join in (jnp.concatenate, jnp.stack):
            f = gradix.grad(lambda x, y, join=join: join([x, y]).sum())
            got = gradix.jit(f)(summands, summands)
            assert got.sharding.spec == P(None, reduced={"x"})
            np.testing.assert_array_equal(got, np.ones(8))
        reduced = gradix.device_put(np.arange(8.0, dtype="float32"), P(reduced={"x"}))
        rounded = gradix.jit(gradix.grad(lambda x: lax.reduce_precision(x, 8, 7).sum()))(reduced)
        assert rounded.sharding.spec == P(None, unreduced={"x"})
        np.testing.assert_array_equal(reshard(rounded, P()), np.ones(8))
