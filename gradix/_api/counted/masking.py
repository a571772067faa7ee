"""Masking: a program with sizes that values decide, as one on buffers of the greatest sizes.

The elements of a buffer past a size are arbitrary; each rule keeps them out of the elements before
it. Masking comes last, after derivatives have been taken: it is not exact to differentiate a masked
program, in which arbitrary elements meet zero cotangents.
"""

from __future__ import annotations

import numpy as np

from gradix._api.counted import results
from gradix._base.lazy import lazy_module
from gradix._control.call import jit_p
from gradix._core.dimensions.counts import bound_of, counts_in
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dtypes import is_extended
from gradix._core.jaxpr import ClosedJaxpr, Literal, equation_holds
from gradix._core.trace import bind, state
from gradix._ops.arithmetic import max as max_, min as min_
from gradix._ops.bitwise import bitwise_and
from gradix._ops.comparison import lt
from gradix._ops.convert import convert_element_type
from gradix._ops.counted import prefix_p
from gradix._ops.creation import broadcasted_iota, full
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.families import Elementwise
from gradix._ops.indexing.slicing import pad, slice_in_dim
from gradix._ops.indexing.true_places import true_places_p
from gradix._ops.select import select
from gradix._ops.shape import broadcast_in_dim
from gradix._transforms.counted import defined, defines_any, defines_size, used
from gradix._transforms.cse import simplify
from gradix._transforms.staging import eval_closed, hoist, stage

INDEX = np.dtype("int32")


class NoMaskRule(NotImplementedError):
    """An operation has no meaning on a buffer yet, with the way out in the message."""


class Frame:
    """The program that is evaluated on buffers: its equations, and the values of its variables."""

    __slots__ = ("eqns", "env", "_makers", "_masks", "_known")

    def __init__(self, eqns, env: dict):
        self.eqns, self.env = eqns, env
        self._makers: dict | None = None
        self._masks: dict = {}
        self._known: dict = {}

    def maker(self, v):
        """The equation that makes a variable; None of others."""
        if self._makers is None:
            self._makers = {o: e for e in self.eqns for o in e.outvars}
        return None if type(v) is Literal else self._makers.get(v)

    def mask_of(self, dim):
        """The mask, a vector, of which a size is the number of true elements; None if none is known."""
        if dim not in self._masks:
            self._masks[dim] = None
            for e in self.eqns:
                if e.primitive is prefix_p and e.params["dim"] is dim:
                    found = self.maker(e.invars[0])
                    is_whole = found is not None and found.primitive is true_places_p
                    if is_whole and found.params["size"] == found.invars[0].aval.shape[0]:
                        self._masks[dim] = found.invars[0]
                        break
        v = self._masks[dim]
        return None if v is None else self.value(v)

    def value(self, v):
        return v.val if type(v) is Literal else self.env.get(v)


