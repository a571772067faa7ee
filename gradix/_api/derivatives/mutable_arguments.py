"""Forward-mode derivatives with respect to mutable arrays: a ref of tangents goes with each ref."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._api.hi_boxes import Handle
from gradix._core.refs import AbstractRef, Ref
from gradix._transforms.staging import give_back


def jvp_of_refs(jvp: Callable, fun: Callable, leaves: list, tangents: list, tree, has_aux: bool):
    """`jvp` where some leaves of primals are refs, to which and to whose tangents `fun` writes.

    Raises:
        TypeError: a primal is a ref and its tangent is none, or the other way round.
        NotImplementedError: the function gives a value above arrays a state of other types.
    """
    for i, (x, t) in enumerate(zip(leaves, tangents)):
        if isinstance(x, Ref) != isinstance(t, Ref):
            raise TypeError(
                f"jvp: the tangent of a mutable array is a mutable array, but leaf {i} of the "
                f"primals is {x!r}, and that of the tangents is {t!r}."
            )
    held = [i for i, x in enumerate(leaves) if isinstance(x, Ref) and type(x) is not Handle]
    others = [i for i, x in enumerate(leaves) if not isinstance(x, Ref)]

    def through(values, rest):
        inner: dict[int, Any] = dict(zip(others, rest))
        inner |= {i: Ref(AbstractRef(v.aval), v) for i, v in zip(held, values)}
        handles = {i: Handle(None) for i, x in enumerate(leaves) if type(x) is Handle}
        given = tree.unflatten([{**inner, **handles}[i] for i in range(len(leaves))])
        before = {i: (h.box.qdd, h.box.refs) for i, h in handles.items()}
        out = fun(*given)
        for i, handle in handles.items():
            if (handle.box.qdd, handle.box.refs) != before[i]:
                raise NotImplementedError(
                    f"jvp: the function gives a value of type {handle.box.aval} a state of other "
                    "types; set it before to arrays of the final shapes and dtypes."
                )
        last = [inner[i].read() for i in held]
        if not has_aux:
            return last, out
        value, aux = out
        return (last, value), aux

    def parts(xs):
        return [xs[i].read() for i in held], [xs[i] for i in others]

    (last, value), (t_last, tangent), *aux = jvp(through, parts(leaves), parts(tangents), has_aux)
    give_back([leaves[i] for i in held], last)
    give_back([tangents[i] for i in held], t_last)
    return (value, tangent, *aux)
