"""XLA:CPU, as jaxlib ships it: its rewrites and choices, in the order they are asked."""
from gradix._platforms.cpu import (
    compiling,
    convolutions,
    elementwise,
    exactness,
    extrema,
    products,
    reductions,
    sums,
    windows,
)

REWRITES = (
    *products.REWRITES, *convolutions.REWRITES, *sums.REWRITES, *extrema.REWRITES, *reductions.REWRITES, *windows.REWRITES,
    *elementwise.REWRITES, *exactness.REWRITES,
)
CHOICES = compiling.CHOICES
