"""`jit`: signatures, programs, calls, and what can be learnt about them."""
