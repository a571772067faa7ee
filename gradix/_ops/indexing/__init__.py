"""Slices, gathers and scatters."""

from gradix._ops.indexing import scatter as _scatter  # sets the transpose rule of gather
