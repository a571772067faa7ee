"""Slices, gathers and scatters."""

from gradix._ops.indexing import scatter as _scatter  # the adjoint of a gather is one
