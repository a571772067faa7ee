"""XLA:CPU, as jaxlib ships it: its rewrites and choices, in the order they are asked."""
from gradix._platforms.cpu import (
    compiling,
    convolutions,
    extrema,
    powers,
    products,
    reductions,
    sparse,
    sums,
    windows,
)

REWRITES = (
    *products.REWRITES, *convolutions.REWRITES, *sums.REWRITES, *extrema.REWRITES, *reductions.REWRITES, *windows.REWRITES,
    *powers.REWRITES, *sparse.REWRITES,
)
CHOICES = compiling.CHOICES
