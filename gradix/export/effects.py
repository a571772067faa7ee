"""The names of effects in files, which are those of JAX's classes, so that JAX can read them."""

from __future__ import annotations

from gradix._core.effects import (
    DebugEffect,
    Effect,
    FileEffect,
    IOEffect,
    OrderedDebugEffect,
    OrderedFileEffect,
    OrderedIOEffect,
    SinkEffect,
)

_NAMES: dict[type[Effect], str] = {
    IOEffect: "<class 'jax._src.callback.IOEffect'>",
    OrderedIOEffect: "<class 'jax._src.callback.OrderedIOEffect'>",
    DebugEffect: "<class 'jax._src.debugging.DebugEffect'>",
    OrderedDebugEffect: "<class 'jax._src.debugging.OrderedDebugEffect'>",
    SinkEffect: "<class 'jax._src.lax.lax.NoDCEEffect'>",
}
_KINDS = {name: kind for kind, name in _NAMES.items()}


def name_of(effect: Effect) -> str:
    """The name of an effect in files."""
    if isinstance(effect, (FileEffect, OrderedFileEffect)):
        return effect.name
    return _NAMES.get(type(effect), str(type(effect)))


def effect_of(name: str, is_ordered: bool) -> Effect:
    """The effect that has this name in files."""
    kind = _KINDS.get(name)
    if kind is not None and issubclass(kind, (OrderedIOEffect, OrderedDebugEffect)) == is_ordered:
        return kind()
    return OrderedFileEffect(name) if is_ordered else FileEffect(name)
