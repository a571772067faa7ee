"""What a function costs on an accelerator, from its program alone: operations, memory, communication.

Example:
    >>> import gradix, gradix.numpy as jnp
    >>> from gradix.experimental import roofline
    >>> x = gradix.ShapeDtypeStruct((8, 8), jnp.float32)
    >>> _, cost = roofline.roofline(lambda x: jnp.sin(x @ x))(x)
    >>> cost.flops, cost.unfused_flops, cost.hbm_bytes
    (1024, 1088, 768)
"""

from gradix._base.listing import listing as _listing
from gradix.experimental.roofline import rooflines as _rooflines  # noqa: F401  (fills the table)
from gradix.experimental.roofline.roofline import (
    RooflineResult as RooflineResult,
    RooflineRuleContext as RooflineRuleContext,
    RooflineShape as RooflineShape,
    register_roofline as register_roofline,
    register_standard_roofline as register_standard_roofline,
    roofline as roofline,
    roofline_and_grad as roofline_and_grad,
)

__dir__ = _listing(__name__)
