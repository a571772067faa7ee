"""Transfers of arrays between the host and a device."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib import _jax

from gradix._base.bounded import BoundedCache
from gradix._runtime.pending import PendingBuffer, real
from gradix._runtime.xla_client import RuntimeFailure, place
from gradix._stablehlo.types import storage_dtype


class Physical:
    """The physical type of a buffer, with the attributes that jaxlib's C++ code reads."""

    __slots__ = ("shape", "dtype", "weak_type", "ndim")

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.weak_type, self.ndim = shape, dtype, False, len(shape)


_physicals: BoundedCache = BoundedCache(1 << 16)
_ALIASES, _COPIES = (_jax.HostBufferSemantics.ZERO_COPY, _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)
_SMALL = 1 << 16
_FEW = 1 << 12
_ALIGNMENT = 64  # bytes; XLA copies other memory of the host
_bit_widths: dict[np.dtype, int] = {}


def physical(aval) -> Physical:
    """The physical type of an array's buffer, which is made once per aval."""
    found = _physicals.get(aval)
    if found is None:
        found = _physicals.keep(aval, Physical(tuple(aval.shape), storage_dtype(aval.dtype)))
    return found


def aligned(shape: tuple, dtype: np.dtype) -> np.ndarray:
    """An array of zeros whose memory is aligned so that XLA uses it without a copy."""
    size = prod(shape) * dtype.itemsize
    raw = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -raw.__array_interface__["data"][0] % _ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


def put(array: np.ndarray, aval, device=None, owned: bool = False):
    """A buffer with the value of a NumPy array.

    Args:
        array: an array of the aval's shape and physical dtype, of any strides and byte order.
        aval: the type of the array.
        device: the device; by default the first.
        owned: whether nobody will write to `array` any more, so that the buffer may share its
            memory.

    Raises:
        RuntimeFailure: the device has not enough memory.
    """
    kind, where = physical(aval), place(device)
    if array.dtype != kind.dtype:
        if array.dtype.names:  # float0
            array = np.zeros(array.shape, bool)
        elif array.dtype.newbyteorder("=") != kind.dtype:
            raise TypeError(
                f"cannot store an array of dtype {array.dtype} as {kind.dtype}. Convert it with astype first."
            )
        array, owned = array.astype(kind.dtype, copy=False), True
    if array.shape != kind.shape:
        raise ValueError(
            f"cannot store an array of shape {array.shape} as one of shape {kind.shape}. Reshape it first."
        )
    share = owned and (array.nbytes < _SMALL or array.__array_interface__["data"][0] % _ALIGNMENT == 0)
    return _jax.batched_device_put(
        kind, where.sharding, [array], where.list, True, False, _ALIASES if share else _COPIES, enable_x64=True
    )


def get(buffer) -> np.ndarray:
    """A buffer's value as a read-only NumPy array, without a copy if possible.

    The call waits until the value is computed.

    Raises:
        RuntimeError: the buffer was deleted or donated.
        RuntimeFailure: the computation of the value failed.
    """
    try:
        return np.asarray(memoryview(buffer))
    except BufferError:
        return _get_exotic(buffer)
    except TypeError:
        if type(buffer) is not PendingBuffer:
            raise
    return get(buffer.real())


def is_at(buffer, array: np.ndarray) -> bool:
    """Whether a buffer shares an array's memory; False if that is unknown.

    The buffer's `unsafe_buffer_pointer` is not used, because it imports jax.
    """
    try:
        return (
            np.asarray(memoryview(real(buffer))).__array_interface__["data"][0] == array.__array_interface__["data"][0]
        )
    except BufferError:
        return False


