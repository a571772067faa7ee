"""XLA:CPU, as jaxlib ships it: its rewrites and choices, in the order they are asked."""
from gradix._platforms.cpu import (
    compiling,
    convolutions,
    counts,
    elementwise,
    exactness,
    extrema,
    matrix_stacks,
    products,
    random_bits,
    reductions,
    running_reductions,
    sorting,
    sparse,
    sums,
    windows,
)

REWRITES = (
    *products.REWRITES, *convolutions.REWRITES, *sums.REWRITES, *extrema.REWRITES, *reductions.REWRITES,
    *running_reductions.REWRITES, *windows.REWRITES, *sorting.REWRITES, *counts.REWRITES, *matrix_stacks.REWRITES,
    *random_bits.REWRITES, *elementwise.REWRITES, *exactness.REWRITES, *sparse.REWRITES,
)
CHOICES = compiling.CHOICES
