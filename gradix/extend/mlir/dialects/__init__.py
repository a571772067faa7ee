"""The dialects lowering rules build operations of."""

from gradix.extend.mlir.dialects import (
    arith as arith,
    chlo as chlo,
    func as func,
    stablehlo as stablehlo,
)
