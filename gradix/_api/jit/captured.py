"""Small captured arrays of numbers, which a compiled program holds as constants.

XLA computes in advance what depends on constants alone, and a call hands fewer arrays over. Whole numbers and truth
values are mostly places, and always written. Floats are written for the first values that a program of these
operations and types captures; where it is compiled with others, as by a function that is made anew around each of
several numbers, they are arguments, and all further values share one compiled program. Unsigned numbers are arguments,
as they may be random keys: XLA would draw in advance, at its own speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from gradix._base.bounded import BoundedCache, on_clear
from gradix._core.array import ArrayImpl, wrap_host
from gradix._core.jaxpr import HOIST_BYTES, ClosedJaxpr, Jaxpr, Var
from gradix._transforms.cse import simplify

# by operations and types: a digest of the first captured floats
_first_values: BoundedCache[int, bytes] = BoundedCache(4096)
on_clear(_first_values.clear)


def written(closed: ClosedJaxpr, values: Sequence) -> dict[int, np.ndarray]:
    """Those captured values, the first operands of a program, that become constants of it, by their numbers.

    They are copies, as a captured array may be donated before the program is written once more.
    """
    small = {
        i: c._host
        for i, c in enumerate(values)
        if type(c) is ArrayImpl and c._host is not None and c._host.nbytes <= HOIST_BYTES
    }
    # of the arrays' own types, as a random key may be kept as a complex number
    kinds = {i: values[i].dtype.kind for i in small}
    places = [i for i in small if kinds[i] in "bi"]
    floats = [i for i, a in small.items() if kinds[i] in "fc" and not _has_negative_zeros(a)]
    if floats:
        digest = blake2b(b"|".join([small[i].tobytes() for i in floats]), digest_size=16).digest()
        kind = _kind(closed.jaxpr)
        if (_first_values.get(kind) or _first_values.keep(kind, digest)) == digest:
            return {i: small[i].copy() for i in (*places, *floats)}
    return {i: small[i].copy() for i in places}


def _has_negative_zeros(a: np.ndarray) -> bool:
    """Whether XLA may take the constant for another one, as it compares zeros without their signs."""
    parts = (a.real, a.imag) if a.dtype.kind == "c" else (a,)
    return any(bool((np.signbit(part) & (part == 0)).any()) for part in parts)


def _kind(jaxpr: Jaxpr) -> int:
    """A number that programs of the same operations on operands of the same types share."""
    return hash((tuple([v.aval for v in jaxpr.invars]), tuple([e.primitive for e in jaxpr.eqns])))


def with_constants(closed: ClosedJaxpr, written: dict[int, np.ndarray]) -> ClosedJaxpr:
    """The simplified program, of the same operands, with these captured values as constants; equal ones are one."""
    if not written:
        return simplify(closed)
    jaxpr, first, same = closed.jaxpr, {}, {}
    for i, value in sorted(written.items()):
        v = jaxpr.invars[i]
        found = first.setdefault((v.aval, value.tobytes()), (v, wrap_host(value)))[0]
        if found is not v:
            same[v] = found
    invars = [Var(v.aval) if i in written else v for i, v in enumerate(jaxpr.invars)]
    constvars, consts = zip(*first.values())
    opened = jaxpr.replace(constvars=[*jaxpr.constvars, *constvars], invars=invars)
    return simplify(ClosedJaxpr(opened, [*closed.consts, *consts]), same)
