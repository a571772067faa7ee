"""Symbolic dimensions: integer polynomials that stand for sizes of arrays, and what is known of them."""
