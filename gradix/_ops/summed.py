"""What goes into sums that XLA:CPU leaves to a library, which computes elementwise operations on the way along with the sum, and
into extrema, which it computes in blocks."""
from __future__ import annotations

import numpy as np

from gradix._core.jaxpr import Literal

_F32 = np.dtype("float32")
_LEAST = 1 << 12                # elements from which on the library takes a sum
_ON_THE_WAY = frozenset(("add", "add_any", "sub", "mul", "div", "neg", "abs", "max", "min"))       # but no selections


def is_summed(eqn, users, platform: str) -> bool:
    """Whether all that becomes of a result is a sum of the library's, with operations it knows on the way."""
    out, = eqn.outvars
    aval = out.aval
    if platform != "cpu" or aval.dtype != _F32 or type(aval.size) is not int or aval.size < _LEAST:
        return False
    user = users.only(out)
    while user is not None and user.primitive.name in _ON_THE_WAY and user.outvars[0].aval.shape == aval.shape:
        user = users.only(user.outvars[0])
    return user is not None and user.primitive.name == "reduce_sum"


def settle_costly(eqn, users, platform: str):
    """The parameters of a long formula all of which goes into an extremum: alone.

    XLA would compute it within the loop that combines the blocks of the extremum, once for each, which is too long for vectors.
    """
    out, = eqn.outvars
    user = users.only(out)
    while user is not None and not user.primitive.multiple_results and user.outvars[0].aval.shape == out.aval.shape:
        user = users.only(user.outvars[0])
    found = platform == "cpu" and user is not None and user.primitive.name in ("reduce_max", "reduce_min")
    return {"alone": True} if found else None


def settle_bound(eqn, users, platform: str):
    """The parameters of a maximum or minimum with a number: by selection, where the library had better not compute it.

    It would read the number from memory, as an array, where the derivative compares the operand with that number too.
    """
    numbers = [v for v in eqn.invars if type(v) is Literal]
    others = [v for v in eqn.invars if type(v) is not Literal]
    if len(numbers) != 1 or not is_summed(eqn, users, platform):
        return None
    compared = any(user.primitive.name in ("gt", "lt") for user in users.of(others[0]).values())
    return {"by_selection": True} if compared else None
