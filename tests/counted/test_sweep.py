"""Public functions over an axis whose size values decide: none is wrong, and what has no form that works is known."""

import pytest

from tests.counted import sweep
from tests.counted.on_host import on_host

NAMES = sweep.functions()
# Sizes that values decide are refused: for the rank of the result, their factors, or a loop of Python over them.
REFUSED = set(
    "random.double_sided_maxwell scipy.special.bernoulli scipy.linalg.convolution_matrix scipy.linalg.eigh_tridiagonal "
    "scipy.linalg.hadamard scipy.linalg.helmert scipy.linalg.invhilbert scipy.linalg.invpascal scipy.linalg.leslie "
    "scipy.linalg.rsf2csf scipy.signal.csd scipy.signal.istft scipy.signal.stft scipy.signal.welch scipy.sparse.linalg.gmres scipy.stats.dirichlet.logpdf "
    "scipy.stats.dirichlet.pdf".split()
)
# Tried at each run, beside a sample of the others: what was wrong once, or has a rule of its own.
ALWAYS = set(
    "numpy.gradient numpy.fft.irfft numpy.linalg.eig numpy.concatenate numpy.polyval lax.pad lax.top_k lax.linalg.schur "
    "lax.linalg.tridiagonal_solve scipy.linalg.toeplitz scipy.signal.convolve scipy.fft.idct scipy.stats.rankdata scipy.stats.mode scipy.linalg.companion".split()
)


@pytest.fixture(scope="module", autouse=True)
def _on_host():
    with on_host():
        yield


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ALWAYS or i % 96 == 5 else pytest.mark.slow) for i, n in enumerate(NAMES)]
)
@pytest.mark.filterwarnings("ignore")
def test_no_function_is_wrong(name):
    found = sweep.outcome(name)
    assert not {form: v for form, v in found.items() if v.startswith("wrong")}
    # a size of nothing that a function gives otherwise than its other sizes shows as one that does not fit
    assert not {form: v for form, v in found.items() if "ncompatible shapes" in v}
    assert (sweep.kind_of(found) == "refused") == (name in REFUSED), found


def test_the_sweep_finds_what_is_not_masked(monkeypatch):
    """Without the fills of masking, sums of all elements are wrong: the sweep tells."""
    from gradix._api.counted.masking import Sizes

    monkeypatch.setattr(Sizes, "filled", lambda S, x, *_: x)
    assert sweep.kind_of(sweep.outcome("scipy.special.logsumexp")) == "wrong"
