"""Interpreters of programs: staging, jvp, linearize and transpose, batch, dead code, common subexpressions."""
