"""`deserialize`, which reads exported functions from files."""

from __future__ import annotations

from collections.abc import Sequence

from gradix.export import serialization
from gradix.export.checks import DisabledSafetyCheck
from gradix.export.exported import Exported


def deserialize(
    blob: bytearray | bytes, *, disabled_checks: Sequence[DisabledSafetyCheck] = (), is_trusted: bool = True
) -> Exported:
    """The exported function in bytes of `Exported.serialize`, of this library or of JAX.

    Reading executes nothing in the bytes, checks that all offsets are within the bytes, and takes
    memory in proportion to them. A program that was read may only call those functions of the
    runtime that are stable, with shapes that fit; this is checked when it is called.

    Args:
        blob: the bytes.
        disabled_checks: `DisabledSafetyCheck.custom_call(name)` for each other function of the
            runtime that the program may call, if you trust who wrote it. What the file itself says
            of it counts for functions only that were registered here by `ffi.register_ffi_target`.
        is_trusted: False for files of strangers, whose digest may be forged: when it is first
            called, the program is read in another process before it is read in this one, because
            the compiler's reader ends the process if the bytes are not a program.

    Raises:
        TypeError: `blob` is not bytes, or `disabled_checks` has something else.
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
            f"deserialize: blob must be bytes, got a {type(blob).__name__}. Read the file by open(path, 'rb').read()."
        )
    checks = list(disabled_checks)
    if not all(isinstance(c, DisabledSafetyCheck) for c in checks):
        raise TypeError(
            f"deserialize: disabled_checks must be a list of DisabledSafetyCheck, got {checks!r}. Write "
            "disabled_checks=[export.DisabledSafetyCheck.custom_call(name)]."
        )
    allowed = frozenset([c.is_custom_call() or "" for c in checks])
    fields, gradient = serialization.read_fields(bytes(blob), is_trusted)
    return serialization.made(Exported, DisabledSafetyCheck, fields, gradient, allowed)
