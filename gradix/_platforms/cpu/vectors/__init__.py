"""Elementary functions as formulas of float vectors, for programs compiled for CPUs."""
