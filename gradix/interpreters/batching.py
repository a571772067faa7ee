"""Rules of primitives for vmap, as libraries register them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradix._api.mapping import containers
from gradix._base.listing import own_names as _own_names
from gradix._core.array import as_array
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim, move_axis, to_axis, to_front
from gradix.interpreters import _rules

if TYPE_CHECKING:
    from gradix._core.operators import Array

not_mapped = None


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable,
    from_elt: Callable,
    make_iota: Callable | None,
) -> None:
    """Let `vmap` map over instances of a class that is not a pytree.

    Its instances are mapped where `in_axes` or `out_axes` has an instance of `spec_type`. A call of
    a mapped function calls both functions twice, once of which only collects the arrays.

    Args:
        data_type: the class.
        spec_type: the class of the objects that stand for axes.
        axis_size_type: not used; sizes are integers.
        to_elt: a function `(cont, get_index, many, spec) -> one`. It passes each array and its axis
            to `cont(array, axis)`, which returns the array of one example. `get_index()` is the
            number of the example.
        from_elt: a function `(cont, axis_size, one, spec) -> many`, where
            `cont(axis_size, array, axis)` returns the array of all examples.
        make_iota: not used.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.interpreters import batching
        >>> class Money:
        ...     def __init__(self, amount, currency):
        ...         self.amount, self.currency = amount, currency
        >>> class Each:
        ...     pass
        >>> batching.register_vmappable(
        ...     Money, Each, int, lambda cont, index, m, spec: Money(cont(m.amount, 0), m.currency),
        ...     lambda cont, n, m, spec: Money(cont(n, m.amount, 0), m.currency), None)
        >>> double = gradix.vmap(lambda m: Money(2 * m.amount, m.currency), in_axes=Each(), out_axes=Each())
        >>> double(Money(jnp.arange(3.0), "EUR")).amount
        Array([0., 2., 4.], dtype=float32)
        >>> batching.unregister_vmappable(Money)
    """
    containers.register(data_type, spec_type, axis_size_type, to_elt, from_elt, make_iota)


def unregister_vmappable(data_type: type) -> None:
    """Undo `register_vmappable`.

    Example:
        >>> from gradix.interpreters import batching
        >>> class Pair:
        ...     pass
        >>> batching.register_vmappable(Pair, int, int, lambda *a: a, lambda *a: a, None)
        >>> batching.unregister_vmappable(Pair)
    """
    containers.unregister(data_type)


primitive_batchers = _rules.Rules("batch", _rules.batch_to_ours, _rules.batch_to_jax)
fancy_primitive_batchers = _rules.Rules("batch", _rules.fancy_batch_to_ours, _rules.batch_to_jax)
axis_primitive_batchers = _rules.Rules("batch", _rules.axis_batch_to_ours, _rules.batch_to_jax)


def defvectorized(prim: Any) -> None:
    """Set the rule of an elementwise primitive whose operands all have the same shape.

    Example:
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import batching
        >>> import gradix, gradix.numpy as jnp
        >>> double_p = Primitive("double")
        >>> _ = double_p.def_impl(lambda x: 2 * x)
        >>> _ = double_p.def_abstract_eval(lambda x: x)
        >>> batching.defvectorized(double_p)
        >>> gradix.vmap(double_p.bind)(jnp.arange(3.0))
        Array([0., 2., 4.], dtype=float32)
    """

    def batch(size, args, axes, **params):
        placed = {a for a in axes if a is not None}
        if len(placed) == 1 and all(a is not None for a in axes):
            (axis,) = placed
            return _same_axis(prim, bind(prim, list(args), params), axis)
        front = [to_axis(size, x, a, 0) for x, a in zip(args, axes)]
        return _same_axis(prim, bind(prim, front, params), 0)

    prim.batch = batch


def _same_axis(prim, out, axis):
    return out, [axis] * len(out) if prim.multiple_results else axis


def defbroadcasting(prim: Any) -> None:
    """Set the rule of an elementwise primitive whose operands have one rank and broadcast.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import batching
        >>> twice_p = Primitive("twice_of")
        >>> _ = twice_p.def_impl(lambda x: 2 * x)
        >>> _ = twice_p.def_abstract_eval(lambda x: x)
        >>> batching.defbroadcasting(twice_p)
        >>> gradix.vmap(twice_p.bind)(jnp.ones(3))
        Array([2., 2., 2.], dtype=float32)
    """

    def batch(size, args, axes, **params):
        rank = max([x.aval.ndim - (a is not None) for x, a in zip(args, axes)])
        front = [
            _with_rank(to_front(size, x, a) if a is not None else x, rank, a is not None) for x, a in zip(args, axes)
        ]
        return _same_axis(prim, bind(prim, front, params), 0)

    prim.batch = batch


def _with_rank(x, rank: int, mapped: bool):
    """`x` with a leading axis of examples, of size 1 if it is not mapped, and `rank` others."""
    shape = x.aval.shape
    first, rest = (shape[:1], shape[1:]) if mapped else ((1,), shape)
    new = (*first, *(1,) * (rank - len(rest)), *rest)
    kept = ([0] if mapped else []) + list(range(len(new) - len(rest), len(new)))
    return broadcast_in_dim(x, new, tuple(kept))


def defreducer(prim: Any) -> None:
    """Set the rule of a reduction whose parameter `axes` holds the reduced axes.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import batching
        >>> total_p = Primitive("total_of")
        >>> _ = total_p.def_impl(lambda x, axes: jnp.sum(x, axes))
        >>> batching.defreducer(total_p)
        >>> gradix.vmap(lambda x: total_p.bind(x, axes=(0,)))(jnp.ones((3, 2)))
        Array([2., 2., 2.], dtype=float32)
    """

    def batch(size, args, mapped, /, *, axes, **params):
        (x,), (axis,) = args, mapped
        reduced = tuple([a + (a >= axis) for a in axes])
        out = bind(prim, [x], {"axes": reduced, **params})
        return out, axis - sum([a < axis for a in reduced])

    prim.batch = batch


def moveaxis(x: Any, src: int, dst: int) -> Array:
    """`x` with its axis `src` moved to the place `dst`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.interpreters import batching
        >>> batching.moveaxis(jnp.ones((2, 3, 4)), 0, 2).shape
        (3, 4, 2)
    """
    return move_axis(as_array(x), src, dst)


def bdim_at_front(x: Any, bdim: Any, size: Any, mesh_axis: Any = None) -> Array:
    """`x` with its mapped axis `bdim` first; if it is None, with a new first axis of that size.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.interpreters import batching
        >>> batching.bdim_at_front(jnp.ones((3, 2)), 1, 2).shape
        (2, 3)
        >>> batching.bdim_at_front(jnp.ones(3), None, 2).shape
        (2, 3)
    """
    return to_axis(size, as_array(x), bdim, 0)


def broadcast(x: Any, sz: Any, axis: Any, mesh_axis: Any = None) -> Array:
    """`x` repeated `sz` times along a new axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.interpreters import batching
        >>> batching.broadcast(jnp.ones(3), 2, 1).shape
        (3, 2)
    """
    return to_axis(sz, as_array(x), None, axis)


__dir__ = _own_names(
    __name__, "axis_primitive_batchers", "fancy_primitive_batchers", "not_mapped", "primitive_batchers"
)
