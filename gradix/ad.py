"""What to do with each cotangent of a function that `vjp` returned, for its `with_refs`."""

from gradix._api.derivatives.cotangent_places import (
    DidntWant as DidntWant,
    DontWant as DontWant,
    GradRef as GradRef,
    GradValue as GradValue,
)

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
