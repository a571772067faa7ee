"""What drawn calls of `image` and `scipy.special` showed."""
import numpy as np
import pytest

from gradix import image
from gradix.scipy import special


def test_axes_without_pixels_may_stay():
    assert image.resize(np.zeros((0, 1, 3), np.float32), (0, 2, 6), "cubic").shape == (0, 2, 6)
    with pytest.raises(ValueError, match="without pixels"):
        image.resize(np.zeros((0, 1), np.float32), (2, 1), "linear")


def test_the_size_of_one_axis_may_be_an_int():
    np.testing.assert_allclose(image.resize(np.array([0.0, 4.0], np.float32), 4, "linear"), [0, 1, 3, 4])
    with pytest.raises(TypeError, match="shape"):
        image.resize(np.ones(2, np.float32), "a", "linear")


@pytest.mark.parametrize("function", [special.rel_entr, special.kl_div])
def test_entropies_are_of_real_numbers(function):
    with pytest.raises(ValueError, match="complex"):
        function(np.ones(2, np.complex64), 1.0)
