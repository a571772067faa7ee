"""`platform_index_p`: the operation of `platform_dependent`, whose meaning is the platform itself.

It is the only operation whose lowering depends on the platform, since the user gave a function for
each. How the others are best lowered for a platform is said in `_platforms`.
"""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.families import NonDifferentiable


class PlatformIndex(NonDifferentiable, Primitive):
    """The index of the first entry of `platforms` that holds the platform of the program.

    An entry is a tuple of names, or None for any platform. The index is known when the program is
    lowered.
    """

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
    """The index of the first entry of `platforms` for a platform.

    Raises:
        NotImplementedError: there is none.
    """
    for i, names in enumerate(platforms):
        if names is None or platform in names:
            return i
    named = ", ".join(name for names in platforms for name in names) or "none"
    raise NotImplementedError(
        f"platform_dependent has no alternative for platform {platform!r}, only for: {named}. "
        f"Pass {platform}=..., or default=... for all others."
    )


def platform_index(platforms: tuple):
    """The index of the first entry of `platforms` for the program's platform, an int32 scalar."""
    return bind(platform_index_p, (), {"platforms": platforms})
