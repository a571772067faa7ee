"""Devices, device_put and device_get, shardings on one device, partition specs."""

import pickle

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._runtime import placement
from gradix.sharding import PartitionSpec as P, SingleDeviceSharding


def test_counts():
    assert gradix.device_count() == len(gradix.devices()) == gradix.local_device_count()
    assert (gradix.process_index(), gradix.process_count(), gradix.process_indices()) == (0, 1, [0])
    assert gradix.default_backend() == "cpu" and gradix.devices("cpu") == gradix.local_devices(backend="cpu")
    with pytest.raises(RuntimeError, match="Unknown backend: 'gpu'.*cpu"):
        gradix.devices("gpu")
    with pytest.raises(ValueError, match="Unknown process_index 7"):
        gradix.local_devices(process_index=7)


def test_device_put():
    device = gradix.devices()[0]
    out = gradix.device_put({"a": 1, "b": np.ones(3)}, device)
    assert out["b"].committed and out["b"].devices() == {device} and out["b"].sharding == SingleDeviceSharding(device)
    assert not gradix.device_put(1.0).committed
    both = gradix.device_put([1.0, 2.0], [SingleDeviceSharding(device), None])
    assert [x.committed for x in both] == [True, False]
    assert float(gradix.grad(lambda x: gradix.device_put(x, device) ** 2)(3.0)) == 6.0
    assert jnp.ones(3, device=device).committed


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: gradix.device_put(1.0, 3), ValueError, "got 3 of type int"),
        (lambda: gradix.device_put({"a": 1.0}, {"b": None}), ValueError, "tree prefix"),
        (lambda: gradix.device_put("text"), TypeError, "not a valid JAX type"),
    ],
)
def test_device_put_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("transform", [gradix.jit, gradix.grad, gradix.vmap], ids=["jit", "grad", "vmap"])
def test_device_get_leaves_traced_values_traced(transform):
    def squares(x):
        return gradix.device_get({"x": x})["x"] * x

    assert np.array_equal(
        transform(squares)(jnp.float32(3) if transform is not gradix.vmap else jnp.full(2, 3.0)),
        6 if transform is gradix.grad else np.full(2, 9.0) if transform is gradix.vmap else 9,
    )


def test_device_get_and_waiting():
    got = gradix.device_get({"a": jnp.arange(3), "b": 2})
    assert type(got["a"]) is np.ndarray and got["b"] == 2
    tree = {"a": 1, "b": jnp.ones(2)}
    assert gradix.block_until_ready(tree) is tree and gradix.copy_to_host_async(tree) is tree
    assert gradix.effects_barrier() is None


def test_live_arrays():
    x = gradix.device_put(np.full(7, 3.0, np.float32), gradix.devices()[0])
    assert any(a.shape == (7,) for a in gradix.live_arrays()) and x.shape == (7,)


def test_members_of_arrays():
    x = jnp.ones((2, 3))
    (shard,) = x.addressable_shards
    assert shard.index == (slice(None),) * 2 and shard.data.shape == (2, 3)
    assert x.is_fully_addressable and x.is_fully_replicated and x.addressable_data(0).shape == (2, 3)
    assert x.device == gradix.devices()[0] and isinstance(x.device, gradix.Device)
    with pytest.raises(AttributeError, match="on no device yet"):
        gradix.jit(lambda x: x.sharding)(x)


def test_single_device_sharding():
    s = SingleDeviceSharding(gradix.devices()[0])
    assert s == SingleDeviceSharding(gradix.devices()[0]) and hash(s) == hash(SingleDeviceSharding(gradix.devices()[0]))
    assert s.shard_shape((3, 4)) == (3, 4) and s.num_devices == 1 and s.memory_kind == "device"
    assert s.devices_indices_map((3,)) == {gradix.devices()[0]: (slice(None),)}
    assert s.is_fully_addressable and s.is_equivalent_to(s.with_memory_kind("device"), 1)


def test_partition_spec():
    spec = P("a", None, ("b", "c"))
    assert repr(spec) == "P('a', None, ('b', 'c'))" and tuple(spec) == ("a", None, ("b", "c"))
    assert spec == P("a", None, ("b", "c")) and hash(spec) == hash(P("a", None, ("b", "c")))
    assert P(("a",)) == P("a") != P("a", None) and len(spec) == 3 and spec[0] == "a"
    assert spec + P("z") == P("a", None, ("b", "c"), "z") and spec.index(None) == 1 and spec.count("a") == 1
    assert repr(P("a", unreduced={"b"})) == "P('a', unreduced={'b'})" and repr(P.UNCONSTRAINED) == "UNCONSTRAINED"
    assert pickle.loads(pickle.dumps(spec)) == spec and not isinstance(spec, tuple)


@pytest.mark.parametrize("how", ["captured", "an argument"])
def test_arrays_for_programs_of_committed_ones_are_put_once(how, monkeypatch):
    indices = jnp.asarray(np.arange(64)[::-1].copy())
    take = (lambda x, i: x[indices]) if how == "captured" else (lambda x, i: x[i])
    f, x = gradix.jit(take), gradix.device_put(np.arange(64.0), gradix.devices()[0])
    moved = []
    put_on = placement.put_on
    monkeypatch.setattr(placement, "put_on", lambda a, sharding: moved.append(a) or put_on(a, sharding))
    for _ in range(3):
        out = f(x, indices)
        assert out.tolist() == list(range(64))[::-1] and out.committed
    assert not moved


def test_environment_info(capsys):
    text = gradix.print_environment_info(return_string=True)
    assert "gradix:" in text and "jaxlib:" in text and "numpy:" in text
    assert gradix.print_environment_info() is None and "python:" in capsys.readouterr().out
