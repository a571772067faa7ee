"""The operations of MLIR's dialect `vector`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("vector").__getattr__, dialect("vector").__dir__
