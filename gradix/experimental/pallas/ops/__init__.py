"""Kernels that are ready to use: softmax, normalisations, products and attention, on any platform."""
