"""The operations of MLIR's dialect `builtin`."""

from gradix._runtime.xla_mlir import dialect


def __getattr__(name: str):
    return getattr(dialect("builtin"), name)


def __dir__():
    return dir(dialect("builtin"))
