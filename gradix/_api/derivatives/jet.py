"""Taylor mode: push truncated power series through a function.

Every primitive follows from its `jvp` rule. Along a curve x(s), y(s) = f(x(s)) has y′(s) =
jvp(x(s), x′(s)), so the rule, run on series of degree k - 1, gives the coefficients of y to degree
k. Linear, bilinear operations and quotients are computed by their own recurrences. What a rule asks
for twice is computed once: the work is polynomial in the degree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradix._api.arguments import check_callable, name_of
from gradix._api.boundary import Flat, arrays, positional
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten
from gradix._control.call import jit_p
from gradix._core.array import ArrayImpl, scalar_array
from gradix._core.dtypes import INEXACT
from gradix._core.trace import Interpreter, Tracer, bind, new_level
from gradix._ops.arithmetic import add_p, div, div_p, mul, mul_p, sub, sub_p
from gradix._ops.basis import add_any, add_any_p, broadcast_to, is_differentiable, zeros
from gradix._ops.complex_parts import imag_p, neg_p, real_p
from gradix._ops.conv.conv import conv_general_dilated_p
from gradix._ops.convert import convert_element_type, convert_element_type_p
from gradix._ops.dot import dot_general_p
from gradix._ops.families import NonDifferentiable
from gradix._ops.markers import name_p
from gradix._ops.select import select_n_p
from gradix._transforms.staging import eval_closed

_LINEAR = frozenset([add_p, sub_p, neg_p, add_any_p, real_p, imag_p, convert_element_type_p, name_p])
_BILINEAR = frozenset([mul_p, dot_general_p, conv_general_dilated_p])


class ZeroSeries:
    """A series whose terms are all zero, in place of a list of them.

    Example:
        >>> from gradix.experimental.jet import jet, zero_series
        >>> jet(lambda x, y: x * y, (2.0, 3.0), ([1.0, 0.0], zero_series))[1]
        [Array(3., dtype=float32, weak_type=True), Array(0., dtype=float32)]
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "zero_series"


zero_series = ZeroSeries()


class JetTracer(Tracer):
    """A truncated power series: `terms[k]` is the coefficient of sᵏ, and None is zero.

    `root` identifies the value, of which this may be the series to a lower degree.
    """

    __slots__ = ("terms", "root")

    def __init__(self, trace, terms, root):
        self._trace, self.terms, self.root, self.aval = trace, terms, root, terms[0].aval


class JetTrace(Interpreter):
    """Applies each primitive to series; a result without higher terms is no tracer, but a value."""

    def __init__(self):
        # operation and roots of its operands -> root of its results
        self.roots: dict = {}
        self.made: dict = {}  # root -> its longest series so far
        self.kept: list = []  # keeps alive the values that keys hold by identity

    def interpret(self, prim, args, params):
        order = min(len(a.terms) - 1 for a in args if type(a) is JetTracer and a._trace is self)
        key = self.key(prim, args, params)
        root = self.roots.setdefault(key, object()) if key is not None else object()
        outs = self.made.get(root)
        if outs is None or len(outs[0]) <= order:
            outs = self.made[root] = self.apply(prim, args, params, order)
        made = [self.wrap(ts[: order + 1], (root, i)) for i, ts in enumerate(outs)]
        return made if prim.multiple_results else made[0]

    def terms(self, x) -> list:
        return x.terms if type(x) is JetTracer and x._trace is self else [x]

    def wrap(self, terms, root):
        return terms[0] if all(t is None for t in terms[1:]) else JetTracer(self, terms, root)

    def key(self, prim, args, params):
        """The key by which equal operations are computed once; None if a parameter has no hash."""
        operands = []
        for a in args:
            if type(a) is JetTracer and a._trace is self:
                operands.append(a.root)
            elif type(a) is ArrayImpl and not a.aval.shape and a.aval.dtype in INEXACT:
                operands.append((a.aval, a.host.tobytes()))
            else:
                self.kept.append(a)
                operands.append(id(a))
        key = prim, tuple(operands), tuple(params.items())
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def apply(self, prim, args, params, order: int) -> list:
        """The terms, up to `order`, of each result."""
        if isinstance(prim, NonDifferentiable):
            out = bind(prim, [self.terms(a)[0] for a in args], params)
            outs = out if prim.multiple_results else [out]  # type: ignore[attr-defined]
            return [_padded([o], order) for o in outs]
        if prim is jit_p:
            outs = eval_closed(params["jaxpr"], *[self.cut(a, order) for a in args])
            return [_padded(self.terms(o), order) for o in outs]
        if prim in _LINEAR or prim.live in ("moves", "cases"):
            return [_linear(prim, [self.terms(a) for a in args], params, order)]
        if prim in _BILINEAR:
            x, y = [self.terms(a) for a in args]
            return [_product(lambda x, y: bind(prim, [x, y], params), x, y, order)]
        if prim is div_p:
            x, y = [self.terms(a) for a in args]
            return [_quotient(x, y, order)]
        return self.by_rule(prim, args, params, order)

    def by_rule(self, prim, args, params, order: int) -> list:
        """From the jvp rule on the series and their derivatives, one degree less."""
        tangents = [self.derivative(a, order) for a in args]
        out, ts = prim.jvp([self.cut(a, order - 1) for a in args], tangents, **params)
        outs, ts = (out, ts) if prim.multiple_results else ([out], [ts])
        result = []
        for y, t in zip(outs, ts):
            slopes = [] if t is None else self.terms(t)
            result.append([self.terms(y)[0], *[_scaled(c, k) for k, c in enumerate(_padded(slopes, order - 1), 1)]])
        return result

    def cut(self, x, order: int):
        """A series to this degree."""
        return self.wrap(x.terms[: order + 1], x.root) if type(x) is JetTracer and x._trace is self else x

    def derivative(self, x, order: int):
        """The series of x′(s), or None if it is zero."""
        slopes = [_times(c, k) for k, c in enumerate(self.terms(x)[1 : order + 1], 1)]
        if all(c is None for c in slopes):
            return None
        first = zeros(x.aval) if slopes[0] is None else slopes[0]
        return self.wrap([first, *_padded(slopes[1:], order - 2)], ("slope", x.root))


