"""`dim_as_value_p`: the value of a symbolic dimension, an integer known at run time."""

from __future__ import annotations

from gradix._core import dtypes, seams
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.primitive import Primitive
from gradix._core.trace import bind, state
from gradix._ops.families import NonDifferentiable


class DimAsValue(NonDifferentiable, Primitive):
    """A dimension as a scalar of the default integer dtype, weakly typed as a Python integer is."""

    def abstract(self, *, dim):
        return make_aval((), *dtypes.scalar_type(int))

    def batch(self, size, args, axes, *, dim):
        return bind(self, args, {"dim": dim}), None

    def lower(self, em, out, *, dim):
        return em.convert(em.dimension(dim), out.dtype)


dim_as_value_p = DimAsValue("dim_as_value")


def dim_as_value(dim: SymbolicDim):
    """The value of a symbolic dimension as a traced scalar.

    Raises:
        NotImplementedError: no program is being traced, so the dimension will never have a value.
    """
    if state.stage is None:
        raise NotImplementedError(
            f"the symbolic dimension {dim} has a value only inside a program that is traced with symbolic shapes, as "
            "gradix.export.export(gradix.jit(f)) does. Use it in shapes here, or compute with it in the exported "
            "function."
        )
    return bind(dim_as_value_p, (), {"dim": dim})


seams.dimension_as_array = dim_as_value
