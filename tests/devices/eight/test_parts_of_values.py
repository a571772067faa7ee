"""`shard_map` of values of libraries' types above arrays: what their library says of specs and of types of parts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import hijax
from gradix.sharding import PartitionSpec as P


@dataclass
class Scaled:
    rows: Any
    scale: Any


@dataclass(frozen=True)
class ScaledType(hijax.HiType):
    rows: Any
    scale: Any

    def lo_ty(self):
        return [self.rows, self.scale]

    def lower_val(self, value):
        return [value.rows, value.scale]

    def raise_val(self, rows, scale):
        return Scaled(rows, scale)

    def to_tangent_aval(self):
        return self.rows.to_tangent_aval()  # of the product

    def shard(self, mesh, axes, check_vma, spec):
        one, two = spec.to_lo()
        return ScaledType(self.rows.shard(mesh, axes, check_vma, one), self.scale.shard(mesh, axes, check_vma, two))

    def unshard(self, mesh, check_vma, spec):
        one, two = spec.to_lo()
        return ScaledType(self.rows.unshard(mesh, check_vma, one), self.scale.unshard(mesh, check_vma, two))


class Spec(hijax.HiPspec):
    def __init__(self, *row):
        self.row = row

    def to_lo(self):
        return [P(*self.row), P()]

    def to_tangent_spec(self):
        return P(*self.row)


hijax.register_hitype(Scaled, lambda v: ScaledType(gradix.typeof(v.rows), gradix.typeof(v.scale)))


class Product(hijax.VJPHiPrimitive):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval.rows, {}
        super().__init__()

    def expand(self, value):
        return value.rows * value.scale

    def vjp_fwd(self, nzs_in, value):
        return self(value), None

    def vjp_bwd_retval(self, res, ct):
        return (ct,)


def product(value):
    return Product(gradix.typeof(value))(value)


def scaled(x):
    return Scaled(gradix.device_put(x, P("x")), jnp.float32(3))


@pytest.mark.parametrize("call", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_devices_get_parts_of_values(call):
    x = np.arange(8, dtype=np.float32)
    seen = []

    def inner(value, w):
        seen.append(gradix.typeof(value).rows.str_short())
        return value, product(value) * w + lax.psum(product(value).sum(), "x")

    with gradix.set_mesh(gradix.make_mesh((4,), ("x",))):
        f = gradix.shard_map(inner, in_specs=(Spec("x"), P()), out_specs=(Spec("x"), P("x")))
        same, got = call(f)(scaled(x), jnp.float32(2))
        assert seen[0] == "float32[2]{V:x}" and gradix.typeof(same).rows.sharding.spec == P("x")
        np.testing.assert_array_equal(same.rows, x)
        np.testing.assert_array_equal(got, 6 * x + 84)
        weights = gradix.device_put(np.arange(8, dtype=np.float32), P("x"))
        slope = call(gradix.grad(lambda v: (f(v, jnp.float32(2))[1] * weights).sum()))(scaled(x))
        np.testing.assert_allclose(slope, 2 * np.arange(8) + 28)


def test_specs_that_do_not_fit_are_refused():
    with gradix.set_mesh(gradix.make_mesh((4,), ("x",))):
        value = scaled(np.ones(8, np.float32))
        with pytest.raises(TypeError, match=r"in_specs: a value of type ScaledType.*HiPspec.*to_lo\(\)"):
            gradix.shard_map(product, in_specs=P("x"), out_specs=P("x"))(value)

        class Short(Spec):
            def to_lo(self):
                return [P("x")]

            def to_tangent_spec(self):
                return self

        with pytest.raises(ValueError, match="lists 1 PartitionSpecs.*made of 2 arrays"):
            gradix.shard_map(product, in_specs=Short(), out_specs=P("x"))(value)
