"""Makes types nodes of pytrees, and defines the node type `Partial`."""

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from .native import registry

# fmt: off
__all__ = [
    "Partial", "register_dataclass", "register_pytree_node", "register_pytree_node_class",
    "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static", "static",
]
# fmt: on


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple] | None = None,
) -> None:
    """Make a type a node of pytrees.

    Args:
        nodetype: the type; its subclasses are not included.
        flatten_func: value → (children, auxiliary data). The data are part of the structure, and
            must be hashable and comparable.
        unflatten_func: (auxiliary data, children) → value. The children may be any objects, not
            only arrays.
        flatten_with_keys_func: value → ((key, child) pairs, auxiliary data), for key paths.

    Raises:
        ValueError: the type is registered already.

    Example:
        >>> from gradix._base.tree import tree_map
        >>> class Interval:
        ...     def __init__(self, lo, hi): self.lo, self.hi = lo, hi
        >>> register_pytree_node(Interval, lambda i: ((i.lo, i.hi), None), lambda _, ends: Interval(*ends))
        >>> tree_map(lambda x: 2 * x, Interval(1, 3)).hi
        6
    """
    if not isinstance(nodetype, type):
        raise TypeError(f"a pytree node is registered by its class, got {nodetype!r}.")
    for name, function in (("flatten_func", flatten_func), ("unflatten_func", unflatten_func)):
        if not callable(function):
            raise TypeError(f"register_pytree_node: {name} must be a function, got {function!r}.")
    if flatten_with_keys_func is not None and not callable(flatten_with_keys_func):
        raise TypeError(
            f"register_pytree_node: flatten_with_keys_func must be a function, got {flatten_with_keys_func!r}."
        )
    try:
        registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
    except ValueError as e:
        if "Duplicate" not in str(e):
            raise
        raise ValueError(
            f"{e} A class is registered once: do it where the class is made, and in a notebook make the class "
            "anew with it."
        ) from None


def register_pytree_node_class(cls: type) -> type:
    """Class decorator: make a class a node, by its methods `tree_flatten` and `tree_unflatten`.

    They are `tree_flatten(self) -> (children, aux_data)` and the class method
    `tree_unflatten(cls, aux_data, children)`.

    Raises:
        AttributeError: the class lacks one of the methods.
        ValueError: the class is registered already.

    Example:
        >>> from gradix._base.tree import tree_leaves
        >>> @register_pytree_node_class
        ... class Point:
        ...     def __init__(self, x, y): self.x, self.y = x, y
        ...     def tree_flatten(self): return (self.x, self.y), None
        ...     @classmethod
        ...     def tree_unflatten(cls, aux_data, children): return cls(*children)
        >>> tree_leaves(Point(1, 2))
        [1, 2]
    """
    register_pytree_node(cls, _method(cls, "tree_flatten"), _method(cls, "tree_unflatten"))
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple] | None = None,
) -> None:
    """Make a type a node whose children have keys.

    Args:
        nodetype: the type; its subclasses are not included.
        flatten_with_keys: value → ((key, child) pairs, auxiliary data).
        unflatten_func: (auxiliary data, children) → value.
        flatten_func: value → (children, auxiliary data), if that is quicker than dropping the keys.

    Raises:
        ValueError: the type is registered already.

    Example:
        >>> from gradix._base.tree import GetAttrKey, keystr, tree_leaves_with_path
        >>> class Box:
        ...     def __init__(self, content): self.content = content
        >>> register_pytree_with_keys(
        ...     Box, lambda b: (((GetAttrKey("content"), b.content),), None), lambda _, children: Box(*children))
        >>> keystr(tree_leaves_with_path([Box(1)])[0][0])
        '[0].content'
    """
    if flatten_func is None:

        def flatten_func(node):
            pairs, aux_data = flatten_with_keys(node)
            return [child for _, child in pairs], aux_data

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: type) -> type:
    """Class decorator that makes a class a node whose children have keys.

    The class defines `tree_flatten_with_keys(self)`, the class method
    `tree_unflatten(cls, aux_data, children)` and, optionally, `tree_flatten(self)`.

    Raises:
        AttributeError: the class lacks one of the methods.
        ValueError: the class is registered already.

    Example:
        >>> from gradix._base.tree import GetAttrKey, keystr, tree_leaves_with_path
        >>> @register_pytree_with_keys_class
        ... class Layer:
        ...     def __init__(self, w): self.w = w
        ...     def tree_flatten_with_keys(self): return ((GetAttrKey("w"), self.w),), None
        ...     @classmethod
        ...     def tree_unflatten(cls, aux_data, children): return cls(*children)
        >>> keystr(tree_leaves_with_path(Layer(1))[0][0])
        '.w'
    """
    flatten_func = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(cls, _method(cls, "tree_flatten_with_keys"), _method(cls, "tree_unflatten"), flatten_func)
    return cls


def _method(cls: type, name: str) -> Callable:
    method = getattr(cls, name, None)
    if not isinstance(cls, type):
        raise TypeError(f"only a class can be registered as a pytree node, got {cls!r}. Decorate the class itself.")
    if method is None:
        raise AttributeError(
            f"{cls.__name__} cannot be registered as a pytree node: it has no method {name}. "
            f"Define {name}, or register it with register_dataclass."
        )
    return method


