"""scipy.fft, ndimage, interpolate, integrate and cluster.vq against SciPy, with derivatives and what they refuse."""

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage

import gradix
import gradix.numpy as jnp
from gradix.scipy import fft, integrate, ndimage
from gradix.scipy.cluster.vq import vq
from gradix.scipy.interpolate import RegularGridInterpolator
from gradix.test_util import check_grads
from tests.same import assert_same

RNG = np.random.default_rng(9)


def draw(*shape, complex_=False):
    x = RNG.normal(size=shape)
    return x + 1j * RNG.normal(size=shape) if complex_ else x


@pytest.fixture(autouse=True)
def _wide():
    with gradix.enable_x64(True):
        yield


@pytest.mark.parametrize("norm", [None, "backward", "ortho"])
@pytest.mark.parametrize("name", ["dct", "idct"])
def test_cosine_transforms(name, norm):
    ours, theirs = getattr(fft, name), getattr(scipy.fft, name)
    for n in (1, 2, 5, 8):
        x = draw(3, n, complex_=n == 5)
        assert_same(ours(x, norm=norm), theirs(x, norm=norm))
        for length in (1, 4, 9):
            assert_same(ours(x, n=length, norm=norm), theirs(x, n=length, norm=norm))
        assert_same(ours(x, axis=0, norm=norm), theirs(x, axis=0, norm=norm))
    x = draw(3, 4, 5)
    for options in ({}, {"axes": [0, 2]}, {"s": [2, 6]}, {"s": 3}, {"axes": 1}, {"s": [2, 7], "axes": [2, 0]}):
        s = options.get("s")
        want = getattr(scipy.fft, name + "n")(
            x, norm=norm, **{**options, **({"s": [s], "axes": [-1]} if s == 3 else {})}
        )
        assert_same(getattr(fft, name + "n")(x, norm=norm, **options), want)