class Sizes:
    """What is known of the sizes of a program: which it replaces, and their values as arrays."""

    def __init__(self):
        self.values: dict = {}  # count -> its value, a traced int32
        self.own: set = set()  # the counts that are replaced by their bounds
        self.frame: Frame = Frame((), {})  # the program that is evaluated

    def is_open(self, d) -> bool:
        return type(d) is SymbolicDim and not counts_in(d).isdisjoint(self.own)

    def bound(self, d):
        return bound_of(d) if self.is_open(d) else d

    def shape(self, shape) -> tuple:
        return tuple([self.bound(d) for d in shape])

    def open(self, shape, axes=None) -> list:
        """The axes, among `axes`, along which a shape has a size that is replaced."""
        return [i for i, d in enumerate(shape) if self.is_open(d) and (axes is None or i in axes)]

    def value(self, d):
        """A size as a number or a traced integer."""
        if type(d) is not SymbolicDim:
            return d
        if not self.is_open(d):
            return convert_element_type(dim_as_value(d), INDEX)
        return convert_element_type(self._number(d), INDEX)

    def _number(self, d):
        if type(d) is int:
            return d
        total = 0
        for monomial, c in d.terms:
            product = c
            for atom, n in monomial:
                value = self._atom(d.scope, atom)
                for _ in range(n):
                    product = value * product
            total = product if type(total) is int and total == 0 else product + total
        return total

    def _atom(self, scope, atom):
        if type(atom) is str:
            dim = scope.variable(atom)
            if dim in self.values:
                return self.values[dim]
            return convert_element_type(dim_as_value(dim), INDEX)
        x, y = [self._number(operand) for operand in atom.operands]
        if atom.name in ("max", "min"):
            x, y = [convert_element_type(v, INDEX) for v in (x, y)]
            return max_(x, y) if atom.name == "max" else min_(x, y)
        return x // y if atom.name == "floordiv" else x % y

    def live(self, shape, axes):
        """Which elements of a buffer lie before the sizes along these axes."""
        bounds, out = self.shape(shape), None
        for i in axes:
            at = broadcasted_iota(INDEX, bounds, i)
            here = lt(at, broadcast_in_dim(self.value(shape[i]), bounds, ()))
            out = here if out is None else bitwise_and(out, here)
        return out

    def filled(self, x, shape, axes, value):
        """A buffer with `value` past the sizes along these axes."""
        axes = self.open(shape, axes)
        if not axes or is_extended(x.aval.dtype):  # of random keys, none is computed from others
            return x
        fill = value if hasattr(value, "aval") else np.asarray(value, x.aval.dtype)
        return select(self.live(shape, axes), x, full(x.aval.shape, fill, x.aval.dtype))

    def params(self, params) -> dict:
        """Parameters with bounds in place of sizes."""
        return {k: self._param(v) for k, v in params.items()}

    def _param(self, v):
        if type(v) is SymbolicDim:
            return self.bound(v)
        if type(v) in (tuple, list):
            return type(v)([self._param(x) for x in v])
        return v

    def same(self, e, xs, **other):
        """An equation's operation on buffers."""
        return bind(e.primitive, list(xs), {**self.params(e.params), **other})


# -- rules -----------------------------------------------------------------------------------------

_RULES: dict = {}
# a part of the package -> the module with the rules of its primitives, which is loaded when needed
_MODULES = {
    "gradix._control": "control",
    "gradix._ops.linalg": "factorizations",
    "gradix._ops.conv": "windows",
    "gradix._ops.windows": "windows",
    "gradix._ops.fft": "fourier",
    "gradix._ops.indexing": "indexing",
    "gradix._ops.sorting": "reductions",
    "gradix._ops.reductions": "reductions",
    "gradix._ops.basis": "reductions",
    "gradix._ops.cumulative": "reductions",
    "gradix._ops.dot": "reductions",
    "gradix._ops.random": "random",
    "gradix._ops": "structural",
}


def rule(*names):
    """Register a function as the mask rule of the primitives of these names."""

    def register(function):
        for n in names:
            _RULES[n] = function
        return function

    return register


def _rule_of(prim):
    if prim.mask is not None:
        return prim.mask
    name = prim.name
    if name not in _RULES:
        if isinstance(prim, Elementwise):
            return Sizes_same
        home = type(prim).__module__
        for part, module in _MODULES.items():
            if home == part or home.startswith(part + "."):
                lazy_module(f"gradix._api.counted.{module}").rule  # noqa: B018  (loads its rules)
                if name in _RULES:
                    break
    return _RULES.get(name)


def Sizes_same(S: Sizes, e, *xs):
    return S.same(e, xs)


def is_concerned(S: Sizes, e) -> bool:
    """Whether an equation has to do with sizes that are replaced."""
    if e.primitive.defines_size:
        return True
    return not used(e).isdisjoint(S.own) or equation_holds(e, defines_size)


def evaluate(S: Sizes, closed, *args) -> list:
    """Run a program on buffers in the current trace."""
    jaxpr, consts = (closed.jaxpr, closed.consts) if type(closed) is ClosedJaxpr else (closed, ())
    S.own |= defined(jaxpr)
    env = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    before, around = state.place, S.frame
    S.frame = Frame(jaxpr.eqns, env)
    try:
        for e in jaxpr.eqns:
            if state.stage is not None:
                state.place = e.source
            xs = [v.val if type(v) is Literal else env[v] for v in e.invars]
            out = _masked(S, e, xs) if is_concerned(S, e) else bind(e.primitive, xs, e.params)
            env.update(zip(e.outvars, out if e.primitive.multiple_results else [out]))
    finally:
        state.place, S.frame = before, around
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


