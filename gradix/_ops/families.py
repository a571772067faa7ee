"""Base classes that give whole families of operations their rules: elementwise, structural."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._base.bounded import BoundedCache
from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.array import typeof
from gradix._core.aval import make_aval
from gradix._core.divisions import merged
from gradix._core.dtypes import COMPLEX
from gradix._core.primitive import MeshTraits, Primitive, ValueTraits
from gradix._core.trace import bind
from gradix._ops.basis import add_any, broadcast_to, expand_axis, lead_axes, to_front, unbroadcast

_complex_functions = lazy_module("gradix._ops.complex_functions")

ZERO = object()  # as a partial: the derivative is zero wherever it exists


def broadcast_shapes_of(name: str, avals) -> tuple:
    """The broadcast shape of operands of one rank; scalars broadcast to any shape."""
    shape: tuple = ()
    for a in avals:
        s = a.shape
        if s == shape or not s:
            continue
        if not shape:
            shape = s
            continue
        if len(s) != len(shape) or any(m != n and m != 1 and n != 1 for m, n in zip(s, shape)):
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: "
                f"{', '.join(str(a.shape) for a in avals)}. {_shapes_advice(name, s, shape)}"
            )
        shape = tuple(n if m == 1 else m for m, n in zip(shape, s))
    return shape


def _shapes_advice(name: str, s, t) -> str:
    if len(s) == len(t):
        return "Axes at the same place need the same size, or size 1; x[:, None] adds an axis of size 1."
    return (
        f"lax.{name} needs operands of the same rank, or without axes; gradix.numpy broadcasts operands of "
        "different rank, and x[None] adds an axis."
    )


class HostRule:
    """A function of NumPy arrays, and a quicker one for float16, float32 and float64."""

    __slots__ = ("function", "floats")

    def __init__(self, function: Callable, floats: Callable | None = None):
        self.function, self.floats = function, floats

    def __call__(self, *args, **params):
        return self.function(*args, **params)


class WhereFinite(HostRule):
    """A host rule that declines where a complex result is not finite, as XLA then differs."""

    __slots__ = ()

    def __init__(self, function: Callable, floats: Callable | None = None):
        super().__init__(function, floats or function)

    def __call__(self, *args, **params):
        out = self.function(*args, **params)
        return out if out.dtype.kind != "c" or np.isfinite(out).all() else NotImplemented


class Elementwise(Primitive):
    """An operation applied to each element of operands of one dtype.

    The operands' shapes are equal, or of equal rank with axes of size 1, or ().

    Args:
        host: the host rule, a NumPy function or a `HostRule`.
        partials: for each operand, a function of `(t, *operands)` that gives this operand's part of
            the tangent, or `ZERO` where the derivative is zero. Without any the operation has no
            derivative.
        hlo: StableHLO's name of the operation, or a lowering `(em, out, *values, **params)`.
        complex_hlo: the name of the lowering in `complex_functions`, for complex results.
        dtypes: what the operands may be of.
        from_result: in place of `partials`, for one operand: `(t, result, operand)` to the tangent.
        out: the operands' dtype to the result's, where they differ.
        transpose: the rule of an operation that is linear in one of its operands.
        formula: how long it takes, as `Primitive.formula`.
        values: what is known of its results.
        mesh: how it behaves among the devices of a mesh.
    """

    live = "elements"
    accepts: frozenset

    def __init__(
        self,
        name: str,
        host: Callable,
        *partials,
        hlo: str | Callable,
        dtypes: frozenset,
        from_result: Callable | None = None,
        out: Callable | None = None,
        transpose: Callable | None = None,
        formula: str | None = None,
        complex_hlo: str | None = None,
        values: ValueTraits = Primitive.values,
        mesh: MeshTraits = Primitive.mesh,
    ):
        super().__init__(name)
        self.formula, self.values, self.mesh = formula, values, mesh
        self.host = host
        self.float_host = host.floats if isinstance(host, HostRule) else None
        if isinstance(host, WhereFinite):
            self.declines = COMPLEX
        self.partials, self.from_result = partials, from_result
        self.hlo, self.accepts, self.out = hlo, dtypes, out
        self.complex_hlo = complex_hlo
        self._transpose = transpose
        self._types: BoundedCache[tuple, Any] = BoundedCache(4096)

    def specialise(self, *avals, **params):
        dtype = avals[0].dtype
        return self.float_host if dtype.kind == "f" and dtype.isbuiltin == 1 and not params else None

    def abstract(self, *avals, **params):
        key = (avals, *params.values()) if params else avals
        found = self._types.get(key)
        if found is None:
            found = self._types.keep(key, self._result_type(avals, params))
        return found

    def _result_type(self, avals, params):
        self.check_dtypes(avals)
        a = avals[0]
        shape = a.shape if len(avals) == 1 else broadcast_shapes_of(self.name, avals)
        dtype = a.dtype if self.out is None else self.out(a.dtype, **params)
        return make_aval(shape, dtype, all(x.weak_type for x in avals))

    def check_dtypes(self, avals):
        first = avals[0].dtype
        if any(a.dtype != first for a in avals):
            raise TypeError(
                f"lax.{self.name} requires arguments to have the same dtypes, got "
                f"{', '.join(dtypes.dtype_name(a.dtype) for a in avals)}. "
                f"Convert one of them with .astype(...), or use gradix.numpy, which promotes dtypes."
            )
        if first not in self.accepts:
            raise TypeError(
                f"{self.name} does not accept dtype {dtypes.dtype_name(first)}. Accepted dtypes are "
                f"{kinds_of(self.accepts)}; convert the operand with .astype(...) first."
            )

    def jvp(self, primals, tangents, **params):
        y = bind(self, primals, params)
        aval = y.aval
        if aval.dtype not in dtypes.INEXACT:
            return y, None
        if self.from_result is not None:
            return y, self.from_result(tangents[0], y, *primals, **params)
        if not self.partials:
            raise self.missing("jvp", "differentiation", "wrap the call in custom_jvp or custom_vjp")
        total = None
        for d, t in zip(self.partials, tangents):
            if t is None or d is ZERO:
                continue
            part = d(t, *primals, **params)
            if part is None:
                continue
            if part.aval.shape != aval.shape:
                part = broadcast_to(part, aval.shape)
            total = part if total is None else add_any(total, part)
        return y, total

    def transpose(self, ct, *args, **params):
        if self._transpose is None:
            raise NotImplementedError(
                f"primitive '{self.name}' is not linear in its operands, so it has no transpose. linear_transpose, and "
                "the linear parts of custom rules, take linear functions only: gradix.vjp(f, x) transposes the "
                "derivative of f at x."
            )
        cts = self._transpose(ct, *args, **params)
        return [
            None if c is None else unbroadcast(c, a.aval) if c.aval.shape != a.aval.shape else c
            for c, a in zip(cts, args)
        ]

    def batch(self, size, args, axes, **params):
        if len(args) == 1:
            return bind(self, args, params), axes[0]
        # The common cases: both operands have the same batch axis, or one is not mapped.
        if len(args) == 2:
            (x, y), (a, b) = args, axes
            if a == b:
                if x.aval.ndim == y.aval.ndim:
                    return bind(self, args, params), a
            elif b is None:
                ndim = y.aval.ndim
                if not ndim:
                    return bind(self, args, params), a
                if ndim == x.aval.ndim - 1:
                    return bind(self, (x, expand_axis(y, a)), params), a
            elif a is None:
                ndim = x.aval.ndim
                if not ndim:
                    return bind(self, args, params), b
                if ndim == y.aval.ndim - 1:
                    return bind(self, (expand_axis(x, b), y), params), b
        args, axis = align(args, axes)
        return bind(self, args, params), axis

    def divide(self, mesh, avals, outs, params):
        return [merged(self.name, avals, outs[0].shape)]

    def lower(self, em, out, *args, **params):
        shape = out.shape
        for x in args:
            if x.aval.shape != shape:
                args = spread(em, shape, args)
                break
        if self.complex_hlo is not None and out.dtype in COMPLEX:
            return getattr(_complex_functions, self.complex_hlo)(em, out, *args)
        if callable(self.hlo):
            return self.hlo(em, out, *args, **params)
        return em.op(self.hlo, out, *args)


_KINDS = (
    ("boolean", dtypes.BOOL),
    ("integer", dtypes.INTEGER),
    ("floating", dtypes.FLOAT),
    ("complex", dtypes.COMPLEX),
)


def kinds_of(accepted: frozenset) -> str:
    """A set of dtypes in words: "floating, complex"."""
    return ", ".join([name for name, members in _KINDS if members & accepted])


def align(args, axes):
    """Bring the operands of an elementwise operation to one rank and one batch axis.

    Operands broadcast among equal ranks only, so an unmapped operand gets an axis of size 1.
    Unmapped scalars stay scalars.
    """
    rank = max(typeof(x).ndim - (a is not None) for x, a in zip(args, axes))
    mapped = [a for a in axes if a is not None]
    even = all(typeof(x).ndim - (a is not None) in (rank, 0 if a is None else rank) for x, a in zip(args, axes))
    if even and all(a == mapped[0] for a in mapped):
        axis = mapped[0]
        return [x if a is not None or not typeof(x).ndim else expand_axis(x, axis) for x, a in zip(args, axes)], axis
    out = []
    for x, a in zip(args, axes):
        ndim = typeof(x).ndim
        if a is not None:
            x = to_front(0, x, a)
            out.append(x if ndim - 1 == rank else lead_axes(x, rank))
        else:
            out.append(expand_axis(x, 0) if ndim else x)
    return out, 0


def spread(em, shape, args):
    """Broadcast lowered operands to `shape`, as StableHLO's elementwise operations do not."""
    return [
        x
        if x.aval.shape == shape
        else em.broadcast_in_dim(x, x.aval.update(shape=shape), range(len(shape) if x.aval.ndim else 0))
        for x in args
    ]