def register_dataclass(
    nodetype: type,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type:
    """Make a dataclass, or a class with such attributes, a node; usable as a decorator.

    Args:
        nodetype: the class. `__init__` takes the data and meta fields by name.
        data_fields: attributes that are children. If both lists are left out, these are the fields
            of a dataclass that `__init__` takes and that are not marked static (see
            `gradix.tree.static`).
        meta_fields: attributes that belong to the structure; they must be hashable and comparable.
        drop_fields: attributes that are lost; they must have defaults.

    Returns:
        The class.

    Raises:
        TypeError: one list is given without the other, or neither for a class that is not a
            dataclass.
        ValueError: the lists do not cover the fields, name others, or overlap; or the class is
            registered already.

    Example:
        >>> import dataclasses
        >>> from gradix.tree import static
        >>> from gradix.tree_util import register_dataclass, tree_map
        >>> @register_dataclass
        ... @dataclasses.dataclass
        ... class Particle:
        ...     position: float
        ...     name: str = static(default="p")
        >>> tree_map(lambda x: x + 1, Particle(1.0, "electron"))
        Particle(position=2.0, name='electron')
    """
    data, meta = _fields_of(nodetype, data_fields, meta_fields, drop_fields)
    registry.register_dataclass_node(nodetype, data, meta)
    return nodetype


def _fields_of(nodetype, data_fields, meta_fields, drop_fields) -> tuple[list[str], list[str]]:
    """The checked names of the data fields and of the meta fields."""
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: give both data_fields and meta_fields, or neither. "
            f"Got data_fields={data_fields!r}, meta_fields={meta_fields!r}."
        )
    is_dataclass = isinstance(nodetype, type) and dataclasses.is_dataclass(nodetype)
    if data_fields is None:
        if not is_dataclass:
            raise TypeError(
                f"register_dataclass: {nodetype!r} is not a dataclass, so data_fields and meta_fields must be given. "
                "Or decorate it with @dataclasses.dataclass first."
            )
        taken = [field for field in dataclasses.fields(nodetype) if field.init and field.name not in drop_fields]
        data_fields = [field.name for field in taken if not field.metadata.get("static", False)]
        meta_fields = [field.name for field in taken if field.metadata.get("static", False)]
    data, meta = list(data_fields), list(meta_fields)
    if overlap := sorted(set(data) & set(meta)):
        raise ValueError(f"register_dataclass({nodetype.__name__}): both data and meta fields: {overlap}.")
    if is_dataclass:
        _check_cover(nodetype, {*data, *meta}, set(drop_fields))
    return data, meta


def _check_cover(nodetype, given: set[str], dropped: set[str]) -> None:
    """Check that the given fields are those that `__init__` takes and that are not dropped."""
    init_fields = {field.name for field in dataclasses.fields(nodetype) if field.init}
    if unexpected := sorted(given - init_fields):
        raise ValueError(
            f"register_dataclass({nodetype.__name__}): {unexpected} are not fields that __init__ takes; "
            f"those are {sorted(init_fields)}."
        )
    if missing := sorted(init_fields - given - dropped):
        raise ValueError(
            f"register_dataclass({nodetype.__name__}): the fields {missing} are in neither data_fields nor "
            "meta_fields. Add them to one of these, or to drop_fields to lose them."
        )


def static(**kwargs: Any) -> Any:
    """A field of a dataclass that belongs to the structure of its node, and is not a child.

    Args:
        kwargs: the arguments of `dataclasses.field`.

    Example:
        >>> from gradix._base.tree import tree_leaves
        >>> @register_dataclass
        ... @dataclasses.dataclass
        ... class Dense:
        ...     weight: float
        ...     activation: str = static(default="relu")
        >>> tree_leaves(Dense(2.0))
        [2.0]
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


def register_static(cls: type) -> type:
    """Class decorator for a node without leaves, whose hashable value belongs to the structure.

    Example:
        >>> import dataclasses
        >>> from gradix.tree_util import register_static, tree_flatten
        >>> @register_static
        ... @dataclasses.dataclass(frozen=True)
        ... class Mode:
        ...     name: str
        >>> tree_flatten((1, Mode("train")))[0]
        [1]
    """
    no_children: Callable[[Hashable], tuple[Iterable, Hashable]] = lambda node: ((), node)  # noqa: E731
    register_pytree_node(cls, no_children, lambda node, _: node, no_children)
    return cls


class _InnerPartial:
    """A partial inside of another; it compares arguments by identity, as these may be arrays."""

    __slots__ = ("partial", "identity")

    def __init__(self, partial: functools.partial):
        self.partial = partial
        arguments = (*partial.args, *(value for item in partial.keywords.items() for value in item))
        self.identity = (partial.func, len(partial.args), *map(id, arguments))

    def __call__(self, *args, **kwargs):
        return self.partial(*args, **kwargs)

    def __eq__(self, other):
        return isinstance(other, _InnerPartial) and self.identity == other.identity

    def __hash__(self):
        return hash(self.identity)

    def __reduce__(self):
        return (_InnerPartial, (self.partial,))

    def __repr__(self):
        return repr(self.partial)


class Partial(functools.partial):
    """`functools.partial` as a node, whose arguments are children; the function is structure.

    Example:
        >>> from gradix._base.tree import tree_leaves, tree_map
        >>> import operator
        >>> add_three = Partial(operator.add, 3)
        >>> tree_leaves(add_three), tree_map(lambda x: 10 * x, add_three)(1)
        ([3], 31)
    """

    def __new__(cls, func, *args, **kw):
        # functools would merge nested partials, and make the inner arguments children as well
        if isinstance(func, functools.partial):
            func = _InnerPartial(func)
        return super().__new__(cls, func, *args, **kw)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