def _get_exotic(buffer) -> np.ndarray:
    """The value of a buffer of a dtype that the buffer protocol lacks, read from its memory."""
    aval = buffer.aval
    if buffer.is_deleted():
        raise RuntimeError(
            f"Array has been deleted with shape={aval.dtype.name}[{','.join(map(str, aval.shape))}]. "
            "Keep a copy of values that are needed later."
        )
    buffer.block_until_ready()
    # The host cannot read other devices' memory, and strings lie apart from their array.
    if buffer.platform() != "cpu" or aval.dtype.kind in "TO":
        return buffer._single_device_array_to_np_array_did_copy()[0]
    bits, order = _bits(aval.dtype), buffer._pjrt_layout._xla_layout().minor_to_major()[::-1]
    shape = [aval.shape[k] for k in order]  # as the bytes lie
    if bits == 8 * aval.dtype.itemsize:
        array = _memory(buffer, aval.dtype.itemsize * prod(shape)).view(aval.dtype).reshape(shape)
    else:
        array = _unpack(_memory(buffer, -(-prod(shape) * bits // 8)), shape, aval.dtype, bits)
    array.setflags(write=False)
    return array.transpose(np.argsort(order)) if len(shape) > 1 else array


def _memory(buffer, size: int) -> np.ndarray:
    """The bytes of a buffer: a copy if they are few, else a view that keeps the buffer alive.

    While the view lives, the buffer cannot be donated.
    """
    if size <= _FEW:
        return np.frombuffer(ctypes.string_at(buffer.unsafe_buffer_pointer(), size), np.uint8)
    view: Any = (ctypes.c_char * size).from_address(buffer.unsafe_buffer_pointer())
    try:
        view.keep = _jax.buffer_to_dlpack_managed_tensor(buffer)
    except RuntimeFailure:
        view.keep = buffer  # DLPack has no type for this dtype.
        return np.frombuffer(view, np.uint8).copy()
    return np.frombuffer(view, np.uint8)


def _bits(dtype: np.dtype) -> int:
    """The bits of an element in device memory, where elements of narrow dtypes are packed."""
    found = _bit_widths.get(dtype)
    if found is None:
        info = ml_dtypes.iinfo if "int" in dtype.name else ml_dtypes.finfo
        found = _bit_widths[dtype] = 8 * dtype.itemsize if dtype.isbuiltin == 1 else info(dtype).bits
    return found


def _unpack(raw: np.ndarray, shape: Sequence[int], dtype: np.dtype, bits: int) -> np.ndarray:
    """Elements of 2 or 4 bits, packed from the lowest bits on, as an array with one per byte."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (raw[:, None] >> shifts & np.uint8((1 << bits) - 1)).reshape(-1)[: prod(shape)]
    if dtype.name.startswith("float"):
        return codes.view(dtype).reshape(shape)
    if dtype.name.startswith("int"):
        sign = np.uint8(1 << (bits - 1))
        return ((codes ^ sign).view(np.int8) - sign.view(np.int8)).astype(dtype).reshape(shape)
    return codes.astype(dtype).reshape(shape)


def block_until_ready(buffer):
    """Wait until a buffer is computed, and return it."""
    buffer.block_until_ready()
    return buffer


def copy_to_host_async(buffer) -> None:
    """Begin to copy a buffer to the host, from devices whose memory the host cannot read."""
    if type(buffer) is PendingBuffer and not buffer.is_ready():
        return  # The host reads the memory of the only device with pending buffers.
    for part in buffer._arrays:
        if part.platform() != "cpu":
            part._copy_single_device_array_to_host_async()


def is_ready(buffer) -> bool:
    """Whether a buffer is computed."""
    return buffer.is_ready()


def delete(buffer) -> None:
    """Free a buffer's device memory at once."""
    buffer.delete()


def is_deleted(buffer) -> bool:
    """Whether a buffer was deleted or donated."""
    return buffer.is_deleted()


def unsafe_buffer_pointer(buffer) -> int:
    """The address of a buffer's memory, which is valid only while the buffer lives."""
    return buffer.unsafe_buffer_pointer()


def to_dlpack(buffer, stream: int | None = None):
    """A DLPack capsule that shares a buffer's memory."""
    return _jax.buffer_to_dlpack_managed_tensor(real(buffer), stream)


def from_dlpack(capsule, device=None, copy: bool | None = None):
    """A buffer over the memory of a DLPack capsule."""
    return _jax.dlpack_managed_tensor_to_buffer(capsule, place(device).device, None, copy)
