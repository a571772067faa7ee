"""Symbolic dimensions: integer polynomials that stand for sizes of arrays, with their bounds."""
