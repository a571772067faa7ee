"""Slices, gathers and scatters."""
