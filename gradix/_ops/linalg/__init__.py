"""Factorizations and solutions of linear systems, by LAPACK."""
