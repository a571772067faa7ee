"""Generated cases whose answers were recorded from JAX, and compared with them."""
