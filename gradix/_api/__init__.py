"""What users call, on pytrees: jit, grad, vmap, checkpoint, …, and ways to look at programs."""
