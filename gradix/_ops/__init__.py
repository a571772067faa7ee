"""First-order primitives, each with all its rules, and their `lax` functions, by family."""
