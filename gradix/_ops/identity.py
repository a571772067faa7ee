"""Identities that mean something to a transformation: stop_gradient and names for checkpoint policies."""
from __future__ import annotations

from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.families import NonDifferentiable


class StopGradient(NonDifferentiable, Primitive):
    """The operand itself, with a derivative of zero."""

    host_limit = 1 << 62

    def abstract(self, x):
        return x

    def host(self, x):
        return x

    def transpose(self, ct, x):
        return [ct]                 # among tangents, where a rule of a user's branches by example

    def batch(self, size, args, axes):
        return bind(self, args, {}), axes[0]

    def lower(self, em, out, x):
        return x


class Name(Primitive):
    """The operand itself, named for the policies of `checkpoint`."""

    live = "elements"
    host_limit = 1 << 62

    def abstract(self, x, *, name):
        return x

    def host(self, x, *, name):
        return x

    def jvp(self, primals, tangents, *, name):
        return bind(self, primals, {"name": name}), tangents[0]

    def transpose(self, ct, x, *, name):
        return [ct]

    def batch(self, size, args, axes, *, name):
        return bind(self, args, {"name": name}), axes[0]

    def lower(self, em, out, x, *, name):
        return x


stop_gradient_p = StopGradient("stop_gradient")
name_p = Name("name")
