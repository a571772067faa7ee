"""The operations of MLIR's dialect `sparse_tensor`."""

from gradix._runtime.xla_mlir import dialect

__getattr__, __dir__ = dialect("sparse_tensor").__getattr__, dialect("sparse_tensor").__dir__
