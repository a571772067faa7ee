"""Pullbacks as pytrees of their residuals, so that they pass through jit; and `fwd_and_bwd`."""
from __future__ import annotations

from collections.abc import Callable

from gradix._api.arguments import as_numbers, check_callable
from gradix._api.derivatives.autodiff import vjp
from gradix._api.derivatives.linear_maps import Pullback, Pushforward, Spread, base
from gradix._api.jit.jit import jit
from gradix._base.tree import register_pytree_node
from gradix._core.primitive import Linear


class _Shape:
    """A pullback without its residuals; the shape of one program is one."""

    __slots__ = ("pullback", "program", "residuals")

    def __init__(self, pullback: Pullback):
        self.pullback, self.program = pullback, base(pullback.program)
        self.residuals = self.program.residuals()

    def __eq__(self, other) -> bool:
        return type(other) is _Shape and self.program is other.program

    def __hash__(self) -> int:
        return id(self.program)

    def filled(self, values) -> Pullback:
        """The pullback with these values for its residuals."""
        program = self.program.with_residuals({id(r): v for r, v in zip(self.residuals, values)})
        old = self.pullback
        if isinstance(old.program, Spread):
            program = Spread(program, [Linear(a) for a in old.in_avals])
        return type(old)(program, old.in_tree, old.out_tree, old.in_avals, old.out_avals, (self, list(values)))


def _flatten(pullback: Pullback) -> tuple[list, _Shape]:
    if pullback.source is not None:              # made from parts: still of the same shape
        shape, values = pullback.source
        return values, shape
    shape = _Shape(pullback)
    return shape.residuals, shape


for _kind in (Pullback, Pushforward):
    register_pytree_node(_kind, _flatten, lambda shape, values: shape.filled(values))


def fwd_and_bwd(fun: Callable, argnums: int | tuple, has_aux: bool = False, jitted: bool = True) -> tuple:
    """`fun` as a forward function that also returns what the backward one needs, and that backward function.

    Args:
        argnums: the number(s) of the arguments to differentiate in.
        has_aux: `fun` returns `(output, auxiliary data)`.
        jitted: compile both.

    Returns:
        `(fwd, bwd)`: `fwd(*args)` returns `(output, residuals)`, with `has_aux` `(output, residuals, aux)`;
        `bwd(residuals, cotangent)` returns the cotangent of the argument, or a tuple of them.

    Example:
        >>> import gradix
        >>> fwd, bwd = gradix.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
        >>> y, residuals = fwd(2.0, 3.0)
        >>> [float(g) for g in bwd(residuals, 1.0)]
        [3.0, 2.0]
    """
    check_callable("fwd_and_bwd", fun)
    numbers, single = as_numbers("argnums", argnums), not isinstance(argnums, (tuple, list))

    def fwd(*args, **kwargs):
        places = [n % len(args) for n in numbers]

        def of_numbered(*values):
            given = list(args)
            for place, value in zip(places, values):
                given[place] = value
            return fun(*given, **kwargs)

        return vjp(of_numbered, *[args[p] for p in places], has_aux=has_aux)

    def bwd(residuals, outgrad):
        grads = residuals(outgrad)
        return grads[0] if single else grads

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
