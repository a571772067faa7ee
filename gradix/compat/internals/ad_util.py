"""`jax._src.ad_util`: what derivatives are made of."""
from gradix.interpreters.ad import Zero as Zero
from gradix.lax import add_any_p as add_jaxvals_p, stop_gradient_p as stop_gradient_p

__all__ = ["Zero", "add_jaxvals_p", "stop_gradient_p"]
