"""Rules of primitives in JAX's conventions, as dictionaries over the methods of primitives."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from gradix._core.array import as_array
from gradix._core.library_values import handed_on
from gradix._core.primitive import Linear, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import add_any, instantiate, tangent_aval, zeros
from gradix._transforms.batch import AxisData


class Zero:
    """A tangent or cotangent known to be zero.

    Example:
        >>> import gradix
        >>> from gradix.experimental import hijax
        >>> hijax.Zero(gradix.typeof(1.0)).aval
        ShapedArray(float32[], weak_type=True)
    """

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    @classmethod
    def from_primal_value(cls, x) -> Zero:
        """The zero tangent of a value."""
        return cls(tangent_aval(as_array(x).aval))

    def instantiate(self):
        """The zeros as an array."""
        return zeros(self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


# A differentiation rule may call `vmap`, so symbolic zeros must pass through it.
handed_on.add(Zero)


def as_zero(t, x):
    """A tangent in JAX's convention: None becomes a `Zero` of the type of tangents of `x`."""
    return Zero(tangent_aval(x.aval)) if t is None else t


def without_zero(t):
    """A tangent in the convention of our rules: a `Zero` becomes None."""
    return None if type(t) is Zero or t is None else as_array(t)


class Rules(MutableMapping):
    """A mapping from primitives to rules; setting an item sets the primitive's method.

    Rules in the mapping are in JAX's convention, and are converted to that of the method and back.
    """

    def __init__(self, method: str, to_ours: Callable, to_jax: Callable):
        self.method, self.to_ours, self.to_jax = method, to_ours, to_jax
        self.given: dict[Primitive, Any] = {}

    def __setitem__(self, prim, rule) -> None:
        self.given[prim] = rule
        setattr(prim, self.method, self.to_ours(prim, rule))

    def __getitem__(self, prim):
        if prim in self.given:
            return self.given[prim]
        if not self._has(prim):
            raise KeyError(prim)
        return self.to_jax(prim)

    def _has(self, prim) -> bool:
        return isinstance(prim, Primitive) and getattr(type(prim), self.method) is not getattr(Primitive, self.method)

    def __delitem__(self, prim) -> None:
        del self.given[prim]
        prim.__dict__.pop(self.method, None)

    def __contains__(self, prim) -> bool:
        return prim in self.given or self._has(prim)

    def __iter__(self):
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)


# -- jvp: rule(primals, tangents, **params) -> (out, tangents) -------------------------------------


def jvp_to_ours(prim, rule):
    def jvp(primals, tangents, **params):
        out, t = rule(tuple(primals), tuple([as_zero(t, x) for t, x in zip(tangents, primals)]), **params)
        if prim.multiple_results:
            return [as_array(o) for o in out], [without_zero(d) for d in t]
        return as_array(out), without_zero(t)

    return jvp


def jvp_to_jax(prim):
    def rule(primals, tangents, **params):
        xs = [as_array(x) for x in primals]
        out, t = prim.jvp(xs, [without_zero(d) for d in tangents], **params)
        if prim.multiple_results:
            return out, [as_zero(d, o) for d, o in zip(t, out)]
        return out, as_zero(t, out)

    return rule


# -- transpose: rule(ct, *args, **params) -> [ct per operand] --------------------------------------


def transpose_to_ours(prim, rule):
    def transpose(ct, *args, **params):
        if prim.multiple_results:
            outs = prim.abstract(*[a.aval for a in args], **params)
            ct = [Zero(tangent_aval(a)) if c is None else c for c, a in zip(ct, outs)]
        back = rule(ct, *args, **params)
        return [None if c is None else without_zero(c) for c in back]

    return transpose


def transpose_to_jax(prim):
    def rule(ct, *args, **params):
        ct = [without_zero(c) for c in ct] if prim.multiple_results else as_array(ct)
        args = [a if type(a) is Linear else as_array(a) for a in args]
        back = prim.transpose(ct, *args, **params)
        return [Zero(a.aval) if c is None and type(a) is Linear else c for c, a in zip(back, args)]

    return rule


# -- batching: rule(args, dims, **params) -> (out, dims) -------------------------------------------


def batch_to_ours(prim, rule):
    def batch(size, args, axes, **params):
        return _batched(prim, rule(tuple(args), tuple(axes), **params))

    return batch


def _batched(prim, result):
    out, axes = result
    if not prim.multiple_results:
        return as_array(out), axes
    out = [as_array(o) for o in out]
    return out, [axes] * len(out) if axes is None or isinstance(axes, int) else list(axes)


def batch_to_jax(prim):
    def rule(args, dims, **params):
        xs = [as_array(x) for x in args]
        size = next(x.aval.shape[d] for x, d in zip(xs, dims) if d is not None)
        axis = AxisData(None, size) if prim.named else size
        return prim.batch(axis, xs, list(dims), **params)

    return rule


def fancy_batch_to_ours(prim, rule):
    prim.named = True

    def batch(axis, args, axes, **params):
        return _batched(prim, rule(axis, tuple(args), tuple(axes), **params))

    return batch


def axis_batch_to_ours(prim, rule):
    prim.named = True

    def batch(axis, args, axes, **params):
        return _batched(prim, rule(axis.size, axis.name, None, tuple(args), tuple(axes), **params))

    return batch


# -- functions that make rules ---------------------------------------------------------------------


def linear_jvp(prim):
    """The jvp rule of a primitive that is linear in all its operands."""

    def jvp(primals, tangents, **params):
        out = bind(prim, list(primals), params)
        if all(t is None for t in tangents):
            return out, [None] * len(out) if prim.multiple_results else None
        return out, bind(prim, [instantiate(t, x.aval) for t, x in zip(tangents, primals)], params)

    return jvp


def partials_jvp(prim, rules, with_result: bool):
    """The jvp rule of a primitive, made of a function for each operand, or None if it has none."""

    def jvp(primals, tangents, **params):
        out = bind(prim, list(primals), params)
        total = None
        for rule, t in zip(rules, tangents):
            if t is None or rule is None:
                continue
            part = rule(t, out, *primals, **params) if with_result else rule(t, *primals, **params)
            part = without_zero(part)
            if part is not None:
                total = part if total is None else add_any(total, part)
        return out, total

    return jvp
