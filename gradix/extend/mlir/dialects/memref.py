"""The operations of MLIR's dialect `memref`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("memref").__getattr__, dialect("memref").__dir__
