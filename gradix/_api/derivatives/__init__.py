"""Derivatives on pytrees: grad, jvp, vjp, users' rules, checkpoints, Jacobians, Taylor series."""
