"""Error, gamma, beta, Bessel and zeta functions."""
