"""`jax._src.dispatch`: waiting for what programs do besides their results."""
from gradix import effects_barrier as wait_for_tokens

__all__ = ["wait_for_tokens"]
