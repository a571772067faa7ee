"""Gradix beside JAX and NumPy: `python -m benchmarks` compares time, `python -m benchmarks.memory` watches memory."""
