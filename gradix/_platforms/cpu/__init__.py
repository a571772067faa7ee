"""XLA:CPU, as jaxlib ships it: its rewrites and choices, in the order they are asked."""
from gradix._platforms.cpu import compiling, extrema, powers, products, reductions, sums

REWRITES = (*products.REWRITES, *sums.REWRITES, *extrema.REWRITES, *reductions.REWRITES, *powers.REWRITES)
CHOICES = compiling.CHOICES
