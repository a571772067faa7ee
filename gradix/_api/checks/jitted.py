"""Checks of jitted functions: the names of the kinds of checks, and what each raises."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._api.checks import program_rules  # noqa: F401  (fills the table of rules)
from gradix._api.checks.coverage import flattened
from gradix._api.checks.errors import (
    DivisionByZeroError,
    FailedCheckError,
    JaxRuntimeError,
    NaNError,
    OOBError,
    all_checks,
    automatic_checks,
    div_checks,
    float_checks,
    index_checks,
    nan_checks,
    user_checks,
)
from gradix._api.checks.programs import Checker
from gradix._control.check import check_p, errors_in
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.trace import bind
from gradix._transforms.batch import BatchTracer
from gradix._transforms.jvp import JVPTracer

SETS = {
    "user": user_checks,
    "nan": nan_checks,
    "div": div_checks,
    "index": index_checks,
    "float": float_checks,
    "automatic": automatic_checks,
    "all": all_checks,
}
_RAISED: dict[type, type[Exception]] = {
    NaNError: FloatingPointError,
    DivisionByZeroError: ZeroDivisionError,
    OOBError: IndexError,
    FailedCheckError: JaxRuntimeError,
}


def with_checks(
    closed: ClosedJaxpr, names: tuple | None, is_screen: bool = False, by_sums: bool = False
) -> tuple[ClosedJaxpr, tuple]:
    """The program with two further results, which check failed and what it met; and its checks."""
    errors = frozenset().union(*[SETS[n] for n in names or ()])
    kinds = ("raise",) if names is None else ("check", "debug", "raise")
    if is_screen:
        closed = flattened(closed)
    checker = Checker(errors, closed, kinds, is_screen=is_screen, by_sums=by_sums)
    program = checker.program(closed)
    return (closed, ()) if program is None else (program, tuple(checker.sites))


def has_failed(code: Any) -> bool:
    """Whether a check is known to have failed."""
    codes = _value(code)
    return codes is not None and bool(codes.any())


def raise_found(code: Any, words: Any, sites: tuple) -> None:
    """Raise the error of a state; if its value is not known yet, pass it to the outer program."""
    codes, rows = _value(code), _value(words)
    if codes is None or rows is None:
        bind(check_p, [code, words], {"sites": sites, "kind": "raise"})
    elif codes.any():
        rows = np.broadcast_to(rows, (*codes.shape, rows.shape[-1]))
        _, error = errors_in(codes, rows, sites)[0]
        raise _RAISED[type(error)](str(error)) from None


def _value(x) -> np.ndarray | None:
    """The value in tracers of vmap and derivatives, or None; mapped axes come first."""
    if isinstance(x, ArrayImpl):
        return np.asarray(x.host)
    if isinstance(x, JVPTracer):
        return _value(x.primal)
    if isinstance(x, BatchTracer):
        value = _value(x.val)
        if value is None:
            return None
        outer = value.ndim - x.val.ndim
        return np.moveaxis(value, outer + x.axis, outer)
    return None
