"""Functions that make symbolic shapes, from a string or for the arrays of a pytree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradix._api.structs import ShapeDtypeStruct
from gradix._base.tree import keystr, tree_flatten_with_path, tree_unflatten
from gradix._base.tree.prefix import broadcast_prefix
from gradix._core.dimensions import parsing
from gradix._core.dimensions.bounds import bounds
from gradix._core.dimensions.expression import as_dim, is_symbolic_dim as is_symbolic_dim
from gradix._core.dimensions.scope import SymbolicScope as SymbolicScope


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
    assume: Mapping[str, int] | None = None,
) -> tuple:
    """A shape with symbolic dimensions, as a tuple, parsed from a string.

    Args:
        shape_spec: dimensions separated by commas, with or without parentheses. A dimension is a
            number, the name of a variable, a sum, difference or product of dimensions, a power as
            in ``a^2``, or ``floordiv``, ``mod``, ``max`` or ``min`` of two. ``_`` stands for the
            dimension of `like` at the same place, a last ``...`` for the rest of `like`, and None
            for ``"..."``.
        constraints: constraints on the variables, such as ``"a <= 10"``, in addition to their
            being at least 1.
        scope: the scope of the variables; by default a new scope with these constraints.
        like: a shape from which dimensions are taken.
        assume: example sizes by name. With them, comparisons that the constraints do not decide
            are decided as for these sizes, and are checked in every call. Without them such
            comparisons raise errors. See `SymbolicScope`.

    Returns:
        A tuple of integers and symbolic dimensions.

    Raises:
        ValueError: the string is malformed, or `scope` is given with `constraints` or `assume`.

    Example:
        >>> from gradix import export
        >>> export.symbolic_shape("b, 2*b + 1, _", like=(None, None, 3))
        (b, 2*b + 1, 3)
        >>> n, = export.symbolic_shape("n", assume={"n": 16})
        >>> n > 4, n.scope.constraints[0][0]
        (True, 'n >= 5')
    """
    if scope is None:
        scope = SymbolicScope(constraints, assume=assume)
    elif constraints or assume is not None:
        raise ValueError(
            "symbolic_shape takes a scope, or constraints and assume, but not both. Make the scope with "
            "them, as by SymbolicScope(constraints, assume=assume)."
        )
    if shape_spec is None:
        shape_spec = "..."
    if not isinstance(shape_spec, str):
        raise ValueError(f'symbolic_shape: shape_spec must be a string such as "a, b", or None; got {shape_spec!r}.')
    return parsing.shape(shape_spec, scope, like)


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """`ShapeDtypeStruct`s of arguments, with symbolic shapes parsed from strings.

    Args:
        args: a pytree of arrays, or of objects with a shape and a dtype.
        shapes_specs: a pytree prefix of `args`, or a list for a tuple, whose leaves are strings as
            for `symbolic_shape`, or None for shapes that are kept.
        constraints, scope: as for `symbolic_shape`.

    Raises:
        ValueError: a string is malformed or does not fit the rank of its argument, or `scope` is
            given with `constraints`.

    Example:
        >>> import numpy as np
        >>> from gradix import export
        >>> export.symbolic_args_specs((np.ones((2, 3), "f4"), np.ones(3, "f4")), ("b, _", None))
        (ShapeDtypeStruct(shape=(b, 3), dtype=float32), ShapeDtypeStruct(shape=(3,), dtype=float32))
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError(
            "symbolic_args_specs takes a scope or constraints, but not both. Make the scope with them, as "
            "by SymbolicScope(constraints)."
        )
    paths, treedef = tree_flatten_with_path(args)
    is_spec = lambda x: x is None or isinstance(x, str)
    if isinstance(shapes_specs, list) and isinstance(args, tuple):
        shapes_specs = tuple(shapes_specs)
    specs = broadcast_prefix(shapes_specs, args, is_leaf=is_spec)
    structs = []
    for (path, x), spec in zip(paths, specs):
        shape, dtype = _shape_and_dtype(x)
        try:
            dims = symbolic_shape(spec, scope=scope, like=shape)
        except ValueError as e:
            raise ValueError(f"the shape specification for args{keystr(path)}: {e}") from None
        structs.append(ShapeDtypeStruct(dims, dtype))
    return tree_unflatten(treedef, structs)


def _shape_and_dtype(x) -> tuple[Any, Any]:
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return tuple(x.shape), x.dtype
    value = np.asarray(x)
    return value.shape, value.dtype


def symbolic_dim_bounds(dimension: Any) -> tuple[float, float]:
    """The least and the greatest value that a dimension can have, as far as is known.

    Args:
        dimension: a symbolic dimension, or an integer.

    Returns:
        Two numbers, which the dimension is never below and never above. They need not be taken:
        minus infinity and infinity say that no bound was found.

    Raises:
        TypeError: `dimension` is neither a dimension nor an integer.

    Example:
        >>> from gradix import export
        >>> (n,) = export.symbolic_shape("n", constraints=["n <= 9"])
        >>> export.symbolic_dim_bounds(2 * n + 1), export.symbolic_dim_bounds(3 - n)
        ((3, 19), (-6, 2))
    """
    return bounds(as_dim(dimension))