def _masked(S: Sizes, e, xs):
    found = _rule_of(e.primitive)
    if found is None:
        raise _missing(S, e)
    return found(S, e, *xs)


def _missing(S: Sizes, e) -> NoMaskRule:
    types = ", ".join([v.aval.str_short() for v in e.invars])
    return NoMaskRule(
        f"'{e.primitive.name}'{_at(e)} does not take sizes that values decide: it is given {types}"
        f"{told(e)}.\n  instead: fix the size, as in x[jnp.nonzero(mask, size=n, fill_value=0)]; or keep all elements, "
        "as in jnp.where(mask, x, 0)."
    )


def _at(e) -> str:
    return f" at {e.source}" if e.source else ""


def told(e) -> str:
    """Where the sizes in an equation's types were decided, as the end of a sentence."""
    dims = [d for v in (*e.invars, *e.outvars) for d in v.aval.shape if counts_in(d)]
    return f", where {dims[0].scope.told(*dims)}" if dims else ""


def refuse(e, why: str, instead: str) -> NoMaskRule:
    """The error for an operation that has no meaning where values decide a size."""
    return NoMaskRule(f"{why}{',' if e.source else ''}{_at(e)}{told(e)}.\n  instead: {instead}.")


# -- the definition of sizes -----------------------------------------------------------------------


@rule("size")
def _size(S, e, n):
    S.values[e.params["dim"]] = convert_element_type(n, INDEX)
    return n


@rule("prefix")
def _prefix(S, e, x):
    axis = e.params["axis"]
    return fitted(x, axis, S.bound(e.params["dim"]))


@rule("whole")
def _whole(S, e, x):
    axis = e.params["axis"]
    x = S.filled(x, e.invars[0].aval.shape, (axis,), 0)
    return fitted(x, axis, S.bound(e.params["bound"]))


@rule("buffer")
def _buffer(S, e, x):
    return fitted(x, e.params["axis"], S.bound(e.params["bound"]))


@rule("dim_as_value")
def _dim_as_value(S, e):
    return convert_element_type(S.value(e.params["dim"]), e.outvars[0].aval.dtype)


def fitted(x, axis: int, size):
    """A buffer of another size along an axis: cut, or with zeros at the end."""
    n = x.aval.shape[axis]
    if n is size or (type(n) is int and n == size):
        return x
    if type(n) is int and type(size) is int and n > size:
        return slice_in_dim(x, 0, size, axis=axis)
    pads = [(0, size - n if i == axis else 0, 0) for i in range(x.aval.ndim)]
    return pad(x, full((), 0, x.aval.dtype), pads)


# -- whole programs --------------------------------------------------------------------------------


def masked(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program on buffers; a program without counts is returned as it is."""
    if not defines_any(closed.jaxpr):
        return closed
    found = closed.memo.get("masked")
    if found is None:
        jaxpr, consts = stage(lambda *xs: evaluate(Sizes(), closed, *xs), closed.in_avals, closed.jaxpr.debug_info)
        found = closed.memo["masked"] = simplify(ClosedJaxpr(jaxpr, consts))
    return found


def call(jaxpr, consts, args) -> list:
    """Evaluate a program with counts outside of every trace that records a program."""
    closed, consts = hoist(jaxpr, list(consts))
    args = [*consts, *args]
    tree = None

    def whole(*xs):
        nonlocal tree
        outs, tree = results.close(eval_closed(closed, *xs), None)
        return outs

    key = "call", len(args)
    found = closed.memo.get(key)
    if found is None:
        found = ClosedJaxpr(*stage(whole, closed.in_avals, jaxpr.debug_info)), tree
        closed.memo[key] = found
    program, tree = found
    outs = bind(jit_p, args, {"jaxpr": program, "name": jaxpr.debug_info.name or "program"})
    if tree is None:
        return outs
    n = len(tree.shapes)
    return tree.opened(outs[:n], outs[n:])
