"""NumPy's loops under names that compiled programs call: XLA's C interface for foreign functions, by way of ctypes.

A program that calls one can be kept on disk, as it names it and holds no object of this process.
The structures are those of `xla/ffi/api/c_api.h`, which is part of jaxlib and kept compatible for a
year at least; they are read out of one view of all memory, in a tenth of the time that fields of
ctypes structures take.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from ctypes import c_char, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

import ml_dtypes
import numpy as np

from gradix._runtime import host_kernels
from gradix._runtime.xla_client import RuntimeFailure
from gradix._runtime.xla_custom_calls import register
from gradix._stablehlo.structured import HOST_KERNEL

# Each structure begins with its size and a list of extensions. N: a size, P: an address, q: 64
# bits, i: an int.
_BUFFERS = "NPqPP"  # how many, their kinds, their addresses
# interface, context, stage, operands, results
_CALL = struct.Struct("@NPPPi" + _BUFFERS + _BUFFERS)
_BUFFER = struct.Struct("@NPiPqP")  # dtype, data, rank, dimensions
# its version, with a head of its own; ...; the maker of errors
_API = struct.Struct("@NPNPiiPP")
_Bytes = c_char * (1 << 62)  # at any address as many as are asked for
# out of which structures are read by address
_MEMORY = _Bytes.from_address(0)
# A block of this size, freed untouched, makes glibc keep up to twice as much of its heap for the
# next call. Otherwise the heap's end goes back to the system, and each sort fetches it again page
# by page.
_KEPT = 31 << 20
# a kind of extension, a stage, the code of an error
_METADATA, _EXECUTE, _INTERNAL = 1, 3, 13
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
    _fields_ = [
        ("struct_size", c_size_t),
        ("type", c_int),
        ("next", c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    ]


class _ErrorDetails(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("message", c_char_p),
        ("code", c_int),
    ]


_ERROR_MAKER = ctypes.CFUNCTYPE(c_void_p, ctypes.POINTER(_ErrorDetails))


@functools.lru_cache(None)
def ensure_host_kernels() -> None:
    """Make the functions of `host_kernels` known to XLA, before a program that calls one is made or loaded."""
    np.empty(_KEPT, np.uint8)
    for name, function in host_kernels.KERNELS.items():
        register_host_kernel(name, function)


def register_host_kernel(name: str, function) -> None:
    """Let programs call `function(*operands, *results)`, on arrays that show the program's own memory."""
    handler = _handler(function)
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
    try:
        register(HOST_KERNEL + name, capsule(ctypes.cast(handler, c_void_p), None, None))
    except RuntimeFailure as error:
        # the module was imported anew: XLA keeps the first
        if "Duplicate" not in str(error):
            raise
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))  # XLA has its address for good


def _handler(function):
    """The C function that XLA calls."""

    def handle(address):
        (_, extension, api, _, stage, _, _, n, _, operands, _, _, m, _, results) = (
            _CALL.unpack_from(_MEMORY, address)
        )
        if extension and _MetadataQuestion.from_address(extension).type == _METADATA:
            return _describe(extension, api)
        if stage != _EXECUTE:
            return None
        try:
            function(*_arrays(n, operands), *_arrays(m, results))
        except BaseException as error:  # none may pass through XLA
            return _error(api, f"{type(error).__name__}: {error}")

    return _HANDLER(handle)


def _describe(extension: int, api: int) -> None:
    """Tell the version of the interface; XLA asks while a function is registered."""
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
    """An error object, which XLA comes to own."""
    details = _ErrorDetails(ctypes.sizeof(_ErrorDetails), None, message.encode(), _INTERNAL)
    return _ERROR_MAKER(_API.unpack_from(_MEMORY, api)[-1])(ctypes.byref(details))
