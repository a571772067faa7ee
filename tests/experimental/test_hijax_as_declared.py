"""Library types that declare little: what they need, they are asked for only where it is used."""

import dataclasses
from typing import Any

import numpy as np
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


@dataclasses.dataclass(frozen=True)
class OnGrid:
    """Numbers as integers and the step between them, with a list that holds no array."""

    steps: Any
    step: Any
    words: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class OnGridType(hijax.HiType):
    """A type that does not say of which arrays its values are made."""

    shape: tuple

    def to_tangent_aval(self):
        return hijax.ShapedArray(self.shape, jnp.dtype("float32"))


hijax.register_hitype(OnGrid, lambda rounded: OnGridType(rounded.steps.shape))


class Snap(hijax.VJPHiPrimitive):
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), OnGridType(x.shape), {}
        super().__init__()

    def expand(self, x):
        step = jnp.abs(x).max() / 4
        return OnGrid(jnp.round(x / step).astype("int8"), step, ["kept"])

    def vjp_fwd(self, nzs_in, x):
        return self(x), None

    def vjp_bwd_retval(self, res, ct):
        return (ct,)


class Restore(hijax.VJPHiPrimitive):
    def __init__(self, rounded):
        assert isinstance(rounded, OnGridType)
        self.in_avals, self.params = (rounded,), {}
        self.out_aval = rounded.to_tangent_aval()
        super().__init__()

    def expand(self, rounded):
        assert rounded.words == ["kept"]
        return rounded.steps.astype("float32") * rounded.step

    def vjp_fwd(self, nzs_in, rounded):
        return self(rounded), None

    def vjp_bwd_retval(self, res, ct):
        return (ct,)


def _restored(x):
    rounded = Snap(gradix.typeof(x))(x)
    return Restore(gradix.typeof(rounded))(rounded)


def test_a_dataclass_whose_type_says_nothing_is_made_of_the_arrays_in_its_fields():
    x = jnp.array([0.0, 1.1, 4.0])
    want = np.array([0.0, 1.0, 4.0], np.float32)
    np.testing.assert_array_equal(_restored(x), want)
    np.testing.assert_array_equal(gradix.jit(_restored)(x), want)
    loss = lambda x: (_restored(x) ** 2).sum()
    np.testing.assert_array_equal(gradix.grad(loss)(x), 2 * want)
    np.testing.assert_array_equal(gradix.jit(gradix.grad(loss))(x), 2 * want)
    rounded = gradix.jit(Snap(gradix.typeof(x)))(x)
    assert type(rounded) is OnGrid and rounded.words == ["kept"]


def test_a_class_whose_type_says_nothing_is_refused_by_name():
    class Bare:
        pass

    class BareType(hijax.HiType):
        def to_tangent_aval(self):
            return self

    hijax.register_hitype(Bare, lambda bare: BareType())
    with pytest.raises(NotImplementedError, match="BareType must implement `lower_val`"):
        gradix.jit(lambda bare: 1)(Bare())
