"""`deserialize`, which reads exported functions from files."""

from __future__ import annotations

from gradix.export import serialization
from gradix.export.checks import DisabledSafetyCheck
from gradix.export.exported import Exported


def deserialize(blob: bytearray | bytes) -> Exported:
    """The exported function in bytes of `Exported.serialize`, of this library or of JAX.

    Reading executes nothing in the bytes, and checks that all offsets are within the bytes.

    Raises:
        TypeError: `blob` is not bytes.
        ValueError: the bytes are damaged, are not an exported function, or of a version that this
            library cannot read.

    Example:
        >>> import gradix
        >>> from gradix import export
        >>> blob = export.export(gradix.jit(lambda x: 2 * x))(1.0).serialize()
        >>> export.deserialize(blob).call(3.0)
        Array(6., dtype=float32)
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"deserialize: blob must be bytes, got a {type(blob).__name__}. Read the file by "
            "open(path, 'rb').read()."
        )
    fields, gradient = serialization.read_fields(bytes(blob))
    return serialization.made(Exported, DisabledSafetyCheck, fields, gradient)
