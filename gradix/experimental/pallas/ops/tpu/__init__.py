"""Kernels under the names of those for TPUs; they run on any platform."""
