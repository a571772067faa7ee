"""What the user calls, on pytrees: jit, grad and its kin, vmap, checkpoint, and ways to look at programs."""
