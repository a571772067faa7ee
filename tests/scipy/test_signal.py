"""scipy.signal against SciPy, with derivatives, stacks, the shortest signals, and what it refuses."""

import warnings

import numpy as np
import pytest
import scipy.signal as reference

import gradix
import gradix.numpy as jnp
from gradix.scipy import signal
from gradix.test_util import check_grads
from tests.same import assert_same

RNG = np.random.default_rng(7)
MODES = ["full", "same", "valid"]


def draw(*shape, complex_=False):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if complex_ else x


@pytest.fixture(autouse=True)
def _wide():
    with gradix.enable_x64(True):
        yield


SHAPES = [
    ((7,), (3,)),
    ((3,), (6,)),
    ((1,), (1,)),
    ((5, 4), (2, 3)),
    ((2, 2), (4, 5)),
    ((3, 4, 5), (2, 2, 3)),
    ((), ()),
    ((2, 3, 2, 4), (2, 1, 2, 2)),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_convolutions(shapes, mode):
    for complex_ in (False, True):
        x, y = draw(*shapes[0], complex_=complex_), draw(*shapes[1], complex_=complex_)
        for method in ("direct", "fft"):
            for name in ("convolve", "correlate"):
                got = getattr(signal, name)(x, y, mode, method)
                want = (
                    getattr(reference, name)(x, y, mode, "direct")
                    if shapes[0]
                    else x * (y if name == "convolve" else np.conj(y))
                )
                if name == "correlate" and mode == "valid" and x.size < y.size:
                    want = np.conj(getattr(reference, name)(y, x, mode, "direct"))[
                        tuple([slice(None, None, -1)] * x.ndim)
                    ]
                assert_same(got, want)
        assert_same(signal.fftconvolve(x, y, mode), reference.fftconvolve(x, y, mode) if shapes[0] else x * y)
        if len(shapes[0]) == 2:
            assert_same(signal.convolve2d(x, y, mode), reference.convolve2d(x, y, mode))
            assert_same(signal.correlate2d(x, y, mode), reference.correlate2d(x, y, mode))


def test_transforms_along_some_axes():
    x, y = draw(3, 4, 5), draw(3, 2, 5)
    for axes in (1, [1], [-2]):
        assert_same(signal.fftconvolve(x, y, axes=axes), reference.fftconvolve(x, y, axes=axes))
    assert signal.fftconvolve(np.zeros(0), np.ones(3)).shape == (2,)


def test_detrended():
    x = draw(4, 11, 2, complex_=True)
    for kind in ("linear", "constant"):
        assert_same(signal.detrend(x, 1, kind), reference.detrend(x, 1, kind))
    for bp in (3, [3, 7], np.array([1, 2])):
        assert_same(signal.detrend(x[..., 0], bp=bp), reference.detrend(x[..., 0], bp=bp))
    assert_same(signal.detrend(np.ones(1)), [0.0])


STFT = {
    "": {},
    "none": {"boundary": None},
    "even": {"boundary": "even"},
    "odd": {"boundary": "odd"},
    "constant": {"boundary": "constant", "padded": False},
    "detrend": {"detrend": "linear"},
    "overlap": {"noverlap": 5},
    "window": {"window": ("tukey", 0.3), "fs": 8.0},
    "values": {"window": np.arange(1.0, 9.0)},
    "long": {"nfft": 13},
    "two sided": {"return_onesided": False},
}


@pytest.mark.parametrize("name", STFT)
def test_short_time_transforms(name):
    options = {"nperseg": 8, **STFT[name]}
    for x, axis in ((draw(45), -1), (draw(3, 45), 1), (draw(45, 2), 0)):
        got = signal.stft(x, axis=axis, **options)
        for g, w in zip(got, reference.stft(x, axis=axis, **options), strict=True):
            assert_same(g, w)
        back = {k: options[k] for k in ("fs", "window", "noverlap", "nfft") if k in options}
        back |= {
            "nperseg": 8,
            "input_onesided": options.get("return_onesided", True),
            "boundary": options.get("boundary", "zeros") is not None,
            "freq_axis": axis % x.ndim,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy's, of windows that do not add up
            want = reference.istft(np.asarray(got[2]), **back)
        t, y = signal.istft(got[2], **back)
        assert_same(y, want[1])
        assert_same(t, np.arange(y.shape[-1]) / options.get("fs", 1.0))


def test_istft_of_odd_segments_and_other_axes():
    x = draw(4, 40)
    z = signal.stft(x, nperseg=9, noverlap=4)[2]
    assert_same(signal.istft(z, nperseg=9, noverlap=4)[1][:, :40], x)
    moved = np.moveaxis(np.asarray(z), (0, 1, 2), (1, 2, 0))
    assert_same(signal.istft(moved, nperseg=9, noverlap=4, time_axis=0, freq_axis=2)[1][:40], x.T)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scaling": "spectrum", "fs": 4.0},
        {"average": "median"},
        {"detrend": False, "window": "boxcar"},
        {"nfft": 21},
        {"return_onesided": False, "detrend": "linear"},
        {"nperseg": 15, "noverlap": 4},
    ],
    ids=str,
)
def test_power_spectra(options):
    options = {"nperseg": 16, **options}
    x, y = draw(2, 70), draw(2, 70)
    for g, w in zip(signal.csd(x, y, **options), reference.csd(x, y, **options), strict=True):
        assert_same(g, w)
    for g, w in zip(signal.welch(x.T, axis=0, **options), reference.welch(x.T, axis=0, **options), strict=True):
        assert_same(g, w)
    for g, w in zip(signal.csd(x, y[:, :50], **options), reference.csd(x, y[:, :50], **options), strict=True):
        assert_same(g, w)


