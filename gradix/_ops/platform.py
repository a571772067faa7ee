"""`platform_index_p`: the index of the alternative for the platform a program is compiled for."""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.families import NonDifferentiable


class PlatformIndex(NonDifferentiable, Primitive):
    """The index in `platforms` (tuples of names, or None for any) of the platform compiled for."""

    def abstract(self, *, platforms):
        return make_aval((), np.dtype("int32"))

    def batch(self, size, args, axes, **params):
        return bind(self, args, params), None

    def lower(self, em, out, *, platforms):
        value = em.constant(known := chosen(platforms, em.platform), out)
        # Make a new value, as the emitter shares constants.
        return type(value)(value.name, value.aval, value.type, known)


platform_index_p = PlatformIndex("platform_index")


def chosen(platforms: tuple, platform: str) -> int:
    """The first alternative for a platform.

    Raises:
        NotImplementedError: there is none.
    """
    for i, names in enumerate(platforms):
        if names is None or platform in names:
            return i
    told = ", ".join(name for names in platforms for name in names) or "none"
    raise NotImplementedError(
        f"platform_dependent has no alternative for platform {platform!r}, only for: {told}. "
        f"Pass {platform}=..., or default=... for all others."
    )


def platform_index(platforms: tuple):
    """The index of the alternative in `platforms` that is compiled.

    It is an int32 scalar, which is set when the program is lowered.
    """
    return bind(platform_index_p, (), {"platforms": platforms})
