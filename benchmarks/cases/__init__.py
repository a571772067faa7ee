"""The cases, by group; importing this package registers them in the order of the table."""

# isort: skip
from benchmarks.cases import eager, eager_functions, grad, trace, dispatch, imports, kernels, loops, orders

# isort: skip
from benchmarks.cases import (
    convolutions,
    startup,
    reported,
    scaling,
    transforms,
    devices,
    sparse,
    counted,
    odes,
    models,
    exporting,
    pallas,
)
