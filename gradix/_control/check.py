"""`check_p`: a check in a program; a transform can turn its outcome into a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradix._core.array import ArrayImpl, as_array
from gradix._core.effects import CheckEffect
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import to_axis
from gradix._ops.comparison import ne
from gradix._ops.indexing.dynamic_slicing import dynamic_slice
from gradix._ops.reductions import argmax
from gradix._ops.shape import reshape


class Site(NamedTuple):
    """One check of a program.

    `exception(words)` makes what is raised where it fails; `place` is the user's line.
    """

    category: type
    exception: Callable[[np.ndarray], Exception]
    place: Any


class Check(Primitive):
    """Fails if `code`, an int32 scalar, is not 0.

    Then the check `sites[code - 1]` has failed, and `words` hold the values for its message. A
    check of kind "debug" does nothing unless a transform collects it; one of kind "raise" belongs
    to an inner function that was jitted with `check`.
    """

    multiple_results = True
    effectful = True

    def abstract(self, code, words, *, sites, kind):
        return []

    def effects(self, params):
        return frozenset([CheckEffect(params["kind"])])

    def run(self, args, params):
        if params["kind"] != "debug":
            code, words = args
            raise_failed(code, words, params["sites"])
        return []

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), []

    def batch(self, size, args, axes, **params):
        code, words = [to_axis(size, x, a, 0) for x, a in zip(args, axes)]
        return bind(self, first_failed(code, words), params), []

    def lower(self, em, outs, *args, sites, kind):
        if kind == "raise":
            raise ValueError(
                "a function of jit(f, check=...) is called in a loop or branch that is compiled without "
                "jit: compiled code cannot raise. Put the loop into a jitted function. The check is at "
                f"{sites[0].place}."
            )
        if kind != "debug":
            raise ValueError(
                "Cannot abstractly evaluate a checkify.check which was not functionalized: compiled code cannot "
                'raise. Make the error a result with checkify.checkify(f), or compile with jit(f, check="user"). '
                f"It is at {sites[0].place}."
            )
        return []

    def show(self, params):
        return {"kind": params["kind"]}


check_p = Check("check")


def first_failed(code, words) -> list:
    """Of many codes along the leading axes, the first that is not 0, and its words."""
    n = code.size
    if not code.aval.shape:
        return [code, words]
    k = words.aval.shape[-1]
    code, words = reshape(code, (n,)), reshape(words, (n, k))
    if not n:
        return [as_array(np.int32(0)), as_array(np.zeros(k, np.uint32))]
    at = argmax(ne(code, np.int32(0)), 0, np.dtype("int32"))
    return [
        reshape(dynamic_slice(code, (at,), (1,)), ()),
        reshape(dynamic_slice(words, (at, np.int32(0)), (1, k)), (k,)),
    ]


def raise_failed(code: ArrayImpl, words: ArrayImpl, sites) -> None:
    """Raise the error of the first nonzero value of `code`, if there is one."""
    codes = np.asarray(code.host)
    if codes.any():
        raise errors_in(codes, np.asarray(words.host), sites)[0][1]


def errors_in(codes: np.ndarray, words: np.ndarray, sites) -> list:
    """The pairs (index, exception) of all errors among codes of any shape."""
    return (
        [(index, sites[int(codes[index]) - 1].exception(words[index])) for index in zip(*np.nonzero(codes))]
        if codes.ndim
        else [((), sites[int(codes) - 1].exception(words))]
        if codes
        else []
    )
