"""Arrays to the device and back."""

import gc

import ml_dtypes
import numpy as np
import pytest

from gradix._core.aval import make_aval
from gradix._core.dtypes import KEY, float0
from gradix._runtime import xla

NAMES = [
    "bool",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
]


def aval_of(x):
    return make_aval(x.shape, x.dtype)


def put(x, **kw):
    return xla.put(x, aval_of(x), **kw)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (5,), (3, 7), (130, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_round_trip(name, shape):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = np.asarray(np.random.default_rng(0).integers(0, 4, shape)).astype(dtype)
    if name in ("int2", "int4"):
        x = (x.astype(np.int8) - np.int8(2)).astype(dtype)
    got = xla.get(put(x))
    assert got.dtype == dtype and got.shape == shape and got.tobytes() == x.tobytes()
    assert not got.flags.writeable


@pytest.mark.parametrize("n", [8, 1 << 20])
def test_later_writes_to_the_source_are_not_seen(n):
    x = np.ones(n, "f4")
    b = put(x)
    x[:] = 7
    assert (xla.get(b) == 1).all()


def test_aligned_owned_memory_is_shared():
    raw = np.zeros((1 << 20) + 64, np.uint8)
    start = -raw.ctypes.data % 64
    x = raw[start : start + (1 << 20)].view("f4")
    b = put(x, owned=True)
    assert xla.unsafe_buffer_pointer(b) == x.ctypes.data
    assert xla.unsafe_buffer_pointer(put(x)) != x.ctypes.data


def test_strides_and_byte_order():
    x = np.arange(24, dtype="f4").reshape(4, 6)
    for y in (x.T, x[::-1], x[:, ::2], np.asfortranarray(x), np.broadcast_to(x[0], (5, 6))):
        np.testing.assert_array_equal(xla.get(put(y)), y)
    big = x.astype(">f4")
    np.testing.assert_array_equal(xla.get(xla.put(big, aval_of(x))), x)


def test_a_wrong_type_is_refused():
    aval = make_aval((8,), np.dtype("f4"))
    with pytest.raises(TypeError, match="dtype float64 as float32"):
        xla.put(np.zeros(8), aval)
    with pytest.raises(ValueError, match=r"shape \(4,\) as one of shape \(8,\)"):
        xla.put(np.zeros(4, "f4"), aval)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int4"])
def test_values_outlive_their_buffer(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = np.arange(100_000) % 8
    x = x.astype(np.int8).astype(dtype)
    b = put(x)
    got = xla.get(b)
    view = got[10:]
    del b, got
    gc.collect()
    others = [put(np.zeros_like(x)) for _ in range(4)]
    np.testing.assert_array_equal(view.astype("f4"), x[10:].astype("f4"))
    del others


def test_keys_are_stored_as_uint64():
    x = np.array([1, 1 << 63], np.uint64)
    np.testing.assert_array_equal(xla.get(xla.put(x, make_aval((2,), KEY))), x)


def test_float0_is_stored_as_false():
    got = xla.get(xla.put(np.zeros((2, 3), float0), make_aval((2, 3), float0)))
    assert got.dtype == bool and got.shape == (2, 3) and not got.any()


def test_delete():
    for dtype in ("f4", ml_dtypes.bfloat16):
        b = put(np.ones(3, dtype))
        assert not xla.is_deleted(b)
        xla.delete(b)
        assert xla.is_deleted(b)
        with pytest.raises(RuntimeError, match="Array has been deleted"):
            xla.get(b)


def test_ready():
    b = xla.block_until_ready(put(np.ones(3)))
    assert xla.is_ready(b)


def test_dlpack():
    x = np.arange(6, dtype="f4").reshape(2, 3)
    b = put(x)
    back = xla.from_dlpack(xla.to_dlpack(b))
    assert xla.unsafe_buffer_pointer(back) == xla.unsafe_buffer_pointer(b)
    np.testing.assert_array_equal(xla.get(back), x)


def test_absurd_sizes_raise():
    x = np.broadcast_to(np.float32(1), (1 << 45,))
    with pytest.raises(xla.RuntimeFailure, match="Out of memory"):
        put(x)


def test_devices():
    d = xla.devices()[0]
    assert (d.platform, d.device_kind, d.id, d.process_index) == ("cpu", "cpu", 0, 0)
    assert d in xla.local_devices() and repr(d) == "CpuDevice(id=0)"
    with pytest.raises(RuntimeError, match="already started"):
        xla.configure(num_devices=2)
