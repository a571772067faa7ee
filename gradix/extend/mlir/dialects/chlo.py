"""The operations of MLIR's dialect `chlo`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("chlo").__getattr__, dialect("chlo").__dir__
