"""Reductions over windows, and their transposes."""
