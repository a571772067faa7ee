"""Functions along axes of nn over mapped axes: what they give of the whole array."""

import numpy as np
import pytest

import gradix
from gradix import nn, numpy as jnp

X = np.linspace(-2, 3, 24, dtype="float32").reshape(2, 3, 4)
MASK = np.arange(24).reshape(2, 3, 4) % 5 > 0
KEEPS = [nn.softmax, nn.log_softmax, nn.standardize]
JOINS = [nn.logsumexp, nn.logmeanexp]
# The axis of the mapped function, and the axes of the whole array it stands for.
AXES = [
    ("batch", (0,)),
    (("batch",), (0,)),
    (("batch", 0), (0, 1)),
    ((-1, "batch"), (0, 2)),
    (("batch", 0, 1), (0, 1, 2)),
]


def mapped(function, axis, joins=False):
    return gradix.vmap(
        lambda x, where: function(x, axis=axis, where=where), axis_name="batch", out_axes=None if joins else 0
    )


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("function", KEEPS + JOINS, ids=lambda f: f.__name__)
def test_a_mapped_axis_is_an_axis_of_the_whole(function, transform):
    for axis, whole in AXES:
        found = transform(mapped(function, axis, function in JOINS))
        for where in (None, MASK):
            if where is None:
                ours = found(X, np.ones_like(MASK))
                plain = transform(
                    gradix.vmap(
                        lambda x, a=axis: function(x, axis=a),
                        axis_name="batch",
                        out_axes=None if function in JOINS else 0,
                    )
                )(X)
                np.testing.assert_allclose(ours, plain, rtol=1e-3, atol=1e-5)
            else:
                ours = found(X, where)
            np.testing.assert_allclose(ours, function(jnp.asarray(X), axis=whole, where=where), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("function", KEEPS + JOINS, ids=lambda f: f.__name__)
def test_gradients_over_a_mapped_axis(function):
    joins = function in JOINS
    weights = np.cos(X[0] if joins else X)
    loss = gradix.grad(lambda x: (mapped(function, "batch", joins)(x, MASK) * weights).sum())
    whole = gradix.grad(
        lambda x: (
            (jnp.where(MASK, function(x, axis=0, where=MASK), 0) * weights).sum()
            if not joins
            else (function(x, axis=0, where=MASK) * weights).sum()
        )
    )
    if not joins:
        loss = gradix.grad(lambda x: (jnp.where(MASK, mapped(function, "batch")(x, MASK), 0) * weights).sum())
    np.testing.assert_allclose(loss(X), whole(X), rtol=1e-3, atol=1e-4)


def test_options_of_logsumexp_over_a_mapped_axis():
    both = gradix.vmap(
        lambda x: nn.logsumexp(x, axis=("i", 0), keepdims=True, b=-2.0, return_sign=True), axis_name="i", out_axes=None
    )
    value, sign = both(X)
    expected, _ = nn.logsumexp(jnp.asarray(X), axis=(0, 1), b=-2.0, return_sign=True)
    assert value.shape == (1, 4)
    np.testing.assert_allclose(value[0], expected, rtol=1e-5)
    assert sign.tolist() == [[-1.0] * 4]


def test_one_hot_along_a_mapped_axis():
    rows = gradix.vmap(lambda x: nn.one_hot(x, 3, axis="i"), in_axes=None, axis_name="i", axis_size=3)
    assert rows(jnp.array([0, 2, 5])).tolist() == nn.one_hot(jnp.array([0, 2, 5]), 3, axis=0).tolist()
    with pytest.raises(ValueError, match="num_classes must be the size 3"):
        gradix.vmap(lambda x: nn.one_hot(x, 2, axis="i"), axis_name="i")(jnp.arange(3))


@pytest.mark.parametrize("function", KEEPS + JOINS, ids=lambda f: f.__name__)
def test_names_that_are_not_bound_raise(function):
    with pytest.raises(NameError, match="unbound axis name: nothing"):
        function(jnp.ones(3), axis="nothing")
