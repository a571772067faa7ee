"""`check_p`: an error that compiled code has found, kept in the program until something takes it out as a result."""

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
    """Fails where `code`, an int32 scalar, is not 0: then check `sites[code - 1]` did, with what `words` hold.

    Of kind "debug" it does nothing where nobody takes the error out; "raise" comes of a jitted
    function with checks of its own.
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
    """Of many errors along the leading axes, the first that is one."""
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
    """Raise the first error that the values of `code` tell of, if any."""
    codes = np.asarray(code.host)
    if codes.any():
        raise errors_in(codes, np.asarray(words.host), sites)[0][1]


def errors_in(codes: np.ndarray, words: np.ndarray, sites) -> list:
    """(index, exception) of each error among codes of any shape."""
    return (
        [
            (index, sites[int(codes[index]) - 1].exception(words[index]))
            for index in zip(*np.nonzero(codes))
        ]
        if codes.ndim
        else [((), sites[int(codes) - 1].exception(words))]
        if codes
        else []
    )
