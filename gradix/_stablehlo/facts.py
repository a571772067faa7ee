"""Facts about a module, recorded while it is written, to choose compile options by."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gradix._core.jaxpr import Jaxpr
from gradix._stablehlo.evaluations import is_fused, most_evaluations


class Product(NamedTuple):
    """A product of matrices, or a convolution; equal records are compiled alike."""

    operation: str
    dtype: np.dtype
    types: tuple  # of operands and result
    attributes: str
    terms: int  # summed for each element of the result
    multiplications: int
    is_in_loop: bool = False


class Convolution(NamedTuple):
    """The sizes of a convolution that decide which library computes it quickly."""

    dtype: np.dtype
    kernel: tuple  # sizes of the axes of space
    result: tuple  # sizes of the axes of space
    inputs: int  # input features of one group
    outputs: int
    feature_groups: int
    batch_groups: int
    lhs_dilation: tuple
    multiplications: int


class Facts:
    """What a module holds; what follows from it is asked for once the module is written.

    Attributes:
        structured: the names of its operations with regions, such as loops and reductions.
        programs: the jaxprs it is written from, inner ones included.
        arguments: the types of the program's arguments and results.
        results: the types of the program's results.
        products: how often each product or convolution occurs; those of a function count once per
            call.
        convolutions: its convolutions.
        custom_calls: the targets of its custom calls.
        factored: the number of elements of the largest matrix given to LAPACK; 0 without any, None
            where a size is unknown.
        rewrites: how often each of the platform's rewrites was taken, by name.
    """

    def __init__(self):
        self.structured: set[str] = set()
        self.programs: list[Jaxpr] = []
        self.arguments: tuple = ()
        self.results: tuple = ()
        self.products: dict[Product, int] = {}
        self.convolutions: list[Convolution] = []
        self.custom_calls: set[str] = set()
        self.factored: int | None = 0
        self.rewrites: dict[str, int] = {}

    @cached_property
    def has_loop(self) -> bool:
        return "while" in self.structured

    @cached_property
    def largest_argument(self) -> int | None:
        """The elements of the largest argument or result; None where one is of unknown size."""
        return _largest(self.arguments)

    @cached_property
    def largest(self) -> int | None:
        """The elements of the largest array of all; None where one is of unknown size."""
        return _largest({*self.arguments, *[v.aval for j in self.programs for e in j.eqns for v in e.outvars]})

    @cached_property
    def largest_fused(self) -> int | None:
        """The elements of the largest array that a fused operation gives; not of stacks of rows."""
        return _largest({v.aval for j in self.programs for e in j.eqns if is_fused(e.primitive) for v in e.outvars})

    @cached_property
    def dtypes(self) -> set:
        """The dtypes of its values."""
        return {getattr(v.aval, "dtype", None) for j in self.programs for e in j.eqns for v in e.outvars}

    @cached_property
    def alike(self) -> int:
        """How many results have the type of an earlier result."""
        return len(self.results) - len(set(self.results))

    @cached_property
    def equations(self) -> int:
        """The number of equations."""
        return sum([len(j.eqns) for j in self.programs])

    @cached_property
    def repeated(self) -> int:
        """How many operations that are not fused, such as products, equal an earlier one."""
        kernels = [
            (e.primitive, *[v.aval for v in e.invars])
            for j in self.programs
            for e in j.eqns
            if not (is_fused(e.primitive) or e.primitive.is_call)
        ]
        return max(sum([n - 1 for n in self.products.values()]), len(kernels) - len(set(kernels)))

    @cached_property
    def evaluations(self) -> int:
        """The most places at which a fused loop evaluates one value (see `most_evaluations`)."""
        return max([most_evaluations(j) for j in self.programs], default=1)

    @cached_property
    def primitives(self) -> set:
        """The primitives of its equations."""
        return {e.primitive for j in self.programs for e in j.eqns}

    @cached_property
    def formulas(self) -> set:
        """The kinds of the formulas by which its primitives are computed."""
        return {p.formula for p in self.primitives}

    def add(self, product: Product, count: int = 1) -> None:
        self.products[product] = self.products.get(product, 0) + count

    def add_convolution(self, **sizes) -> None:
        """Note a convolution, by the fields of `Convolution`."""
        self.convolutions.append(Convolution(**sizes))

    def add_factored(self, avals) -> None:
        """Note matrices, or stacks of them, that are given to LAPACK."""
        for a in avals:
            elements = math.prod(a.shape[-2:])
            known = type(elements) is int and self.factored is not None
            self.factored = max(self.factored or 0, elements) if known else None


def _largest(avals) -> int | None:
    sizes = [getattr(a, "size", 0) for a in avals]
    return max(sizes, default=0) if {int}.issuperset(map(type, sizes)) else None
