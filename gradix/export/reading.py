"""`deserialize`: reads exported functions from files."""

from __future__ import annotations

from gradix.export import serialization
from gradix.export.checks import DisabledSafetyCheck
from gradix.export.exported import Exported


def deserialize(blob: bytearray | bytes) -> Exported:
    """Read an exported function from bytes of `Exported.serialize`, of this library or of JAX.

    Reading executes nothing in the bytes, and checks that all offsets in them lie within them.

    Raises:
        ValueError: the bytes are damaged, are no exported function, or have a version that this
            library does not read.

    Example:
        >>> import gradix
        >>> from gradix import export
        >>> blob = export.export(gradix.jit(lambda x: 2 * x))(1.0).serialize()
        >>> export.deserialize(blob).call(3.0)
        Array(6., dtype=float32)
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"deserialize takes bytes, got {type(blob).__name__}. Read the file with open(path, "
            "'rb').read()."
        )
    fields, gradient = serialization.read_fields(bytes(blob))
    return serialization.made(Exported, DisabledSafetyCheck, fields, gradient)
