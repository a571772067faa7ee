"""`checkify` and `check`: errors of compiled code as results."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._api.arguments import Names, check_callable, name_of, stand_in
from gradix._api.boundary import Flat, around, results
from gradix._api.checks import program_rules  # noqa: F401  (fills the table of rules)
from gradix._api.checks.errors import Error, ErrorCategory, FailedCheckError, JaxRuntimeError, user_checks
from gradix._api.checks.programs import Checker
from gradix._api.checks.words import pack, unpack
from gradix._base import source
from gradix._base.bounded import BoundedCache
from gradix._base.errors import class_of
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten
from gradix._control.check import Site, check_p, first_failed
from gradix._core.array import as_array, is_array_like
from gradix._core.dtypes import KeyType
from gradix._core.operators import Array
from gradix._core.trace import Tracer, bind
from gradix._ops.random.random import random_unwrap, random_wrap
from gradix._ops.select import select
from gradix._transforms.staging import eval_closed

# how many programs with checks a function keeps, so that later calls need not compile them again
_KEPT = 16


def checkify(f: Callable, errors: frozenset[ErrorCategory] = user_checks) -> Callable[..., tuple[Error, Any]]:
    """`f` as a function that returns `(error, f(*args))`; `error` holds the first failed check.

    The checks are computed with the program, under jit, vmap and grad, in loops and branches.
    Nothing calls back to Python.

    Args:
        f: a function of arrays in pytrees; a bool, an int, or what is no array, reaches it as it is.
        errors: the kinds of errors to check for, joined with `|`: `user_checks` (those of `check`),
            `nan_checks`, `div_checks`, `index_checks`, `float_checks` (NaNs and divisions),
            `automatic_checks` (all but the user's), `all_checks`.

    Returns:
        A function with the arguments of `f`; `error` is an `Error`, a pytree of arrays.

    Raises:
        TypeError: `f` is not a function.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import checkify
        >>> def root(x):
        ...     checkify.check(x >= 0, "x must not be negative, got {x}", x=x)
        ...     return jnp.sqrt(x)
        >>> error, y = gradix.jit(checkify.checkify(root))(jnp.float32(-4))
        >>> error.get().split(" (")[0]
        'x must not be negative, got -4.0'
        >>> checkify.checkify(root)(jnp.float32(4))[0].get() is None
        True
    """
    check_callable("checkify", f)
    known: BoundedCache[int, tuple] = BoundedCache(_KEPT, drop=1)

    @boundary
    def checked(*args, **kwargs):
        every, tree = tree_flatten((args, kwargs))
        # what is no number, a bool, which a branch may ask for, and an int, which may be a size, stays as it is
        others = {i: x for i, x in enumerate(every) if not is_array_like(x) or type(x) in (bool, int)}
        leaves = [as_array(x) for i, x in enumerate(every) if i not in others]
        names = Names(f, tree)
        close, given = functools.partial(results, names), around(others, len(every), tree)
        flat = Flat(f, name_of(f), given, close=close, names=names)
        closed, consts = flat.stage_open([x.aval for x in leaves])
        found = known.get(id(closed))
        if found is None:
            checker = Checker(frozenset(errors), closed)
            found = known.keep(id(closed), (closed, checker, checker.program(closed)))
        closed, checker, program = found
        whole = closed if program is None else program
        outs = eval_closed(whole, *consts, *leaves)
        if program is None:
            return Error(as_array(np.int32(0)), checker.no_words()), flat.out_tree.unflatten(outs)
        return Error(outs[-2], outs[-1], tuple(checker.sites)), flat.out_tree.unflatten(outs[:-2])

    stand_in(checked, f)
    return checked


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Check that `pred` is true: raises in eager code, gives `checkify` an error in traced code.

    Args:
        pred: a scalar bool.
        msg: the text of the error, a format string of `str.format` for the further arguments.
        fmt_args, fmt_kwargs: arrays in pytrees; the text shows their values at run time.
        debug: do nothing unless the code runs under `checkify`.

    Raises:
        TypeError: `pred` is not a scalar bool, or a further argument is not an array.
        JaxRuntimeError: the check fails outside of traced code.
        ValueError: the check is compiled with neither `checkify` nor `jit(..., check="user")`.

    Example:
        >>> from gradix.experimental import checkify
        >>> checkify.check(1 < 2, "{a} must be less than {b}", a=1, b=2)
    """
    if isinstance(pred, (bool, np.bool_, np.ndarray)):
        pred = as_array(pred)
    if not isinstance(pred, Array) or pred.shape or pred.dtype != np.bool_:
        raise TypeError(f"check takes a scalar pred as argument, got {pred}. Reduce it with jnp.all or jnp.any.")
    leaves, tree = tree_flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex)):
            raise TypeError(
                f"Formatting arguments to checkify.check need to be PyTrees of arrays, but got {x!r} "
                f"of type {class_of(x)}."
            )
    values = [as_array(x) for x in leaves]
    impls = [v.aval.dtype._impl if isinstance(v.aval.dtype, KeyType) else None for v in values]
    values = [v if impl is None else random_unwrap(v) for v, impl in zip(values, impls)]
    packed, avals, place = pack(values), [v.aval for v in values], source.current()

    def exception(words):
        found = [as_array(x) for x in unpack(words, avals)]
        args, kwargs = tree.unflatten([x if impl is None else random_wrap(x, impl) for x, impl in zip(found, impls)])
        return FailedCheckError(f"{string.Formatter().vformat(msg, args, kwargs)} (`check` failed at {place})")

    code = select(pred, as_array(np.int32(0)), as_array(np.int32(1)))
    words = packed[0] if packed else as_array(np.zeros(0, np.uint32))
    _bind_check(code, words, (Site(FailedCheckError, exception, place),), "debug" if debug else "check")


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Check as `check` does, but only under `checkify`; elsewhere it has no effect.

    Args:
        pred, msg, fmt_args, fmt_kwargs: as for `check`.

    Example:
        >>> from gradix.experimental import checkify
        >>> checkify.debug_check(False, "reported only under checkify")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise `error` in eager code if a check failed; in traced code pass it on to `checkify`.

    Raises:
        TypeError: `error` is not an `Error`.
        JaxRuntimeError: outside of traced code, if a check failed.

    Example:
        >>> from gradix.experimental import checkify
        >>> checkify.check_error(checkify.init_error)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {class_of(error)} instead.")
    if not error._sites:
        return
    if not isinstance(error._code, Tracer):
        error.throw()
    code, words = first_failed(as_array(error._code), as_array(error._words))
    _bind_check(code, words, error._sites, "check")


def _bind_check(code, words, sites, kind: str) -> None:
    try:
        bind(check_p, [code, words], {"sites": sites, "kind": kind})
    except FailedCheckError as e:
        raise JaxRuntimeError(str(e)) from None