def test_signals_shorter_than_a_segment_warn():
    with pytest.warns(UserWarning, match="greater than the signal"):
        f, _, z = signal.stft(draw(20))
    assert z.shape == (11, 3)
    with pytest.warns(UserWarning, match="complex"):
        assert signal.welch(draw(64, complex_=True))[1].shape == (64,)
    assert signal.welch(draw(64))[1].shape == (33,)
    assert signal.stft(np.zeros(0), nperseg=4)[2].shape == (0,)


SMOOTH = {
    "convolve": lambda x: signal.convolve(x, x[:3]),
    "fft": lambda x: signal.convolve(x, x[:3], "same", "fft"),
    "correlate2d": lambda x: signal.correlate2d(x.reshape(4, 3), x[:4].reshape(2, 2), "valid"),
    "detrend": signal.detrend,
    "stft": lambda x: signal.stft(x, nperseg=4)[2],
    "istft": lambda x: signal.istft(signal.stft(x, nperseg=4, noverlap=3)[2] ** 2, noverlap=3)[1],
    "csd": lambda x: signal.csd(x, x**2, nperseg=4)[1],
    "welch": lambda x: signal.welch(x, nperseg=4)[1],
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_and_mapping(name):
    f, x = SMOOTH[name], draw(2, 12)
    check_grads(f, (x[0],), order=2)
    assert_same(gradix.jit(gradix.vmap(f))(x), np.stack([f(jnp.asarray(row)) for row in x]))


REFUSED = {
    "ranks": (lambda: signal.convolve(np.ones((2, 2)), np.ones(2)), ValueError, "dimensions"),
    "mode": (lambda: signal.convolve(np.ones(2), np.ones(2), "wide"), ValueError, "wide"),
    "method": (lambda: signal.convolve(np.ones(2), np.ones(2), method="slow"), ValueError, "slow"),
    "empty": (lambda: signal.convolve(np.ones(2), np.ones(0)), ValueError, "zero-size"),
    "mixed": (lambda: signal.correlate(np.ones((2, 5)), np.ones((3, 3)), "valid"), ValueError, "every dimension"),
    "boundary": (
        lambda: signal.convolve2d(np.ones((2, 2)), np.ones((2, 2)), boundary="wrap"),
        NotImplementedError,
        "jnp.pad",
    ),
    "vectors": (lambda: signal.correlate2d(np.ones(2), np.ones(2)), ValueError, "2-dimensional"),
    "axes": (lambda: signal.fftconvolve(np.ones((2, 5)), np.ones((3, 5)), axes=1), ValueError, "mapped axes"),
    "list": (lambda: signal.convolve([1.0], [1.0]), TypeError, "list"),
    "trend": (lambda: signal.detrend(np.ones(3), type="cubic"), ValueError, "cubic"),
    "break": (lambda: signal.detrend(np.ones(3), bp=4), ValueError, "length 3"),
    "overwrite": (lambda: signal.detrend(np.ones(3), overwrite_data=True), NotImplementedError, "immutable"),
    "overlap": (lambda: signal.stft(np.ones(20), nperseg=4, noverlap=4), ValueError, "noverlap"),
    "nfft": (lambda: signal.stft(np.ones(20), nperseg=8, nfft=4), ValueError, "nfft"),
    "extension": (lambda: signal.stft(np.ones(20), nperseg=4, boundary="round"), ValueError, "round"),
    "window": (lambda: signal.welch(np.ones(20), window=np.ones(5), nperseg=4), ValueError, "length of window"),
    "nperseg": (lambda: signal.welch(np.ones(20), nperseg=0), ValueError, "positive"),
    "scaling": (lambda: signal.csd(np.ones(20), None, scaling="loud"), ValueError, "loud"),
    "average": (lambda: signal.csd(np.ones(20), None, average="mode"), ValueError, "mode"),
    "ranks of csd": (lambda: signal.csd(np.ones((2, 20)), np.ones(20)), ValueError, "rank"),
    "istft rank": (lambda: signal.istft(np.ones(3)), ValueError, "2d"),
    "istft axes": (lambda: signal.istft(np.ones((3, 3)), time_axis=0, freq_axis=0), ValueError, "differing"),
    "istft window": (lambda: signal.istft(np.ones((3, 3)), window=np.ones(3)), ValueError, "length of 4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()
