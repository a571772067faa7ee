"""MLIR's dialects, of whose operations lowering rules build programs."""

from gradix.extend.mlir.dialects import (
    arith as arith,
    chlo as chlo,
    func as func,
    stablehlo as stablehlo,
)