MODES = {
    "constant": "grid-constant",
    "nearest": "nearest",
    "wrap": "grid-wrap",
    "mirror": "mirror",
    "reflect": "reflect",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates(order, mode):
    for shape in ((5,), (1,), (4, 3), (2, 3, 4)):
        x, places = draw(*shape), RNG.uniform(-6, 9, (len(shape), 3, 7))
        assert_same(
            ndimage.map_coordinates(x, places, order, mode, 2.5),
            scipy.ndimage.map_coordinates(x, places, order=order, mode=MODES[mode], cval=2.5),
        )
    x = RNG.integers(0, 200, (5, 4)).astype("uint8")
    got = ndimage.map_coordinates(x, [np.array([0.5, 1.25]), np.array([1, 2])], order, mode)
    assert got.dtype == "uint8"
    assert (np.asarray(ndimage.map_coordinates(x, [np.arange(5)[:, None], np.arange(4)], order, mode)) == x).all()
    check_grads(
        lambda x, c: ndimage.map_coordinates(x, [c], 1, mode), (draw(5), np.array([0.3, 2.6, -0.7, 4.4])), order=1
    )


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("trailing", [(), (2,)])
def test_functions_on_a_grid(method, trailing):
    points = np.array([0.0, 1.0, 1.5, 4.0]), np.array([-1.0, 2.0]), np.array([1.0, 3.0, 4.0])
    values = draw(4, 2, 3, *trailing)
    xi = np.stack([RNG.uniform(-0.5, 4.5, 40), RNG.uniform(-1.5, 2.5, 40), RNG.uniform(0.5, 4.5, 40)], -1)
    for fill in (np.nan, 0.0, None):
        ours = RegularGridInterpolator(points, values, method, fill_value=fill)
        theirs = scipy.interpolate.RegularGridInterpolator(points, values, method, bounds_error=False, fill_value=fill)
        assert_same(ours(xi), theirs(xi))
    assert ours(xi.reshape(8, 5, 3)).shape == (8, 5, *trailing)
    assert_same(ours(tuple(xi.T)), ours(xi))
    assert_same(gradix.jit(gradix.vmap(lambda x: ours(x)[0]))(xi), ours(xi))
    assert np.isnan(ours(np.array([np.nan, 0, 2]))).all()
    if method == "linear":
        check_grads(ours, (np.array([[0.4, 0.5, 2.0], [2.0, 1.0, 3.5]]),), order=1)
        check_grads(lambda v: RegularGridInterpolator(points, v)(xi[:1] % 1 + np.array([0, 0, 1])), (values,), order=1)


def test_trapezoid_and_codes():
    y, x = draw(3, 6), np.sort(draw(6))
    assert_same(integrate.trapezoid(y, x), scipy.integrate.trapezoid(y, x))
    assert_same(integrate.trapezoid(y, dx=0.5, axis=0), scipy.integrate.trapezoid(y, dx=0.5, axis=0))
    for obs, book in ((draw(20, 3), draw(4, 3)), (draw(20), draw(4)), (draw(1, 1), draw(1, 1))):
        for got, want in zip(vq(obs, book), scipy.cluster.vq.vq(obs, book), strict=True):
            assert_same(got, want)
    assert vq(np.ones((0, 3)), np.ones((2, 3)))[0].shape == (0,)
    check_grads(lambda x, c: vq(x, c)[1], (draw(5, 2), draw(3, 2)), order=1)


SMOOTH = {"dct": fft.dct, "idct": lambda x: fft.idct(x, n=7, norm="ortho"), "dctn": lambda x: fft.dctn(x.reshape(2, 3))}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_and_mapping(name):
    f, x = SMOOTH[name], draw(2, 6)
    check_grads(f, (x[0],), order=1)
    assert_same(gradix.jit(gradix.vmap(f))(x), np.stack([f(jnp.asarray(row)) for row in x]))


GRID = (np.arange(3.0), np.arange(2.0))
REFUSED = {
    "type": (lambda: fft.dct(np.ones(3), type=3), NotImplementedError, "type=3"),
    "norm": (lambda: fft.idct(np.ones(3), norm="forward"), ValueError, "forward"),
    "empty": (lambda: fft.dct(np.ones(0)), ValueError, "one element"),
    "lengths": (lambda: fft.dctn(np.ones((3, 3)), s=[2, 2], axes=[0]), ValueError, "same length"),
    "order": (lambda: ndimage.map_coordinates(np.ones(3), [0.5], 3), NotImplementedError, "order"),
    "image mode": (
        lambda: ndimage.map_coordinates(np.ones(3), [0.5], 1, "grid-wrap"),
        NotImplementedError,
        "grid-wrap",
    ),
    "coordinates": (lambda: ndimage.map_coordinates(np.ones((3, 3)), [0.5], 1), ValueError, "1 != 2"),
    "complex place": (lambda: ndimage.map_coordinates(np.ones(3), [1j], 1), TypeError, "real"),
    "no elements": (lambda: ndimage.map_coordinates(np.ones(0), [0.5], 1), ValueError, "no elements"),
    "method": (lambda: RegularGridInterpolator(GRID, np.ones((3, 2)), "cubic"), ValueError, "cubic"),
    "bounds": (
        lambda: RegularGridInterpolator(GRID, np.ones((3, 2)), bounds_error=True),
        NotImplementedError,
        "fill_value",
    ),
    "grid shape": (lambda: RegularGridInterpolator(GRID, np.ones((2, 2))), ValueError, "axis 0"),
    "fill": (lambda: RegularGridInterpolator(GRID, np.ones((3, 2)), fill_value=1j), ValueError, "fill_value"),
    "dimension": (lambda: RegularGridInterpolator(GRID, np.ones((3, 2)))(np.ones((1, 3))), ValueError, "dimension 3"),
    "code ranks": (lambda: vq(np.ones((3, 2)), np.ones(2)), ValueError, "rank"),
    "code lengths": (lambda: vq(np.ones((3, 2)), np.ones((2, 3))), ValueError, "one length"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()
