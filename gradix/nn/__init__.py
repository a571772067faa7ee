"""Functions of neural networks: activations, softmax and its like, attention, initializers.

Example:
    >>> import gradix.numpy as jnp
    >>> from gradix import nn
    >>> nn.relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
"""

from gradix.nn.activations import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    hard_sigmoid as hard_sigmoid,
    hard_silu as hard_silu,
    hard_swish as hard_swish,
    hard_tanh as hard_tanh,
    identity as identity,
    leaky_relu as leaky_relu,
    log1mexp as log1mexp,
    log_sigmoid as log_sigmoid,
    mish as mish,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    soft_sign as soft_sign,
    softplus as softplus,
    sparse_plus as sparse_plus,
    sparse_sigmoid as sparse_sigmoid,
    squareplus as squareplus,
    swish as swish,
    tanh as tanh,
)
from gradix.nn.attention import dot_product_attention as dot_product_attention
from gradix.nn.normalization import (
    log_softmax as log_softmax,
    logmeanexp as logmeanexp,
    logsumexp as logsumexp,
    one_hot as one_hot,
    softmax as softmax,
    standardize as standardize,
)
from gradix._base.lazy import on_demand as _on_demand
from gradix._base.listing import listing as _listing

with _on_demand(globals()):
    from gradix.nn import initializers as initializers
    from gradix.nn.scaled import (
        get_scaled_dot_general_config as get_scaled_dot_general_config,
        scaled_dot_general as scaled_dot_general,
        scaled_matmul as scaled_matmul,
    )

__dir__ = _listing(__name__, "initializers")