def _padded(terms, order: int) -> list:
    return [*terms, *[None] * (order + 1 - len(terms))]


def _number(x, n):
    return scalar_array(n, x.aval.dtype, False)


def _times(c, n: int):
    return c if c is None or n == 1 else mul(c, _number(c, n))


def _scaled(c, n: int):
    return c if c is None or n == 1 else div(c, _number(c, n))


def _linear(prim, series, params, order: int) -> list:
    """Apply a linear operation term by term; missing terms are zeros, but not of indices."""
    out = [bind(prim, [s[0] for s in series], params)]
    for k in range(1, order + 1):
        at = [s[k] if k < len(s) else None for s in series]
        if all(c is None for c in at):
            out.append(None)
            continue
        args = [
            s[0]
            if not is_differentiable(s[0].aval) or (prim is select_n_p and not i)
            else zeros(s[0].aval)
            if c is None
            else c
            for i, (s, c) in enumerate(zip(series, at))
        ]
        out.append(bind(prim, args, params))
    return out


def _product(product: Callable, xs, ys, order: int) -> list:
    """The coefficients of a product: zₖ = Σ xᵢ·yₖ₋ᵢ."""
    out: list = [product(xs[0], ys[0])]
    for k in range(1, order + 1):
        total = None
        for i in range(max(0, k - len(ys) + 1), min(k, len(xs) - 1) + 1):
            if xs[i] is not None and ys[k - i] is not None:
                part = product(xs[i], ys[k - i])
                total = part if total is None else add_any(total, part)
        out.append(total)
    return out


def _quotient(xs, ys, order: int) -> list:
    """The coefficients of a quotient: zₖ = (xₖ - Σ yᵢ·zₖ₋ᵢ) / y₀, the sum from i = 1."""
    out: list = [div(xs[0], ys[0])]
    shape = out[0].aval.shape
    for k in range(1, order + 1):
        total = None if k >= len(xs) or xs[k] is None else _of_shape(xs[k], shape)
        for i in range(1, min(k, len(ys) - 1) + 1):
            if ys[i] is not None and out[k - i] is not None:
                part = mul(ys[i], out[k - i])
                total = bind(neg_p, [part], {}) if total is None else sub(total, part)
        out.append(None if total is None else div(total, ys[0]))
    return out


def _of_shape(x, shape):
    return x if x.aval.shape == shape else broadcast_to(x, shape)


