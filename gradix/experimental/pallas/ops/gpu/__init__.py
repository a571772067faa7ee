"""Kernels under the names of those for GPUs; they run on any platform."""
