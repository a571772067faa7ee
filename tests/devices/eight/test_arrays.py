"""Arrays over eight devices: where they lie, their parts, and what eager operations make of them."""

import pickle

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental.layout import Format, Layout
from gradix.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
from tests.devices.eight.common import mesh, on, sharded

X = np.arange(16.0, dtype=np.float32).reshape(8, 2)


def test_meshes():
    m = mesh()
    assert m.shape == {"x": 4, "y": 2} and m.size == 8 and m.axis_types == (AxisType.Auto,) * 2
    assert m == mesh() and hash(m) == hash(mesh()) and m != mesh((2, 4))
    assert m.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert m.abstract_mesh == m.abstract_mesh and m.abstract_mesh.shape_tuple == (("x", 4), ("y", 2))
    assert AbstractMesh((4, 2), ("x", "y")) == pickle.loads(pickle.dumps(AbstractMesh((4, 2), ("x", "y"))))
    assert gradix.make_mesh((2,), ("a",)).axis_types == (AxisType.Explicit,)
    for wrong in (
        lambda: Mesh(gradix.devices(), ("x", "y")),
        lambda: gradix.make_mesh((4, 4), ("x", "y")),
        lambda: AbstractMesh((2,), ("x", "y")),
        lambda: Mesh([gradix.devices()[0]] * 2, "x"),
    ):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        (P("x"), (2, 2)),
        (P(None, "y"), (8, 1)),
        (P(("x", "y")), (1, 2)),
        (P(), (8, 2)),
        (P("x", "y"), (2, 1)),
        (P(("y", "x")), (1, 2)),
    ],
)
def test_parts(spec, shape):
    m = mesh()
    s = NamedSharding(m, spec)
    a = gradix.device_put(X, s)
    assert s.shard_shape((8, 2)) == shape and a.sharding == s and a.committed and a.is_fully_addressable
    assert (
        a.is_fully_replicated == (shape == (8, 2))
        and len(a.addressable_shards) == 8
        and a.devices() == set(gradix.devices())
    )
    for part in a.addressable_shards:
        assert part.data.shape == shape and part.data.devices() == {part.device}
        np.testing.assert_array_equal(part.data, X[part.index])
    assert sorted([p.replica_id for p in a.global_shards]) == sorted(
        [i for _ in range(16 // int(np.prod(shape)) or 1) for i in range(8 // (16 // int(np.prod(shape))))]
    )
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(a.addressable_data(3), X[a.addressable_shards[3].index])


def test_shardings_that_do_not_fit():
    m = mesh()
    for wrong, match in (
        (lambda: on(m, "z"), "not found in mesh"),
        (lambda: on(m, "x", "x"), "duplicate"),
        (lambda: gradix.device_put(np.zeros(7), on(m, "x")), "dimension size is 7"),
        (lambda: gradix.device_put(np.zeros(()), on(m, "x")), "rank at least 1"),
        (lambda: NamedSharding(m, P("x"), memory_kind="disk"), "memory kind"),
    ):
        with pytest.raises(ValueError, match=match):
            wrong()
    with pytest.raises(TypeError, match="PartitionSpec"):
        NamedSharding(m, "x")


def test_equivalent_shardings():
    m, other = mesh(), mesh(names=("a", "b"))
    assert on(m, "x").is_equivalent_to(on(m, "x", None), 2) and on(m, "x") != on(m, "x", None)
    assert on(m, "x").is_equivalent_to(on(other, "a"), 2) and not on(m, "x").is_equivalent_to(on(m, "y"), 2)


def test_eager_operations_stay_where_their_operands_lie():
    m = mesh()
    a = sharded(X, m, "x")
    for out, value, spec in (
        (a + 1, X + 1, P("x")),
        (a.T, X.T, P(None, "x")),
        (a.sum(), X.sum(), P()),
        (a * 2.0, X * 2, P("x")),
        (jnp.sin(a), np.sin(X), P("x")),
        (a @ a.T, X @ X.T, P("x")),
        (a[2:4], X[2:4], None),
    ):
        np.testing.assert_allclose(out, value, rtol=1e-5)
        assert out.committed and (spec is None or out.sharding.is_equivalent_to(NamedSharding(m, spec), out.ndim)), (
            out.sharding
        )
    whole = sharded(X[0], m)
    assert (whole + 1).sharding.is_fully_replicated and (whole + 1).committed
    np.testing.assert_array_equal(a + whole, X + X[0])
    np.testing.assert_array_equal(gradix.grad(lambda v: (v**2).sum())(a), 2 * X)
    assert gradix.grad(lambda v: (v**2).sum())(a).sharding.is_equivalent_to(on(m, "x"), 2)


def test_single_devices():
    second, third = gradix.devices()[1:3]
    b = gradix.device_put(jnp.ones(3), second)
    assert (
        b.sharding == SingleDeviceSharding(second)
        and (b + 1).devices() == {second}
        and (b[0] * 2).devices() == {second}
    )
    assert jnp.ones(3).devices() == {gradix.devices()[0]} and not (jnp.ones(3) + 1).committed
    assert gradix.jit(lambda x, y: x * y)(b, jnp.ones(3)).devices() == {second}
    with pytest.raises(ValueError, match=r"incompatible devices.*\[1\].*\[2\]"):
        b + gradix.device_put(jnp.ones(3), third)
    with pytest.raises(ValueError, match="incompatible devices"):
        gradix.jit(lambda x, y: x * y)(b, sharded(X, mesh(), "x")[:, 0][:3])
    with gradix.default_device(third):
        assert (jnp.ones(3) + 1).devices() == {third} and not (jnp.ones(3) + 1).committed
        assert gradix.jit(lambda x: x + 1)(1.0).devices() == {third}
    assert gradix.jit(lambda x: x + 1, device=third)(1.0).devices() == {third}


def test_arrays_from_parts():
    m = mesh()
    made = gradix.make_array_from_callback((8, 2), on(m, "x", "y"), lambda i: X[i])
    np.testing.assert_array_equal(made, X)
    parts = [
        gradix.device_put(X[i * 2 : i * 2 + 2, j : j + 1], gradix.devices()[2 * i + j])
        for i in range(4)
        for j in range(2)
    ]
    joined = gradix.make_array_from_single_device_arrays((8, 2), on(m, "x", "y"), parts[::-1])
    np.testing.assert_array_equal(joined, X)
    np.testing.assert_array_equal(joined + made, 2 * X)
    local = gradix.make_array_from_process_local_data(on(m, "x"), X)
    assert local.sharding == on(m, "x")
    for wrong in (
        lambda: gradix.make_array_from_single_device_arrays((8, 2), on(m, "x", "y"), parts[:3]),
        lambda: gradix.make_array_from_single_device_arrays((8, 4), on(m, "x", "y"), parts),
        lambda: gradix.make_array_from_callback((8, 2), on(m, "x"), lambda i: X),
    ):
        with pytest.raises(ValueError):
            wrong()
    split = gradix.device_put_sharded(list(X), gradix.devices())
    np.testing.assert_array_equal(split, X)
    assert split.addressable_shards[3].data.shape == (1, 2)
    assert gradix.device_put_replicated(X, gradix.devices()).shape == (8, 8, 2)


def test_device_put_of_trees():
    m = mesh()
    out = gradix.device_put({"a": X, "b": (X, 1.0)}, {"a": on(m, "x"), "b": gradix.devices()[5]})
    assert out["a"].sharding == on(m, "x") and out["b"][1].devices() == {gradix.devices()[5]}
    moved = gradix.device_put(out["a"], on(m, None, "y"))
    np.testing.assert_array_equal(moved, X)
    with gradix.set_mesh(m):
        assert gradix.device_put(X, P("y")).sharding == on(m, "y")
    with pytest.raises(ValueError, match="set a mesh"):
        gradix.device_put(X, P("y"))
    with pytest.raises(ValueError, match="tree prefix"):
        gradix.device_put({"a": X}, {"b": on(m)})
    gone = sharded(X, m, "x")
    gradix.device_put(gone, on(m, "y"), donate=True)
    assert gone.is_deleted()


def test_transfer_guard():
    with gradix.transfer_guard("disallow_explicit"), pytest.raises(RuntimeError, match="Disallowed host-to-device"):
        gradix.device_put(X, gradix.devices()[1])


def test_the_mesh_in_force():
    m = mesh()
    assert gradix.sharding.get_mesh().empty and gradix.sharding.get_abstract_mesh().axis_names == ()
    with gradix.set_mesh(m):
        z = jnp.zeros((8, 2))
        assert z.sharding.is_equivalent_to(on(m), 2) and (z + 1).committed
        assert gradix.sharding.get_mesh() == m and gradix.sharding.get_abstract_mesh() == m.abstract_mesh
    assert gradix.sharding.get_mesh().empty
    with pytest.raises(ValueError, match=r"Expected mesh of type"):
        gradix.set_mesh(m.abstract_mesh)


def test_the_number_of_devices_does_not_change_under_arrays():
    a = sharded(X, mesh(), "x")
    with pytest.raises(RuntimeError, match=r"float32\[8,2\] on \[0, 1, 2, 3, 4, 5, 6, 7\]"):
        gradix.config.update("jax_num_cpu_devices", 4)
    assert a.shape == (8, 2) and len(gradix.devices()) == 8


def test_arrays_like_another_lie_where_it_does():
    m = mesh()
    x = sharded(np.ones((8, 4), "float32"), m, "x", "y")
    for make in (jnp.zeros_like, jnp.ones_like, lambda a: jnp.full_like(a, 3, dtype="int16")):
        assert make(x).sharding == x.sharding

    class Parameter:
        shape, dtype = x.shape, x.dtype

        def __jax_array__(self):
            return x

    assert jnp.zeros_like(Parameter()).sharding == x.sharding
    alone = gradix.device_put(np.ones(3), gradix.devices()[3])
    assert jnp.zeros_like(alone, shape=2).devices() == {gradix.devices()[0]}


def test_constraints_by_format():
    wanted = Format(Layout((0, 1)), on(mesh(), "x", None))
    x = np.ones((8, 4), "float32")
    for constrained in (lax.with_sharding_constraint, gradix.jit(lax.with_sharding_constraint, static_argnums=1)):
        assert constrained(jnp.asarray(x), wanted).sharding.is_equivalent_to(wanted.sharding, 2)


def test_fetching_begins_for_arrays_that_are_on_devices_only():
    a = gradix.jit(lambda x: x + 1)(sharded(np.zeros((8, 4), np.float32), mesh(), "x", "y"))
    assert a.copy_to_host_async() is None and a.addressable_data(3).copy_to_host_async() is None
    np.testing.assert_array_equal(a, np.ones((8, 4)))
    a.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        a.copy_to_host_async()


def test_capsules_hold_arrays_of_one_device():
    for x in (sharded(X, mesh(), "x"), sharded(X, mesh())):
        for take in (np.from_dlpack, lambda a: a.__dlpack__(), lambda a: a.__dlpack_device__()):
            with pytest.raises(BufferError, match="singular device.*over 8 devices.*np.asarray"):
                take(x)
        np.testing.assert_array_equal(np.from_dlpack(x.addressable_data(0)), np.asarray(x.addressable_data(0)))
    np.testing.assert_array_equal(np.from_dlpack(gradix.device_put(X, gradix.devices()[1])), X)
