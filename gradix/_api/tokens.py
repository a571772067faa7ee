"""Tokens, which order operations, and the messages that they carry: after_all, psend, precv."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from gradix._api.boundary import arrays
from gradix._api.mapping.collective_moves import ppermute
from gradix._base.tree import register_pytree_node, tree_flatten as flatten
from gradix._core import dtypes
from gradix._core.operators import Array


class Token:
    """A value that one operation gives and a later one takes; `message` is what a `psend` sent.

    It is a pytree of the message, so that it passes through transformations, loops and compiled
    functions.

    Example:
        >>> import gradix
        >>> from gradix import lax
        >>> token = lax.create_token()
        >>> type(gradix.jit(lambda t: t)(token)).__name__, gradix.tree.leaves(token)
        ('Token', [])
    """

    __slots__ = ("message",)

    def __init__(self, message: Any = None):
        self.message = message

    def __repr__(self) -> str:
        return "Token()" if self.message is None else f"Token({self.message!r})"


register_pytree_node(Token, lambda token: ((token.message,), None), lambda _, children: Token(*children))


def create_token(_: object = None) -> Token:
    """A token that waits for nothing.

    Example:
        >>> from gradix import lax
        >>> lax.after_all(lax.create_token()) is not None
        True
    """
    return Token()


def after_all(*operands: Any) -> Token:
    """One token that stands for several; an operation that takes it comes after all of them.

    Raises:
        TypeError: an argument is not a token.

    Example:
        >>> from gradix import lax
        >>> lax.after_all(lax.after_all(), lax.after_all())
        Token()
    """
    for x in operands:
        if not isinstance(x, Token):
            raise TypeError(
                f"Arguments to after_all must be tokens, got {x!r} of type {type(x).__name__}. Tokens "
                "come from after_all() and psend; to order arrays use lax.optimization_barrier."
            )
    messages = [x.message for x in operands if x.message is not None]
    return Token(messages or None)


def psend(x: Any, axis_name: Hashable, perm: Sequence[Sequence[int]]) -> Token:
    """Send arrays along a named axis; `precv` with the token receives them.

    Args:
        x: arrays in a pytree.
        axis_name: the name of the axis.
        perm: pairs (source, target) of indices along it.

    Raises:
        ValueError: two pairs share a source or a target.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix import lax
        >>> def pass_on(x):
        ...     return lax.precv(lax.psend(x, "i", [(0, 1)]), x, "i", [(0, 1)])
        >>> gradix.vmap(pass_on, axis_name="i")(jnp.array([3.0, 4.0]))
        Array([0., 3.], dtype=float32)
    """
    return Token([_Sent(ppermute(x, axis_name, perm), _route(axis_name, perm))])


def precv(token: Any, out_shape: Any, axis_name: Hashable, perm: Sequence[Sequence[int]]) -> Array:
    """Receive what `psend` sent along a named axis; members without a source get zeros.

    Args:
        token: the result of `psend`, or `after_all` of it.
        out_shape: arrays or `ShapeDtypeStruct`s in a pytree, of the shapes and dtypes received.
        axis_name: the name of the axis.
        perm: pairs (source, target) of indices along it, as given to `psend`.

    Returns:
        Arrays of the shapes and dtypes of `out_shape`, in its structure.

    Raises:
        TypeError: `token` is not a token, or what was sent has other shapes or dtypes.
        NotImplementedError: the token is not of a `psend` along the axis with this `perm`. A
            message is received in the program that sends it.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix import lax
        >>> ring = [(0, 1), (1, 2), (2, 0)]
        >>> exchange = lambda x: lax.precv(lax.psend(x, "i", ring), x, "i", ring)
        >>> gradix.vmap(exchange, axis_name="i")(jnp.arange(3.0))
        Array([2., 0., 1.], dtype=float32)
    """
    if not isinstance(token, Token):
        raise TypeError(
            f"precv takes a token as its first argument, got {token!r} of type {type(token).__name__}. "
            "psend returns one."
        )
    route = _route(axis_name, perm)
    for sent in _messages(token.message):
        if sent.route == route:
            _check_received(sent.values, out_shape)
            return sent.values
    raise NotImplementedError(
        f"precv along axis {axis_name!r} with perm {list(route[1])} needs the token of a psend "
        "with the same axis and perm: a message cannot come from another program. Pass that "
        "token, or use lax.ppermute, which sends and receives."
    )


class _Sent:
    __slots__ = ("values", "route")

    def __init__(self, values, route: tuple):
        self.values, self.route = values, route


register_pytree_node(
    _Sent, lambda sent: ((sent.values,), sent.route), lambda route, children: _Sent(children[0], route)
)


def _route(axis_name, perm) -> tuple:
    return axis_name, tuple(sorted([(int(i), int(j)) for i, j in perm]))


def _messages(message):
    if isinstance(message, _Sent):
        yield message
    elif isinstance(message, list):
        for m in message:
            yield from _messages(m)


def _check_received(values, out_shape) -> None:
    got, tree = flatten(values)
    want, wanted_tree = flatten(out_shape)
    got = [(a.aval.shape, a.aval.dtype) for a in arrays("precv", got, tree, "message")]
    asked = [(tuple(np.shape(w)), dtypes.canonicalize_dtype(w.dtype)) for w in want]
    if tree != wanted_tree or got != asked:
        raise TypeError(f"precv: out_shape is {out_shape}, but what was sent is {values}.")
