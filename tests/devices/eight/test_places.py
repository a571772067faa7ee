"""Where results lie: on the device of what they are made of, on the default device, in the memory that was asked for."""

import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import PartitionSpec as P, SingleDeviceSharding
from tests.devices.eight.common import mesh, on

X = np.arange(32.0, dtype=np.float32).reshape(8, 4)


def lies(x) -> tuple:
    return sorted(d.id for d in x.devices()), x.committed


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "copy", "sin", "asarray", "array"])
def test_what_is_like_an_array_lies_with_it(name):
    f = getattr(jnp, name)
    assert lies(f(jnp.asarray(X))) == ([0], False)
    assert lies(f(gradix.device_put(X, gradix.devices()[0]))) == ([0], True)
    assert lies(f(gradix.device_put(X, gradix.devices()[3]))) == ([3], True)
    divided = f(gradix.device_put(X, on(mesh(), "x")))
    assert divided.sharding.is_equivalent_to(on(mesh(), "x"), 2) and divided.committed


@pytest.mark.parametrize(
    "draw",
    [
        lambda k: gradix.random.normal(k, (3,)),
        lambda k: gradix.random.uniform(k),
        lambda k: gradix.random.randint(k, (2,), 0, 5),
        lambda k: gradix.random.choice(k, 5),
        lambda k: gradix.random.split(k),
        lambda k: gradix.random.fold_in(k, 1),
    ],
)
def test_random_numbers_lie_with_their_key(draw):
    key = gradix.random.key(4)
    assert lies(draw(key)) == ([0], False)
    far = draw(gradix.device_put(key, gradix.devices()[3]))
    assert lies(far) == ([3], True)
    plain = draw(key)
    data = gradix.random.key_data if isinstance(plain.dtype, type(key.dtype)) else np.asarray
    np.testing.assert_array_equal(data(far), data(plain))


def test_new_arrays_are_on_the_default_device():
    with gradix.default_device(gradix.devices()[2]):
        for x in (
            jnp.ones(3),
            jnp.asarray(X),
            jnp.array([1, 2]),
            gradix.device_put(X),
            jnp.arange(3),
            gradix.random.key(0),
        ):
            assert lies(x) == ([2], False)
        assert lies(jnp.ones(2) + gradix.device_put(np.ones(2, np.float32), gradix.devices()[4])) == ([4], True)
        assert lies(jnp.asarray(gradix.device_put(X, gradix.devices()[1]))) == ([1], True)
    assert lies(jnp.asarray(X)) == ([0], False)


def test_memories():
    host, device = gradix.memory.Space.Host, gradix.memory.Space.Device
    x = gradix.device_put(X, host)
    assert x.sharding == SingleDeviceSharding(gradix.devices()[0], memory_kind="pinned_host") and x.committed
    assert gradix.device_put(x, device).sharding.memory_kind == "device"
    both = gradix.device_put({"a": gradix.device_put(X, on(mesh(), "x")), "b": 1.0}, {"a": host, "b": device})
    assert both["a"].sharding == on(mesh(), "x").with_memory_kind("pinned_host")
    np.testing.assert_array_equal(gradix.jit(lambda v: gradix.device_put(v * 2, host))(X), 2 * X)


def test_memory_is_shared_or_given_up():
    x = jnp.ones(8) * 2
    with pytest.raises(ValueError, match="may_alias and donate cannot be True"):
        gradix.device_put(x, gradix.devices()[0], donate=True, may_alias=True)
    with pytest.raises(ValueError, match="must match the dtype"):
        gradix.make_array_from_callback((8, 4), on(mesh(), "x"), lambda i: X[i], dtype=np.float16)
    assert lax.full_like(x, 3.0).tolist() == [3.0] * 8 and P() == P()


PROGRAM = """
import sys, importlib
import numpy as np
J = importlib.import_module(sys.argv[1])
J.config.update("jax_num_cpu_devices", 8)
jnp, s = importlib.import_module(sys.argv[1] + ".numpy"), importlib.import_module(sys.argv[1] + ".sharding")
D, P = J.devices(), s.PartitionSpec
mesh = s.Mesh(np.array(D).reshape(4, 2), ("x", "y"))
X = np.arange(32.0, dtype=np.float32).reshape(8, 4)
on = lambda *spec: s.NamedSharding(mesh, P(*spec))
puts = {"host": lambda: jnp.asarray(X), "first": lambda: J.device_put(X, D[0]), "third": lambda: J.device_put(X, D[3]),
        "x": lambda: J.device_put(X, on("x")), "xy": lambda: J.device_put(X, on("x", "y")), "whole": lambda: J.device_put(X, on())}
doing = {"+1": lambda a: a + 1, "T": lambda a: a.T, "sum": lambda a: a.sum(0), "row": lambda a: a[0], "column": lambda a: a[:, 1],
         "flat": lambda a: a.reshape(32), "cast": lambda a: a.astype("int32"), "copy": lambda a: jnp.copy(a), "vmap": J.vmap(lambda r: r * 2),
         "grad": J.grad(lambda a: (a ** 2).sum()), "jit": J.jit(lambda a: a * 2), "like": jnp.zeros_like, "put": J.device_put,
         "with host": lambda a: a + jnp.ones((8, 4)), "stack": lambda a: jnp.stack([a, jnp.ones((8, 4))])}
for name, put in puts.items():
    for what, f in doing.items():
        y = f(put())
        spec = getattr(y.sharding, "spec", None)
        print(name, what, sorted(d.id for d in y.devices()), y.committed, y.is_fully_replicated, y.is_fully_addressable,
              [(h.device.id, h.index, h.replica_id) for h in y.addressable_shards][:3] if len(y.devices()) == 1 else
              sorted((h.device.id, str(h.index)) for h in y.addressable_shards))
    for other, there in puts.items():
        try:
            y = put() + there()
            print(name, other, sorted(d.id for d in y.devices()), y.committed)
        except ValueError as e:
            print(name, other, str(e)[:60])
"""


@pytest.mark.parity
def test_places_are_those_of_the_reference():
    pytest.importorskip("jax")
    ours, theirs = [
        subprocess.run([sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, timeout=200)
        for name in ("gradix", "jax")
    ]
    assert ours.returncode == theirs.returncode == 0, ours.stderr[-2000:] + theirs.stderr[-2000:]
    assert len(ours.stdout.splitlines()) == 6 * 21 and ours.stdout.splitlines() == theirs.stdout.splitlines()
