"""Reverse mode through selections: masks beside cotangents keep the dead elements zero.

A selection zeroes the cotangent of the elements that it did not take. Zero times an infinite or NaN
coefficient is NaN, so plain transposition would be wrong from there on. The rules are in
`gradix._ops.cotangent_masks`; this module decides when reverse mode applies them.
"""

from __future__ import annotations

from gradix._core.aval import seen
from gradix._core.trace import divided_like
from gradix._ops.basis import add_any
from gradix._ops.cotangent_masks import Live, cut, guarded, joined, joined_all, passed
from gradix._transforms.finite import may_be_infinite


class Masks:
    """The masks of the cotangents in one reverse pass, by tape index.

    Args:
        eqns: the equations of the tape.
        given: whether the caller passes and takes masks. If not, masks are kept only if some
            coefficient on the tape may be infinite, which the first selection checks.
    """

    __slots__ = ("live", "eqns", "wanted")

    def __init__(self, eqns: list, given: bool):
        self.eqns, self.wanted = eqns, True if given else None
        self.live: dict[int, Live] = {}

    def add(self, total: list, index: int, ct, live: Live | None) -> None:
        """Add a cotangent, which is zero outside of the mask `live`; None if it has no mask."""
        have = total[index]
        if have is None:
            total[index] = ct
            if live is not None:
                self.live[index] = live
            return
        total[index], before = add_any(have, ct), self.live.pop(index, None)
        if before is not None and live is not None:
            self.live[index] = joined(before, live)

    def pull(self, e, ct, total: list) -> bool:
        """Transpose one equation with masks.

        Returns False where the plain transpose rule is right, which the caller then uses.
        """
        prim = e.primitive
        if not self.live and prim.selects is not True and not prim.selects(e.params):
            return False
        if self.wanted is None:
            self.wanted = any(map(may_be_infinite, self.eqns))
        if not self.wanted:
            return False
        found = [self.live.pop(e.first + i, None) for i in range(len(e.avals))]
        if prim.live == "call":
            self._pull_call(e, ct, found, total)
        else:
            live = joined_all([f for f, c in zip(found, ct) if c is not None] if prim.multiple_results else found)
            self._pull_operation(e, ct, live, total)
        return True

    def _pull_call(self, e, ct, found: list, total: list) -> None:
        back, out = e.primitive.transpose_live(ct, found, *e.args, **e.params)
        for position, index in e.inputs:
            if back[position] is not None:
                self.add(total, index, back[position], out[position])

    def _pull_operation(self, e, ct, live: Live | None, total: list) -> None:
        prim, args = e.primitive, e.args
        if live is not None and live.shape and prim.live is None:
            live = None
        harmful = live if live is not None and may_be_infinite(e) else None
        if harmful is not None and prim.values.neutral is not None:
            args = guarded(prim, args, harmful)
        back = prim.transpose(ct, *args, **e.params)
        for position, index in e.inputs:
            c = back[position]
            if c is not None:
                if harmful is not None and prim.live is None:
                    c = cut(c, harmful)
                if seen.divisions:
                    c = divided_like(c, args[position].aval)
                self.add(total, index, c, passed(prim, position, args, e.params, e.avals[0], live))
