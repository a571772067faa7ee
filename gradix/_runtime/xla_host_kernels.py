"""Functions of NumPy that compiled programs call by name, through XLA's C interface and ctypes.

A program that calls one can be kept on disk, because it holds a name and no object of this process.
The structures are those of `xla/ffi/api/c_api.h`, which is part of jaxlib and promised to stay
compatible for at least a year. They are read out of one view of all memory, which is much faster
than reading fields of ctypes structures.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from ctypes import c_char, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

import ml_dtypes
import numpy as np

from gradix._base import apart, signals
from gradix._runtime import host_kernels
from gradix._runtime.xla_client import RuntimeFailure
from gradix._runtime.xla_custom_calls import capsule, register, register_as_batch_partitionable
from gradix._stablehlo.calls import HOST_KERNEL

# Each structure begins with its size and a list of extensions. In the formats of `struct`, N is a
# size, P an address, q an integer of 64 bits, and i an int.
_BUFFERS = "NPqPP"  # ..., the number of buffers, their kinds, their addresses
_CALL = struct.Struct("@NPPPi" + _BUFFERS + _BUFFERS)  # ..., interface, context, stage, buffers
_BUFFER = struct.Struct("@NPiPqP")  # ..., dtype, data, rank, dimensions
_API = struct.Struct("@NPNPiiPP")  # ..., the major and minor version, ..., the maker of errors
_Bytes = c_char * (1 << 62)  # An array of any length at an address: no element is checked.
_MEMORY = _Bytes.from_address(0)
# Freeing an untouched block of this size makes glibc keep the end of its heap for the next call
# (docs/kernels.md#how).
_FREED_BLOCK = 31 << 20
_METADATA, _EXECUTE, _INTERNAL = 1, 3, 13  # a kind of extension, a stage, and an error code
_DTYPES = {
    kind: np.dtype(dtype)
    for kind, dtype in {
        1: "bool",
        2: "int8",
        3: "int16",
        4: "int32",
        5: "int64",
        6: "uint8",
        7: "uint16",
        8: "uint32",
        9: "uint64",
        10: "float16",
        11: "float32",
        12: "float64",
        15: "complex64",
        16: ml_dtypes.bfloat16,
        18: "complex128",
    }.items()
}
_HANDLER = ctypes.CFUNCTYPE(c_void_p, c_void_p)


class _Metadata(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("version_size", c_size_t),
        ("version_extension", c_void_p),
        ("major", c_int),
        ("minor", c_int),
        ("traits", c_int),
    ]


class _MetadataQuestion(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", ctypes.POINTER(_Metadata))]


class _ErrorDetails(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p), ("message", c_char_p), ("code", c_int)]


_ERROR_MAKER = ctypes.CFUNCTYPE(c_void_p, ctypes.POINTER(_ErrorDetails))


@functools.lru_cache(None)
def ensure_host_kernels() -> None:
    """Register the functions of `host_kernels`, before a program that calls one is compiled."""
    np.empty(_FREED_BLOCK, np.uint8)
    for name, function in host_kernels.KERNELS.items():
        register_host_kernel(name, function)


def register_host_kernel(name: str, function) -> None:
    """Let programs call `function(*operands, *results)`, with arrays over the program's memory."""
    handler = _handler(function)
    try:
        register(HOST_KERNEL + name, capsule(handler))
        register_as_batch_partitionable(HOST_KERNEL + name)
    except RuntimeFailure as error:
        # This module was imported again, and XLA keeps the first function.
        if "Duplicate" not in str(error):
            raise
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))  # XLA keeps its address for ever.


def _handler(function):
    """The C function that XLA calls to run a Python function."""

    def handle(address):
        (_, extension, api, _, stage, _, _, n, _, operands, _, _, m, _, results) = _CALL.unpack_from(_MEMORY, address)
        if extension and _MetadataQuestion.from_address(extension).type == _METADATA:
            return _describe(extension, api)
        if stage != _EXECUTE:
            return None
        try:
            deferral = signals.current()  # No handler of a signal runs in here.
            if deferral.arrived if deferral is not None else apart.is_abandoned():
                return _error(api, "interrupted")
            function(*_arrays(n, operands), *_arrays(m, results))
        except BaseException as error:  # An exception must not reach the C++ code of XLA.
            return _error(api, f"{type(error).__name__}: {error}")

    return _HANDLER(handle)


def _describe(extension: int, api: int) -> None:
    """Write the version of the interface, which XLA asks for when a function is registered."""
    metadata = _MetadataQuestion.from_address(extension).metadata.contents
    metadata.major, metadata.minor = _API.unpack_from(_MEMORY, api)[4:6]
    metadata.traits = 0


def _arrays(count: int, addresses: int) -> list[np.ndarray]:
    arrays = []
    for address in _reader("P", count)(_MEMORY, addresses):
        _, _, kind, data, rank, dimensions = _BUFFER.unpack_from(_MEMORY, address)
        memory: Any = _Bytes.from_address(data)
        arrays.append(np.ndarray(_reader("q", rank)(_MEMORY, dimensions), _DTYPES[kind], memory))
    return arrays


@functools.lru_cache(None)
def _reader(kind: str, count: int):
    return struct.Struct(f"@{count}{kind}").unpack_from


def _error(api: int, message: str) -> int:
    """A new error object, whose owner is XLA."""
    details = _ErrorDetails(ctypes.sizeof(_ErrorDetails), None, message.encode(), _INTERNAL)
    return _ERROR_MAKER(_API.unpack_from(_MEMORY, api)[-1])(ctypes.byref(details))
