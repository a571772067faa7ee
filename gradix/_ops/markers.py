"""Identities that mark a value for a transformation or the compiler, such as stop_gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base.tree import tree_flatten, tree_unflatten
from gradix._core.array import ArrayImpl, copied
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._core.divisions import entries
from gradix._core.effects import SinkEffect
from gradix._core.primitive import Linear, MeshTraits, Primitive, ValueTraits
from gradix._core.trace import bind
from gradix._ops.families import NonDifferentiable
from gradix._ops.operands import arrays

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


class StopGradient(NonDifferentiable, Primitive):
    """The operand itself, with a derivative of zero."""

    values = ValueTraits(keeps_nan=True)
    host_limit = 1 << 62

    def abstract(self, x):
        return x

    def host(self, x):
        return x

    def transpose(self, ct, x):
        return [ct]  # it occurs among tangents where a user's rule selects by example

    def batch(self, size, args, axes):
        return bind(self, args, {}), axes[0]

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[0])]

    def lower(self, em, out, x):
        return x


class Name(Primitive):
    """The operand itself, named for the policies of `checkpoint`."""

    mesh = MeshTraits(linear="all")
    live = "elements"
    host_limit = 1 << 62

    def abstract(self, x, *, name):
        return x

    def host(self, x, *, name):
        return x

    def jvp(self, primals, tangents, *, name):
        return bind(self, primals, {"name": name}), tangents[0]

    def transpose(self, ct, x, *, name):
        return [ct]

    def batch(self, size, args, axes, *, name):
        return bind(self, args, {"name": name}), axes[0]

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[0])]

    def lower(self, em, out, x, *, name):
        return x


class Copy(Name):
    """The operand itself, as a separate value."""

    keeps_nan = True

    def abstract(self, x):
        return x

    def host(self, x):
        return x

    def jvp(self, primals, tangents):
        (t,) = tangents
        return separate(*primals), None if t is None else separate(t)

    def transpose(self, ct, x):
        return [separate(ct)]

    def batch(self, size, args, axes):
        return separate(*args), axes[0]

    def lower(self, em, out, x):
        return x


def separate(x):
    """A copy of an array, with memory of its own; of a traced one, the equation that says so."""
    return copied(x) if type(x) is ArrayImpl else bind(copy_p, [x], {})


class DevicePut(Copy):
    """The operands themselves; the function `device_put` moves values without a primitive."""

    multiple_results = True

    def abstract(self, *xs, devices, srcs=None, copy_semantics=None):
        if any(d is not None for d in devices):
            raise NotImplementedError(
                f"device_put_p.bind does not move values to {devices}: call gradix.device_put(x, "
                "device), or gradix.lax.with_sharding_constraint in compiled code."
            )
        return list(xs)

    def host(self, *xs, **_):
        return list(xs)

    def jvp(self, primals, tangents, **params):
        outs = bind(self, primals, params)
        return outs, [None if t is None else bind(copy_p, [t], {}) for t in tangents]

    def transpose(self, cts, *xs, **_):
        return list(cts)

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), list(axes)

    def divide(self, mesh, avals, outs, params):
        return [entries(a) for a in avals]

    def lower(self, em, outs, *xs, **_):
        return list(xs)


class XlaMetadataValue(Name):
    """The operand itself; its operation carries attributes for the compiler."""

    def abstract(self, x, *, xla_metadata_kvs):
        return x

    def host(self, x, *, xla_metadata_kvs):
        return x

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), tangents[0]

    def transpose(self, ct, x, **params):
        return [ct]

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), axes[0]

    def lower(self, em, out, x, *, xla_metadata_kvs):
        em.tag(x, dict(xla_metadata_kvs))
        return x


class OptimizationBarrier(Primitive):
    """The operands themselves, all of which are computed before any use of the results."""

    mesh = MeshTraits(linear="all")
    rearranges = True
    multiple_results = True

    def abstract(self, *xs):
        return list(xs)

    def host(self, *xs):
        return list(xs)

    def jvp(self, primals, tangents):
        out = bind(self, primals, {})
        there = [t for t in tangents if t is not None]
        moved = iter(bind(self, there, {}) if there else ())
        return out, [None if t is None else next(moved) for t in tangents]

    def transpose(self, cts, *xs):
        there = [(i, ct) for i, (ct, x) in enumerate(zip(cts, xs)) if ct is not None and type(x) is Linear]
        out = [None] * len(xs)
        for (i, _), ct in zip(there, bind(self, [ct for _, ct in there], {}) if there else ()):
            out[i] = ct
        return out

    def batch(self, size, args, axes):
        return bind(self, args, {}), list(axes)

    def divide(self, mesh, avals, outs, params):
        return [entries(a) for a in avals]

    def lower(self, em, outs, *xs):
        return em.optimization_barrier(xs)


class After(Primitive):
    """The first operand, computed once the second is there.

    An optimization barrier is gone before XLA:CPU merges equal operations and orders them. Here an
    element is replaced by itself at an index that is zero, which no simplification can tell. It
    depends on the second operand, and copies nothing where the first one is not used any more.
    """

    live = "elements"
    host_limit = 1 << 62

    def abstract(self, x, late):
        return x

    def host(self, x, late):
        return x

    def jvp(self, primals, tangents):
        return bind(self, primals, {}), tangents[0]

    def transpose(self, ct, x, late):
        return [ct, None]

    def batch(self, size, args, axes):
        return bind(self, args, {}), axes[0]

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[0])]

    def lower(self, em, out, x, late):
        if not x.aval.ndim or not is_fixed_and_filled(x.aval) or not is_fixed_and_filled(late.aval):
            return em.optimization_barrier([x, late])[0]
        shape, at = x.aval.shape, late.aval
        number = em.slice(late, (0,) * at.ndim, (1,) * at.ndim)
        if at.ndim:
            number = em.reshape(number, ())
        word = np.dtype("uint32")
        if number.aval.dtype.kind in "fV" and number.aval.dtype.itemsize > 1:
            bits = np.dtype(f"uint{8 * number.aval.dtype.itemsize}")
            number = em.bitcast(number, make_aval((), bits, False))
        number = em.convert(number, word)
        for places in (31, 1):
            by = em.constant(places, number.aval)
            number = em.op("shift_right_logical", number.aval, number, by)
        zero = em.convert(number, np.dtype("int32"))
        first = em.slice(x, (0,) * len(shape), (1,) * len(shape))
        return em.dynamic_update_slice(x, first, [zero] * len(shape))


def is_fixed_and_filled(aval) -> bool:
    """Whether a type has sizes that are numbers, and elements."""
    return not is_symbolic_shape(aval.shape) and aval.size > 0


class Sink(Primitive):
    """A use of the operands without a result, so that dead code elimination keeps them."""

    multiple_results = effectful = True
    _EFFECTS = frozenset({SinkEffect()})

    def effects(self, params):
        return self._EFFECTS

    def abstract(self, *xs, prevent_mlir_dce):
        return []

    def host(self, *xs, prevent_mlir_dce):
        return []

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), []

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), []

    def divide(self, mesh, avals, outs, params):
        return []

    def lower(self, em, outs, *xs, prevent_mlir_dce):
        return []


stop_gradient_p = StopGradient("stop_gradient")
name_p = Name("name")
copy_p = Copy("copy")
device_put_p = DevicePut("device_put")
xla_metadata_value_p = XlaMetadataValue("xla_metadata_value")
optimization_barrier_p = OptimizationBarrier("optimization_barrier")
after_p = After("after")
dce_sink_p = Sink("dce_sink")


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Mark the arrays of a pytree as used, so that programs keep the equations that compute them.

    Args:
        val: a pytree of arrays.
        prevent_mlir_dce: accepted for compatibility: operations of lowered programs stay where they
            are written.

    Example:
        >>> import gradix
        >>> from gradix import lax
        >>> gradix.make_jaxpr(lambda x: (lax.dce_sink(x * 2), x)[1])(1.0)
        { lambda ; a:f32[]. let
            b:f32[] = mul a 2.0:f32[]
            dce_sink[prevent_mlir_dce=False] b
          in (a,) }
    """
    leaves, _ = tree_flatten(val)
    bind(dce_sink_p, arrays("dce_sink", *leaves), {"prevent_mlir_dce": bool(prevent_mlir_dce)})


def optimization_barrier(operand: ArrayLike, /) -> Any:
    """The arrays of a pytree, which the compiler computes before their uses and does not merge.

    Example:
        >>> from gradix import lax
        >>> lax.optimization_barrier((1, 2))
        (Array(1, dtype=int32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    leaves, treedef = tree_flatten(operand)
    return tree_unflatten(treedef, bind(optimization_barrier_p, arrays("optimization_barrier", *leaves), {}))