def taylor(function: Callable, primals, series) -> tuple[list, list]:
    """The results of a function on lists, and their series without the first terms."""
    trace, order = JetTrace(), max((len(s) for s in series), default=0)
    with new_level(trace):
        args = [trace.wrap(_padded([x, *s], order), object()) for x, s in zip(primals, series)]
        outs = [_padded(trace.terms(o), order) for o in function(*args)]
    return [ts[0] for ts in outs], [ts[1:] for ts in outs]


@boundary
def jet(fun: Callable, primals: Any, series: Any, factorial_scaled: bool = True, **_: Any) -> Any:
    """The truncated Taylor polynomial of `fun` along a curve.

    The curve goes through `primals` with derivatives `series`; the result has the derivatives of
    `fun` along it. One call gives all orders, in work that grows with the square of their number,
    not exponentially as nested jvp.

    Args:
        fun: a function of arrays, or pytrees of them, to the same.
        primals: a tuple or list, one value per argument.
        series: a tuple or list that holds, per argument, the list of its higher terms, or
            `zero_series` if they are all zero; the n-th is the n-th derivative, and all lists have
            one length.
        factorial_scaled: False takes and gives coefficients of the polynomial, which are the
            derivatives divided by n!.

    Returns:
        `(value, series)`: each leaf of the output has its list of terms.

    Raises:
        ValueError: the lists differ in length, or a term differs from its primal in structure or
            shape.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.jet import jet
        >>> y, (d1, d2, d3) = jet(lambda x: x ** 3, (2.0,), ([1.0, 0.0, 0.0],))
        >>> [float(d) for d in (y, d1, d2, d3)]
        [8.0, 12.0, 12.0, 6.0]
    """
    check_callable("jet", fun)
    for what, x in (("primals", primals), ("series", series)):
        if not isinstance(x, (tuple, list)):
            raise TypeError(f"jet: {what} must be a tuple or list with an entry per argument, got {type(x).__name__}.")
    leaves, tree = flatten(tuple(primals))
    leaves = arrays("jet", leaves, tree, "primals")
    terms = _checked_series(primals, series, leaves)
    scale = [math.factorial(k) if factorial_scaled else 1 for k in range(1, len(terms[0]) + 1)] if terms else []
    flat = Flat(fun, name_of(fun), positional(tree).unflatten)
    ys, outs = taylor(flat, leaves, [[_scaled(c, n) for c, n in zip(ts, scale)] for ts in terms])
    full = [[zeros(y.aval) if c is None else _times(c, n) for c, n in zip(ts, scale)] for y, ts in zip(ys, outs)]
    return flat.out_tree.unflatten(ys), flat.out_tree.unflatten(full)


def _checked_series(primals, series, leaves) -> list:
    """Per leaf of the primals the list of its terms."""
    if len(primals) != len(series):
        raise ValueError(
            f"jet: series has {len(series)} entries for {len(primals)} primals; give a list of terms each."
        )
    for i, terms in enumerate(series):
        if not isinstance(terms, (tuple, list, ZeroSeries)):
            raise TypeError(
                f"jet: series[{i}] must be a list of terms, got {type(terms).__name__}; wrap one term as [t]."
            )
    lengths = [len(terms) for terms in series if not isinstance(terms, ZeroSeries)]
    if len(set(lengths)) > 1:
        raise ValueError(f"jet terms have inconsistent lengths for different arguments: {lengths}. Fill up with zeros.")
    order = max(lengths, default=0)
    given, out = iter(leaves), []
    for i, (primal, terms) in enumerate(zip(primals, series)):
        _, tree = flatten(primal)
        if isinstance(terms, ZeroSeries):
            for _ in range(tree.num_leaves):
                next(given)
                out.append([None] * order)
            continue
        columns = []
        for k, term in enumerate(terms):
            parts, other = flatten(term)
            if other != tree:
                raise ValueError(f"jet: series[{i}][{k}] has structure {other}, its primal {tree}.")
            columns.append(arrays("jet", parts, other, f"series[{i}][{k}]"))
        for j in range(tree.num_leaves):
            out.append(
                [_term(c[j], next_aval, i, k) for k, c in enumerate(columns)]
                if is_differentiable(next_aval := next(given).aval)
                else [None] * len(terms)
            )
    return out


def _term(c, aval, i: int, k: int):
    if c.aval.shape != aval.shape:
        raise ValueError(f"jet: series[{i}][{k}] has shape {c.aval.shape}, its primal {aval.shape}.")
    return c if c.aval.dtype == aval.dtype else convert_element_type(c, aval.dtype)
