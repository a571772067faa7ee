"""Functions and objects of Python beside the devices of their arguments: where they run, and what they refuse."""

import threading

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.colocated_python import colocated_cpu_devices, colocated_python, colocated_python_class
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

DEVICE = gradix.devices()[0]
MESH = Mesh(np.array([DEVICE]), ("x",))
SHARDING = NamedSharding(MESH, P())


def test_cpu_devices_stand_for_themselves():
    assert colocated_cpu_devices((DEVICE,)) == [DEVICE]
    mesh = colocated_cpu_devices(MESH)
    assert mesh == MESH


def test_a_function_sees_values_and_keeps_the_place():
    seen = []

    def double(x, *, by):
        seen.append((float(x), threading.get_ident()))
        return {"y": x * by, "none": None, "n": 3}

    x = gradix.device_put(2.0, SHARDING)
    out = colocated_python(double)(x, by=x)
    assert seen == [(2.0, threading.get_ident())]
    assert out["y"] == 4 and out["y"].sharding == SHARDING and out["none"] is None and out["n"] == 3


@pytest.mark.x32
def test_specs_are_compared_and_results_put_there():
    spec = gradix.ShapeDtypeStruct((), jnp.float32, sharding=SHARDING)
    given = []
    add = colocated_python(lambda x, y: x + y).specialize(in_specs=((spec, spec), {}))
    add = add.specialize(out_specs_fn=lambda *specs: given.append(specs) or spec)
    x = gradix.device_put(1.0, DEVICE)
    y = add(x, x)
    assert y == 2 and y.sharding == SHARDING
    assert [s.sharding for s in given[0]] == [SingleDeviceSharding(DEVICE)] * 2
    with pytest.raises(
        ValueError, match=r"in_specs of .* says float32\[\] at \[0\]\[1\], and the argument there is int32\[\]"
    ):
        add(x, gradix.device_put(1, DEVICE))
    with pytest.raises(ValueError, match="in_specs .* the argument tuple with 1 child"):
        add(x)
    with pytest.raises(ValueError, match="in_specs is already specified"):
        add.specialize(in_specs=((spec,), {}))
    wrong = colocated_python(lambda x: (x, x)).specialize(out_specs_fn=lambda x: x)
    with pytest.raises(TypeError, match="out_specs_fn .* the result tuple with 2 children"):
        wrong(x)
    with pytest.raises(TypeError, match=r"says float32\[\] at its top, and the result there is int32\[\]"):
        colocated_python(lambda x: x.astype(int)).specialize(out_specs_fn=lambda x: x)(x)


def test_functions_without_arguments_need_devices():
    f = colocated_python(lambda: jnp.zeros(2))
    with pytest.raises(ValueError, match=r"without arrays.*specialize\(devices="):
        f()
    assert f.specialize(devices=[DEVICE])().shape == (2,)
    with pytest.raises(ValueError, match="devices is empty"):
        f.specialize(devices=[])


def test_what_has_no_values_or_no_place_is_refused():
    f = colocated_python(lambda x, *, y=None: x)
    with pytest.raises(TypeError, match=r"args\[0\]\['k'\] is of type ndarray"):
        f({"k": np.ones(2)})
    with pytest.raises(TypeError, match=r"kwargs\['y'\] is of type int"):
        f(jnp.ones(2), y=1)
    with pytest.raises(TypeError, match="pure_callback"):
        gradix.jit(f)(1.0)


def test_an_object_lives_from_its_first_call_as_long_as_what_stands_for_it():
    events = []

    @colocated_python_class
    class Counter:
        """Counts its calls."""

        def __init__(self, start, step=1):
            events.append("made")
            self.count, self.step = start, step

        def add(self, x):
            self.count += self.step
            return x + self.count

        def __del__(self):
            events.append("gone")

    never, counter, x = Counter(0), Counter(10, step=2), jnp.int32(1)
    assert events == [] and Counter.__name__ == "Counter" and Counter.__doc__ == "Counts its calls."
    assert [int(counter.add(x)), int(counter.add(x))] == [13, 15] and events == ["made"]
    del never, counter
    assert events == ["made", "gone"]
    with pytest.raises(ValueError, match="without arrays"):
        Counter(0).add()
