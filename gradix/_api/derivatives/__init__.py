"""Derivatives on pytrees: grad, jvp, vjp, users' own rules, checkpoints, Jacobians, Taylor series."""
