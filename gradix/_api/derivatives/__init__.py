"""Derivatives on pytrees: grad and its kin, of the user's own, checkpoints, Jacobians, Hessians, Taylor series."""
