"""Sums of products of adjoining parts of two arrays, which are made one product of larger parts.

A loop over blocks that adds the product of two blocks to its result is written out, and what comes
of it is the product of the whole arrays: `x[:, :4] @ y[:4] + x[:, 4:] @ y[4:]` is `x @ y`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._transforms.dce import dce_jaxpr
from gradix.experimental.pallas._folding import literal


class Part(NamedTuple):
    """The part of `source` at `starts`; `eqn` cut it out, or is None where it is the whole."""

    source: Any
    starts: tuple
    sizes: tuple
    eqn: Any

    def next_to(self, other: Part, axis: int) -> Part | None:
        """This part with the other, if that one follows along the axis."""
        start = self.starts[axis] + self.sizes[axis]
        same = self.source is other.source and self.eqn is not None and other.eqn is not None
        if not same or other.starts != _with(self.starts, axis, start):
            return None
        if other.sizes != _with(self.sizes, axis, other.sizes[axis]):
            return None
        return self._replace(sizes=_with(self.sizes, axis, self.sizes[axis] + other.sizes[axis]))


def _with(sizes: tuple, axis: int, size: int) -> tuple:
    return (*sizes[:axis], size, *sizes[axis + 1 :])


class Product(NamedTuple):
    """A product of two parts; `eqn` is one with the same parameters."""

    left: Part
    right: Part
    eqn: JaxprEqn

    def with_next(self, other: Product) -> Product | None:
        """The product of larger parts that is the sum of both products, if the other one's parts follow."""
        if self.eqn.params != other.eqn.params:
            return None
        (lefts, rights), _ = self.eqn.params["dimension_numbers"]
        for i, j in zip(lefts, rights):
            left, right = self.left.next_to(other.left, i), self.right.next_to(other.right, j)
            if left is not None and right is not None:
                return Product(left, right, self.eqn)
        return None


def joined(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with sums of products of adjoining parts as one product each."""
    jaxpr = closed.jaxpr
    if sum([eqn.primitive.name == "dot_general" for eqn in jaxpr.eqns]) < 2:
        return closed
    joining = _Joining(jaxpr)
    for eqn in jaxpr.eqns:
        joining.take(eqn)
    if not joining.has_joined:
        return closed
    new = Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, joining.eqns, jaxpr.effects, jaxpr.debug_info)
    return ClosedJaxpr(dce_jaxpr(new, keep_inputs=True)[0], closed.consts)


class _Joining:
    """Collects the equations of a program, in which products have been joined."""

    def __init__(self, jaxpr: Jaxpr):
        self.eqns: list[JaxprEqn] = []
        self.parts: dict[Var, Part] = {}
        self.products: dict[Var, Product] = {}
        self.sums: dict[Var, tuple[Any, Product]] = {}  # what a product has been added to, and that product
        uses = [v for eqn in jaxpr.eqns for v in eqn.invars] + list(jaxpr.outvars)
        self.uses = Counter([v for v in uses if type(v) is not Literal])
        self.has_joined = False

    def take(self, eqn: JaxprEqn) -> None:
        """Add an equation, or what it comes to."""
        name = eqn.primitive.name
        if name == "dynamic_slice":
            self._note_part(eqn)
        elif name == "dot_general" and not any(is_symbolic_shape(v.aval.shape) for v in eqn.invars):
            left, right = map(self._part, eqn.invars)
            self.products[eqn.outvars[0]] = Product(left, right, eqn)
        elif name == "add" and self._add(eqn):
            return
        self.eqns.append(eqn)

    def _note_part(self, eqn: JaxprEqn) -> None:
        source, *starts = eqn.invars
        shape, sizes = source.aval.shape, eqn.params["slice_sizes"]
        if type(source) is Literal or is_symbolic_shape(shape) or not all(type(s) is Literal for s in starts):
            return
        found = tuple([int(np.asarray(s.val)) for s in starts])
        if all(0 <= s <= n - size for s, n, size in zip(found, shape, sizes)):
            self.parts[eqn.outvars[0]] = Part(source, found, tuple(sizes), eqn)

    def _part(self, atom) -> Part:
        found = None if type(atom) is Literal else self.parts.get(atom)
        return found or Part(atom, (0,) * len(atom.aval.shape), tuple(atom.aval.shape), None)

    def _add(self, eqn: JaxprEqn) -> bool:
        """Take a sum; whether its product was joined with the one before."""
        out = eqn.outvars[0]
        for one, other in (eqn.invars, eqn.invars[::-1]):
            product = self._once(self.products, other)
            if product is None:
                continue
            base, before = self._once(self.sums, one) or (None, self._once(self.products, one))
            whole = before and (before.with_next(product) or product.with_next(before))
            if not whole:
                self.sums[out] = one, product
                return False
            self.has_joined = True
            made = out if base is None else Var(out.aval)
            ins = [self._cut(whole.left), self._cut(whole.right)]
            self.eqns.append(product.eqn.replace(invars=ins, outvars=[made]))
            if base is None:
                self.products[out] = whole
            else:
                self.eqns.append(eqn.replace(invars=[base, made]))
                self.sums[out] = base, whole
            return True
        return False

    def _once(self, known: dict, atom) -> Any:
        """What is known of a value that is used once."""
        return known.get(atom) if type(atom) is not Literal and self.uses[atom] == 1 else None

    def _cut(self, part: Part):
        """A value that is a part of its array."""
        if part.sizes == tuple(part.source.aval.shape):
            return part.source
        eqn = part.eqn
        made = Var(eqn.outvars[0].aval.update(shape=part.sizes))
        starts = [literal(n, s.aval) for n, s in zip(part.starts, eqn.invars[1:])]
        params = {**eqn.params, "slice_sizes": part.sizes}
        self.eqns.append(eqn.replace(invars=[part.source, *starts], outvars=[made], params=params))
        return made


def sums_products(program: ClosedJaxpr) -> bool:
    """Whether a kernel adds a product of two of its inputs to another one of them."""
    jaxpr = program.jaxpr
    inputs, products = set(jaxpr.invars), set()
    for eqn in jaxpr.eqns:
        ins = [v for v in eqn.invars if type(v) is not Literal]
        if eqn.primitive.name == "dot_general" and inputs.issuperset(ins):
            products.update(eqn.outvars)
        elif eqn.primitive.name == "add" and not inputs.isdisjoint(ins) and not products.isdisjoint(ins):
            return True
    return False
