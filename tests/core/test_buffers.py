"""Arrays lend their memory to Python's buffer protocol."""

import sys

import numpy as np
import pytest

from gradix import jit, numpy as jnp, random
from gradix._core import seams

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python classes lend memory from 3.12 on")


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "bool", "float32", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_memoryview_shows_the_array(dtype, shape):
    x = (jnp.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)
    view = memoryview(x)
    assert view.readonly and view.c_contiguous and view.shape == shape
    assert view.nbytes == x.nbytes and view.itemsize == x.dtype.itemsize
    assert view.tobytes() == np.asarray(x).tobytes()
    np.testing.assert_array_equal(np.frombuffer(x, dtype) if x.size else np.zeros(0), np.asarray(x).ravel())
    assert np.asarray(x).dtype == dtype and np.asarray(x).shape == shape


def test_computed_arrays_lend_the_memory_that_numpy_sees():
    x = jit(lambda v: v * 2)(jnp.arange(3))
    assert memoryview(x).tolist() == [0, 2, 4]
    assert np.shares_memory(np.asarray(memoryview(x)), np.asarray(x))


def test_the_memory_stays_while_a_view_of_it_is_held():
    view = memoryview(jnp.arange(1000) + 1)
    assert view[999] == 1000


def test_nobody_writes_through_a_view():
    with pytest.raises(TypeError):
        memoryview(jnp.arange(3))[0] = 1
    with pytest.raises(TypeError, match="read-write"), open(__file__, "rb") as source:
        source.readinto(jnp.arange(3))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4"])
def test_dtypes_without_a_format_say_so_and_still_convert(dtype):
    x = jnp.arange(3).astype(dtype)
    with pytest.raises(BufferError, match=dtype):
        memoryview(x)
    assert np.asarray(x).dtype == x.dtype and np.asarray(x).tolist() == [0, 1, 2]


def test_what_has_no_memory_to_lend_raises():
    with pytest.raises(TypeError):
        memoryview(random.key(0))
    with pytest.raises(TypeError):
        jit(memoryview)(jnp.arange(3))


def test_bytes_of_an_array():
    x = jnp.array([1, 515], "int16")
    assert bytes(x) == np.array([1, 515], "int16").tobytes()
    assert bytearray(jnp.arange(2, dtype="int8")) == b"\x00\x01"


class Stop(BaseException):
    """What a handler of signals may raise while the value is fetched."""


@pytest.fixture
def fetching_stops(monkeypatch):
    """An array whose value is on the device only, the first fetch of which is interrupted."""
    x, fetch, left = jit(lambda v: v * 2)(jnp.arange(3)), seams.fetch, [Stop("now")]
    x._host = None

    def stopped(array):
        if left:
            raise left.pop()
        return fetch(array)

    monkeypatch.setattr(seams, "fetch", stopped)
    return x


def test_numpy_does_not_drop_an_interrupt(fetching_stops):
    """NumPy asks for the buffer, drops its exception, and asks for the array: the second question raises it."""
    with pytest.raises(Stop, match="now"):
        np.asarray(fetching_stops)
    assert np.asarray(fetching_stops).tolist() == [0, 2, 4]


def test_an_interrupt_that_was_seen_is_not_raised_again(fetching_stops):
    with pytest.raises(Stop, match="now"):
        memoryview(fetching_stops)
    assert np.asarray(fetching_stops).tolist() == fetching_stops.__array__().tolist() == [0, 2, 4]
