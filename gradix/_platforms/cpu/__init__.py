"""XLA:CPU, as jaxlib ships it: its rewrites and choices, in the order they are asked."""
from gradix._platforms.cpu import (
    compiling,
    convolutions,
    extrema,
    powers,
    products,
    reductions,
    sums,
    windows,
)

REWRITES = (
    *products.REWRITES, *convolutions.REWRITES, *sums.REWRITES, *extrema.REWRITES, *reductions.REWRITES, *windows.REWRITES,
    *powers.REWRITES,
)
CHOICES = compiling.CHOICES
