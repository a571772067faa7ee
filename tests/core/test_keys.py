"""Parameters that Python calls equal and operations tell apart: no table takes one for the other."""

import math

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._core.keys import exact
from gradix.extend.core import Primitive
from gradix.interpreters import ad, batching, mlir

PAIRS = [
    (0.0, -0.0),
    (1, True),
    (1, 1.0),
    (0j, complex(0, -0.0)),
    (np.float32(0), np.float32(-0.0)),
    (np.float32(1), np.float64(1)),
    (ml_dtypes.bfloat16(0), ml_dtypes.bfloat16(-0.0)),
    ((0.0,), (-0.0,)),
    ((1, (2, 3)), (1, (2, True))),
    ((float, "0.0"), 0.0),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_means_something_else_has_another_key(one, other):
    assert exact(one) != exact(other)
    assert exact(one) == exact(one) and hash(exact(one)) == hash(exact(one))


@pytest.mark.parametrize(
    "value", [3, "a", None, 2.5, math.nan, (1, (2.0, "b")), np.dtype("f4"), np.float64("nan"), b"x", frozenset([1])]
)
def test_what_is_the_same_has_the_same_key(value):
    again = tuple(value) if isinstance(value, tuple) else type(value)(value) if isinstance(value, float) else value
    assert exact(again) == exact(value)


def test_what_cannot_be_hashed_says_so():
    with pytest.raises(TypeError):
        hash(exact(([1],)))


def told_by_its_parameter():
    """A primitive whose result is the sign and the type of its parameter, written out as a number."""
    p = Primitive("told")
    p.def_abstract_eval(lambda x, *, c: x)

    def value(c):
        while isinstance(c, tuple):
            (c,) = c
        return np.float32(math.copysign({bool: 2, int: 3}.get(type(c), 1), c))

    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, c: x * 0 + value(c).astype(x.dtype), multiple_results=False))
    batching.primitive_batchers[p] = lambda args, axes, **params: (p.bind(*args, **params), axes[0])
    ad.deflinear2(p, lambda ct, x, *, c: [p.bind(ct, c=c)])
    return p, value


PARAMETERS = [0.0, -0.0, (0.0,), (-0.0,), 1, True, 1.0, ((1,),), ((True,),)]
x = jnp.ones(3)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        gradix.jit,
        gradix.vmap,
        lambda f: gradix.jit(gradix.vmap(f)),
        gradix.checkpoint,
        lambda f: lambda x: gradix.lax.scan(lambda c, _: (c, f(c)), x, None, 1)[1],
    ],
    ids=["eager", "jit", "vmap", "jit of vmap", "checkpoint", "scan"],
)
def test_a_users_operation_with_each_of_them_in_one_program(transform):
    p, value = told_by_its_parameter()
    found = transform(lambda x: [p.bind(x, c=c) for c in PARAMETERS])(x)
    for c, y in zip(PARAMETERS, found, strict=True):
        assert (np.asarray(y) == value(c)).all(), c


def test_derivatives_of_third_order_that_share_equal_work():
    p, value = told_by_its_parameter()

    def f(x):
        return sum([p.bind(x, c=c) * x**3 for c in PARAMETERS[:4]])

    g = gradix.grad(gradix.grad(gradix.grad(f)))
    np.testing.assert_allclose(gradix.jit(g)(2.0), g(2.0))
