"""`vmap` and what maps use: chunks, rules of the user's own, collectives."""
