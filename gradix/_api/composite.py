"""`composite`: a function that compilers may know by name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import index

import numpy as np

from gradix._api.boundary import arrays
from gradix._api.tracing import flat_body
from gradix._base.errors import UnexpectedTracerError
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten
from gradix._control.composite import composite_p
from gradix._core.array import ArrayImpl
from gradix._core.trace import Tracer, bind, state
from gradix._stablehlo.attributes import dictionary


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """`decomposition` under a name, so that a compiler that knows the name may replace it.

    Other compilers compile `decomposition`, which derivatives and `vmap` use, too.

    Args:
        decomposition: takes arrays in pytrees by position, and attributes by keyword.
        name: the name of the operation, with a prefix: "mylib.softmax". Without a dot, it is a
            plain call.
        version: the version of its meaning, an int.

    Returns:
        A function of the same arguments. Attributes are numbers, strings, booleans, arrays, and
        lists and dicts of them. Those that are None are passed to `decomposition`, but are not
        written into the program.

    Raises:
        TypeError: `name` is not a string, or an attribute of a call is of another type.
        UnexpectedTracerError: an attribute of a call is traced.

    Example:
        >>> import gradix
        >>> from gradix import lax
        >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), name="my.tangent")
        >>> gradix.make_jaxpr(tangent)(1.0).eqns[0].primitive
        composite
        >>> tangent(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if not callable(decomposition):
        raise TypeError(f"composite expects a function as its first argument, got {decomposition!r}.")
    if not isinstance(name, str):
        raise TypeError(
            f"composite expects a name such as 'mylib.softmax', got {name!r} of type {type(name).__name__}."
        )
    version = index(version)

    @functools.wraps(decomposition)
    @boundary
    def composed(*args, **attributes):
        text = _attributes(name, attributes)
        leaves, tree = flatten(args)
        leaves = arrays(f"composite {name!r}", leaves, tree, "argument ")
        flat = flat_body("composite", functools.partial(decomposition, **attributes), tree)
        if state.stage is None:  # no program is written in which a compiler could read the name
            outs = flat(*leaves)
            return flat.out_tree.unflatten(outs)
        jaxpr, consts = flat.stage_open([x.aval for x in leaves])
        outs = bind(
            composite_p, [*consts, *leaves], {"jaxpr": jaxpr, "name": name, "version": version, "attributes": text}
        )
        return flat.out_tree.unflatten(outs)

    return composed


def _attributes(name: str, attributes: dict) -> str:
    given = {}
    for key, value in attributes.items():
        if isinstance(value, Tracer):
            raise UnexpectedTracerError(
                f"The attribute {key!r} of composite {name!r} is traced: {value}. Pass arrays by "
                "position, and attributes that are known while tracing by keyword."
            )
        if value is not None:
            given[key] = np.asarray(value) if isinstance(value, ArrayImpl) else value
    return dictionary(given)
