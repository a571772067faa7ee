"""The registries of the transformations' rules, for libraries that define primitives."""

from gradix.interpreters import (
    ad as ad,
    batching as batching,
    mlir as mlir,
    partial_eval as partial_eval,
    pxla as pxla,
    xla as xla,
)
