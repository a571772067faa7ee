"""The choices for each cotangent in `with_refs` of a function that `vjp` returned."""

from gradix._api.derivatives.cotangent_places import (
    DidntWant as DidntWant,
    DontWant as DontWant,
    GradRef as GradRef,
    GradValue as GradValue,
)

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
