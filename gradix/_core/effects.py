"""The effects that an equation can have besides its results."""

from __future__ import annotations


class Effect:
    """The base class of effects: what an equation does besides computing its results.

    Example:
        >>> from gradix.core import Effect
        >>> class Beeps(Effect):
        ...     pass
        >>> Beeps(), Beeps() == Beeps(), Beeps() == Effect()
        (Beeps, True, False)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return type(self).__name__

    def __eq__(self, other) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class DebugEffect(Effect):
    """The effect of printing and debugging callbacks, whose order does not matter.

    Example:
        >>> import gradix
        >>> program = gradix.make_jaxpr(lambda x: gradix.debug.print("x is {}", x))(1.0)
        >>> program.effects
        frozenset({DebugEffect})
    """

    __slots__ = ()


class OrderedDebugEffect(Effect):
    """The effect of debugging callbacks whose order matters.

    Example:
        >>> import gradix
        >>> program = gradix.make_jaxpr(lambda x: gradix.debug.print("x is {}", x, ordered=True))(1.0)
        >>> program.effects
        frozenset({OrderedDebugEffect})
    """

    __slots__ = ()


class SinkEffect(Effect):
    """The effect of `dce_sink`, whose operands count as used."""

    __slots__ = ()


class IOEffect(Effect):
    """The effect of an `io_callback` whose order does not matter."""

    __slots__ = ()


class OrderedIOEffect(Effect):
    """The effect of an ordered `io_callback`."""

    __slots__ = ()


class FileEffect(IOEffect):
    """An effect of an exported program, identified by its name in the file."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other) -> bool:
        return type(other) is type(self) and self.name == other.name

    def __hash__(self) -> int:
        return hash((type(self), self.name))


class OrderedFileEffect(OrderedIOEffect):
    """As `FileEffect`, for calls whose order matters."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    __repr__, __eq__, __hash__ = FileEffect.__repr__, FileEffect.__eq__, FileEffect.__hash__


class NamedAxisEffect(Effect):
    """The equation communicates over a named axis, which must be bound where it runs."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self) -> str:
        return f"NamedAxisEffect({self.name!r})"

    def __eq__(self, other) -> bool:
        return type(other) is NamedAxisEffect and self.name == other.name

    def __hash__(self) -> int:
        return hash((NamedAxisEffect, self.name))


class MeshEffect(Effect):
    """The equation needs the devices of a mesh, so its program must run on these."""

    __slots__ = ("mesh",)

    def __init__(self, mesh):
        self.mesh = mesh

    def __repr__(self) -> str:
        return f"MeshEffect({self.mesh})"

    def __eq__(self, other) -> bool:
        return type(other) is MeshEffect and self.mesh == other.mesh

    def __hash__(self) -> int:
        return hash((MeshEffect, self.mesh))


class CheckEffect(Effect):
    """The equation is a check of `kind` "check", "debug" or "raise"."""

    __slots__ = ("kind",)

    def __init__(self, kind: str):
        self.kind = kind

    def __eq__(self, other) -> bool:
        return type(other) is CheckEffect and self.kind == other.kind

    def __hash__(self) -> int:
        return hash((CheckEffect, self.kind))


no_effects: frozenset = frozenset()
debug_effect, ordered_debug_effect = DebugEffect(), OrderedDebugEffect()
io_effect, ordered_io_effect = IOEffect(), OrderedIOEffect()


def is_ordered(effect: Effect) -> bool:
    return isinstance(effect, (OrderedDebugEffect, OrderedIOEffect))


def is_kept(effects) -> bool:
    """Whether an equation with these effects must run even if its results are not used."""
    return any(not isinstance(e, (NamedAxisEffect, MeshEffect)) for e in effects)
