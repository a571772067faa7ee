"""Special functions.

Example:
    >>> from gradix.scipy import special
    >>> special.expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
"""

from gradix.nn.normalization import logsumexp as logsumexp
from gradix.scipy.special.bessels import bessel_jn as bessel_jn, i0 as i0, i0e as i0e, i1 as i1, i1e as i1e
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
from gradix.scipy.special.exponentials import (
    boxcox as boxcox,
    boxcox1p as boxcox1p,
    exp1 as exp1,
    expi as expi,
    expn as expn,
    sici as sici,
    spence as spence,
)
from gradix.scipy.special.faddeeva import (
    dawsn as dawsn,
    erfcx as erfcx,
    fresnel as fresnel,
    owens_t as owens_t,
    wofz as wofz,
)
from gradix.scipy.special.gammas import (
    beta as beta,
    betainc as betainc,
    betaln as betaln,
    comb as comb,
    digamma as digamma,
    factorial as factorial,
    gamma as gamma,
    gammainc as gammainc,
    gammaincc as gammaincc,
    gammaln as gammaln,
    gammasgn as gammasgn,
    loggamma as loggamma,
    multigammaln as multigammaln,
    poch as poch,
    polygamma as polygamma,
    zeta as zeta,
)
from gradix.scipy.special.hypergeometric import hyp1f1 as hyp1f1, hyp2f1 as hyp2f1
from gradix.scipy.special.legendre import (
    bernoulli as bernoulli,
    lpmn as lpmn,
    lpmn_values as lpmn_values,
    sph_harm_y as sph_harm_y,
)
from gradix._base.listing import listing as _listing

__dir__ = _listing(__name__)
