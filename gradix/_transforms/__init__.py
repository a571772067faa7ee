"""Interpreters of programs: staging, jvp, linearize, transpose, batch, dead and repeated code."""
