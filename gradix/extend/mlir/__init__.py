"""MLIR's Python bindings, as the compiler brings them: for lowering rules that build operations."""

from gradix.extend.mlir import (
    dialects as dialects,
    ir as ir,
    passmanager as passmanager,
)
