"""Functions on arguments and signatures, for libraries that define transformations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradix._api.arguments import Names as _Names
from gradix._api.structs import aval_of as _aval_of
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import flatten_axes as _flatten_axes, tree_flatten, tree_leaves, tree_structure, tree_unflatten
from gradix._core.jaxpr import DebugInfo
from gradix.extend.linear_util import WrappedFun, transformation_with_aux2

__all__ = [
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]


def debug_info(
    traced_for: str,
    fun: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    **_: Any,
) -> DebugInfo:
    """The names of a function and its arguments, for messages.

    Args:
        traced_for: the name of the transformation, which is not used.
        fun: the function.
        args, kwargs: example arguments.
        static_argnums, static_argnames: not used.

    Example:
        >>> from gradix.api_util import debug_info
        >>> debug_info("jit", lambda x, y: x, (1, 2), {}).arg_names
        ('x', 'y')
    """
    return _Names(fun, tree_structure((tuple(args), dict(kwargs))))


@transformation_with_aux2
def flatten_fun(function: Callable, store, in_tree, *leaves) -> list:
    """A wrapped function as one that takes and returns leaves.

    Args:
        function: the function, as a `WrappedFun`.
        in_tree: the tree of `(args, kwargs)`.

    Returns:
        The function of leaves, which returns a list of leaves, and a function that returns the tree
        of the results after a call.

    Example:
        >>> import gradix
        >>> from gradix.api_util import flatten_fun
        >>> from gradix.extend import linear_util as lu
        >>> leaves, tree = gradix.tree.flatten(((1, 2), {"z": 3}))
        >>> flat, out_tree = flatten_fun(lu.wrap_init(lambda x, y, z: {"a": x + y, "b": z}), tree)
        >>> flat.call_wrapped(*leaves), out_tree()
        ([3, 3], PyTreeDef({'a': *, 'b': *}))
    """
    args, kwargs = tree_unflatten(in_tree, leaves)
    out, tree = tree_flatten(function(*args, **kwargs))
    store.store(tree)
    return out


@transformation_with_aux2
def flatten_fun_nokwargs(function: Callable, store, in_tree, *leaves) -> list:
    """As `flatten_fun`, where `in_tree` is the tree of the positional arguments only."""
    out, tree = tree_flatten(function(*tree_unflatten(in_tree, leaves)))
    store.store(tree)
    return out


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence, require_static_args_hashable: bool = True
) -> Any:
    """A wrapped function of some of its arguments, with the others fixed, and those arguments.

    Args:
        f: the function.
        dyn_argnums: the numbers of the arguments that are not fixed.
        args: all arguments.
        require_static_args_hashable: whether the fixed arguments must be hashable.

    Raises:
        ValueError: a fixed argument must be hashable and is not.

    Example:
        >>> from gradix.api_util import argnums_partial
        >>> from gradix.extend import linear_util as lu
        >>> g, dynamic = argnums_partial(lu.wrap_init(lambda x, y: x - y), 1, (10, 3))
        >>> g.call_wrapped(4), dynamic
        (6, (3,))
    """
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    open_ = {n % len(args) for n in numbers}
    if require_static_args_hashable:
        for i, a in enumerate(args):
            if i not in open_ and type(a).__hash__ is None:
                raise ValueError(
                    f"Non-hashable static arguments are used: argument {i} is a {type(a).__name__}, "
                    f"{a!r}. Pass a tuple instead of a list, or make the argument dynamic."
                )

    def call(*given, **kwargs):
        rest = iter(given)
        return f.call_wrapped(*[next(rest) if i in open_ else a for i, a in enumerate(args)], **kwargs)

    return f.wrap(call), tuple([args[i] for i in sorted(open_)])


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False) -> list:
    """The entry of a tree prefix for each leaf of a tree, as a list; None is an entry.

    Args:
        name: the name of the prefix in messages, such as `vmap in_axes`.
        treedef: the tree.
        axis_tree: the prefix.
        kws, tupled_args: not used.

    Raises:
        ValueError: `axis_tree` is not a prefix of the tree.

    Example:
        >>> import gradix
        >>> from gradix.api_util import flatten_axes
        >>> flatten_axes("in_axes", gradix.tree.structure((1, (2, 3))), (0, None))
        [0, None, None]
    """
    return _flatten_axes(name, treedef, axis_tree)


class _Leaf:
    """A leaf of a tree of which only the structure is known."""

    __slots__ = ()


def donation_vector(
    donate_argnums: Iterable[int], donate_argnames: Iterable[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Whether each leaf of the arguments is donated, as a tuple.

    Args:
        donate_argnums, donate_argnames: the numbers and names of the donated arguments.
        in_tree: the tree of `(args, kwargs)`; without `kws`, that of `args`.
        kws: whether the tree has keyword arguments.

    Example:
        >>> import gradix
        >>> from gradix.api_util import donation_vector
        >>> donation_vector((0,), ("z",), gradix.tree.structure(((1, (2, 3)), {"z": 4})))
        (True, False, False, True)
    """
    whole = tree_unflatten(in_tree, [_Leaf()] * in_tree.num_leaves)
    args, kwargs = whole if kws else (whole, {})
    numbers, names = set(donate_argnums), set(donate_argnames)
    flags = [i in numbers for i, a in enumerate(args) for _ in tree_leaves(a)]
    return tuple(flags + [k in names for k in sorted(kwargs) for _ in tree_leaves(kwargs[k])])


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]) -> tuple[int, ...]:
    """The numbers of donated arguments, counted among the arguments that are not static.

    Raises:
        ValueError: a number is in both.

    Example:
        >>> from gradix.api_util import rebase_donate_argnums
        >>> rebase_donate_argnums((0, 3), static_argnums=(1,))
        (0, 2)
    """
    static = sorted(static_argnums)
    if set(static) & set(donate_argnums):
        raise ValueError(
            f"static_argnums {tuple(static)} and donate_argnums {tuple(donate_argnums)} cannot intersect. "
            "Remove the common numbers from one of them."
        )
    return tuple(sorted({n - sum(s < n for s in static) for n in donate_argnums}))


def shaped_abstractify(x: Any) -> Any:
    """The type of an array, a Python number, or another object with a shape and a dtype.

    Example:
        >>> import gradix
        >>> from gradix.api_util import shaped_abstractify
        >>> shaped_abstractify(2.5), shaped_abstractify(gradix.ShapeDtypeStruct((3,), "int32"))
        (ShapedArray(float32[], weak_type=True), ShapedArray(int32[3]))
    """
    return _aval_of(x)


def safe_map(f: Callable, *sequences: Any) -> list:
    """`list(map(f, *sequences))` for sequences that must have the same length.

    Raises:
        ValueError: the lengths differ.

    Example:
        >>> from gradix.api_util import safe_map
        >>> safe_map(lambda x, y: x + y, [1, 2], [10, 20])
        [11, 22]
    """
    columns = [list(s) for s in sequences]
    if len({len(c) for c in columns}) > 1:
        raise ValueError(f"safe_map() takes sequences of the same length, got lengths {[len(c) for c in columns]}.")
    return list(map(f, *columns))


__dir__ = _own_names(__name__)