def linear_unary(name: str, host, hlo, dtypes, back: Callable, **kw) -> Elementwise:
    """A linear operation of one operand; `back(ct, operand)` is its transpose rule."""
    prim: Elementwise = Elementwise(
        name,
        host,
        lambda t, x, **p: bind(prim, (t,), p),
        hlo=hlo,
        dtypes=dtypes,
        transpose=lambda ct, x, **p: (back(ct, x, **p),),
        **kw,
    )
    return prim


def bilinear_jvp(self, primals, tangents, **params):
    """The rule of a product: the sum of the products of each operand's tangent and the other operand."""
    (x, y), (tx, ty) = primals, tangents
    z = bind(self, primals, params)
    if z.aval.dtype not in dtypes.INEXACT:
        return z, None
    t = None if tx is None else bind(self, (tx, y), params)
    if ty is not None:
        other = bind(self, (x, ty), params)
        t = other if t is None else add_any(t, other)
    return z, t


class Structural(Primitive):
    """A linear operation that rearranges the elements of one array.

    Subclasses define `abstract`, `host`, `lower`, `transpose` and `batch`.
    """

    silent = True
    live: str | None = "moves"

    def jvp(self, primals, tangents, **params):
        (t,) = tangents
        y = bind(self, primals, params)
        return y, None if t is None else bind(self, (t,), params)


class NonDifferentiable:
    """Mixin: the results are piecewise constant or discrete, so their tangents are zero."""

    def jvp(self, primals, tangents, **params):
        out = bind(self, primals, params)
        return out, [None] * len(out) if self.multiple_results else None  # type: ignore[attr-defined]
