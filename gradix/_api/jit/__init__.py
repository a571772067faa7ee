"""`jit`: signatures, compiled programs, calls, and statistics about them."""
