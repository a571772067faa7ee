"""Special functions.

Example:
    >>> from gradix.scipy import special
    >>> special.expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
"""
from gradix.nn.normalization import logsumexp as logsumexp
from gradix.scipy.special.entropies import (
    entr as entr,
    kl_div as kl_div,
    rel_entr as rel_entr,
    xlog1py as xlog1py,
    xlogy as xlogy,
)
from gradix.scipy.special.errors import (
    erf as erf,
    erfc as erfc,
    erfinv as erfinv,
    expit as expit,
    log_ndtr as log_ndtr,
    log_softmax as log_softmax,
    logit as logit,
    ndtr as ndtr,
    ndtri as ndtri,
    softmax as softmax,
)
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
