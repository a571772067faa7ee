"""Library types that declare little: what they need, they are asked for only where it is used."""

import dataclasses
from typing import Any

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import hijax


@dataclasses.dataclass(frozen=True)
class Rounded:
    whole: Any
    rest: Any


@dataclasses.dataclass(frozen=True)
class RoundedType(hijax.HiType):
    shape: tuple

    def lo_ty(self):
        return [hijax.ShapedArray(self.shape, jnp.dtype("int8")), hijax.ShapedArray(self.shape, jnp.dtype("float32"))]

    def lower_val(self, value):
        return [value.whole, value.rest]

    def raise_val(self, whole, rest):
        return Rounded(whole, rest)


class Round(hijax.HiPrimitive):
    def abstract_eval(self, aval):
        return RoundedType(aval.shape), set()

    def to_lojax(self, x):
        whole = jnp.floor(x).astype("int8")
        return Rounded(whole, x - whole)


hijax.register_hitype(Rounded, lambda value: RoundedType(value.whole.shape))
round_p = Round("round_apart")


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
def test_an_operation_without_impl_is_evaluated_by_to_lojax(transform):
    value = transform(round_p.bind)(jnp.array([1.5, 2.25]))
    assert value.whole.tolist() == [1, 2] and value.rest.tolist() == [0.5, 0.25]


def test_values_without_a_tangent_type_pass_through_what_does_not_differentiate():
    value = round_p.bind(jnp.array([1.5, 2.25]))
    assert gradix.jit(lambda v: v)(value).whole.tolist() == [1, 2]
    assert lax.scan(lambda v, _: (v, None), value, None, length=2)[0].rest.tolist() == [0.5, 0.25]
    assert gradix.eval_shape(lambda v: (v, 1), value)[0] == RoundedType((2,))
    assert gradix.eval_shape(round_p.bind, jnp.ones(3)) == RoundedType((3,))
    with pytest.raises(NotImplementedError, match="to_tangent_aval"):
        gradix.grad(lambda v: 1.0)(value)


def test_two_forms_of_one_rule_are_refused():
    class Twice(hijax.VJPHiPrimitive):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def vjp_bwd(self, res, ct, accum):
            accum.accum(ct)

        def vjp_bwd_retval(self, res, ct):
            return (ct,)

    with pytest.raises(AttributeError, match="two forms"):
        Twice(gradix.typeof(1.0))
