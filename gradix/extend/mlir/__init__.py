"""MLIR's Python bindings from jaxlib, for lowering rules that build operations."""

from gradix.extend.mlir import (
    dialects as dialects,
    ir as ir,
    passmanager as passmanager,
)
