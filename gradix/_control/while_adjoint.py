"""The primitives of reverse mode through `while_p`.

They are a forward run that keeps checkpoints, its derivative, and the adjoint of that. Each stands
for a program made of `while_p`. Derivatives of any order use the same primitives on larger loops;
the k-th derivative keeps 2ᵏ times as many checkpoint rows as the first.
"""

from __future__ import annotations

from gradix._control.inner_programs import carried, split
from gradix._control.while_reverse import SAVED, Turns, returning, saved_avals, saving
from gradix._core.array import scalar_array
from gradix._core.divisions import cotangent_aval
from gradix._core.jaxpr import axis_names
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind, cotangent_like
from gradix._ops.basis import instantiate, tangent_aval, to_axis, zeros
from gradix._ops.comparison import gt
from gradix._ops.select import choose
from gradix._transforms.batch import batch
from gradix._transforms.jvp import LinearizeTrace, jvp
from gradix._transforms.staging import eval_closed, stage_closed

# the `work` of these primitives, so large that they are never run on the host but compiled
_COMPILED = 1 << 40


def of_loop(params) -> dict:
    """Those of the parameters that belong to `while_p`."""
    return {k: params[k] for k in ("body_jaxpr", "body_nconsts", "cond_jaxpr", "cond_nconsts")}


def program_of(part, avals, params):
    """The program that a part of a loop, one of these primitives, stands for."""
    return stage_closed(lambda *xs: part.composed(xs, params), avals)


class _Derived(Primitive):
    """The base class of programs over `loop`, `while_p`; the first operands are the loop's."""

    multiple_results = True
    mesh = MeshTraits(mixes=True, types_inside=True)
    effectful = True
    named = True

    def __init__(self, name: str, loop):
        super().__init__(name)
        self.loop = loop

    def effects(self, params):
        return self.loop.effects(params)

    def names(self, params):
        effects = self.effects(params)
        return axis_names(effects) if effects else ()

    def work(self, params):
        return _COMPILED

    def composed(self, args, params) -> list:
        """Apply the program that this primitive stands for."""
        raise NotImplementedError

    def jvp(self, primals, tangents, **params):
        return jvp(lambda *xs: self.composed(xs, params), primals, tangents)

    def linearize(self, primals, tangents, **params):
        return jvp(lambda *xs: self.composed(xs, params), primals, tangents, LinearizeTrace())

    def batch(self, axis, args, axes, **params):
        return batch(lambda *xs: self.composed(xs, params), axis, args, axes)

    def lower(self, em, outs, *args, **params):
        memo, avals = params["body_jaxpr"].memo, tuple([a.aval for a in args])
        key = (self.name, avals, *[v for k, v in sorted(params.items()) if k != "body_jaxpr"])
        program = memo.get(key)
        if program is None:
            program = memo[key] = program_of(self, avals, params)
        return em.inline(program.jaxpr, program.consts, args)

    def parts(self, args, params) -> list[list]:
        """Split operands: constants of the condition and of the body, carry, and the rest."""
        nc, nb = params["cond_nconsts"], params["body_nconsts"]
        return split(args, nc, nb, len(params["body_jaxpr"].out_avals))


class WhileSave(_Derived):
    """The loop; it returns its last carry and the checkpoints for the backward run.

    The checkpoints have no tangents.
    """

    def abstract(self, *avals, body_jaxpr, **_):
        return [*body_jaxpr.out_avals, *saved_avals(body_jaxpr.out_avals)]

    def composed(self, args, params):
        cc, bc, init, _ = self.parts(args, params)
        return saving(Turns(self.loop, cc, bc, params), init)

    def jvp(self, primals, tangents, **params):
        outs = bind(self, primals, params)
        _, ts = self.loop.jvp(primals, tangents, **params)
        return outs, [*ts, *[None] * (len(outs) - len(ts))]

    def linearize(self, primals, tangents, **params):
        outs, ts = self.loop.linearized(self, primals, tangents, params)
        return outs, [*ts, *[None] * (len(outs) - len(ts))]

    def batch(self, axis, args, axes, **params):
        args, params, carry = self.loop.mapped(axis, args, axes, params)
        return bind(self, args, params), [*carry, *[None] * SAVED, *[None if a is None else a + 1 for a in carry]]


class WhileLinear(_Derived):
    """The derivative of the loop.

    Its operands are those of the loop, the checkpoints, and the tangents marked `nonzero`.
    """

    def abstract(self, *avals, body_jaxpr, body_nconsts, nonzero, **_):
        return [tangent_aval(a) for a, nz in zip(body_jaxpr.out_avals, nonzero[body_nconsts:]) if nz]

    def composed(self, args, params):
        cc, bc, init, rest = self.parts(args, params)
        given, nonzero = iter(rest[SAVED + len(init) :]), params["nonzero"]
        tangents = [*[None] * len(cc), *[next(given) if nz else None for nz in nonzero]]
        outs, ts = self.loop.jvp([*cc, *bc, *init], tangents, **of_loop(params))
        return [instantiate(t, o.aval) for o, t, nz in zip(outs, ts, nonzero[len(bc) :]) if nz]

    def transpose(self, cts, *args, **params):
        known = len(args) - sum(params["nonzero"])
        avals = self.abstract(**params)
        back = bind(
            self.loop.back,
            [*args[:known], *[cotangent_like(instantiate(c, a), a) for c, a in zip(cts, avals)]],
            {**params, "apart": not params["cond_jaxpr"].out_avals[0].shape},
        )
        return [*[None] * known, *[b if type(a) is Linear else None for a, b in zip(args[known:], back)]]


class WhileBack(_Derived):
    """The adjoint of `WhileLinear`; in place of tangents it takes cotangents of the last carry.

    With `apart`, cotangents of constants have the leading axes of a condition that is not a scalar.
    """

    def abstract(self, *avals, body_jaxpr, nonzero, **_):
        return [cotangent_aval(tangent_aval(a)) for a, nz in zip(body_jaxpr.in_avals, nonzero) if nz]

    def composed(self, args, params):
        cc, bc, init, rest = self.parts(args, params)
        saved, cts = split(rest, SAVED + len(init))
        return returning(Turns(self.loop, cc, bc, params), init, saved, cts, params["nonzero"], params["apart"])

    def jvp(self, primals, tangents, **params):
        outs = bind(self, primals, params)
        return outs, _curved(self.loop, primals, tangents, params)

    def linearize(self, primals, tangents, **params):
        outs = bind(self, primals, params)
        present = tuple([t is not None for t in tangents])
        if all(t is None for t in tangents):
            return outs, [None] * len(outs)
        ts = bind(self.loop.curved, [*primals, *[t for t in tangents if t is not None]], {**params, "present": present})
        return outs, ts

    def batch(self, axis, args, axes, **params):
        nonzero, n = params["nonzero"], params["cond_nconsts"]
        loop = n + len(nonzero)
        # the counters are batched where a select between examples was applied to them
        if any(a is not None for a in axes[loop : loop + 3]):
            return batch(lambda *xs: self.guarded(xs, params), axis, args, axes)
        args, axes = list(args), list(axes)
        for i, nz in enumerate(nonzero, n):  # each example has cotangents of its own
            if nz:
                args[i], axes[i] = to_axis(axis.size, args[i], axes[i], 0), 0
        operands, mapped, carry = self.loop.mapped(axis, args[:loop], axes[:loop], params)
        saved, cts = split(args[loop:], SAVED + len(carry))
        at_saved, at_cts = split(axes[loop:], SAVED + len(carry))
        rows = [
            r if a is None else to_axis(axis.size, r, old, a + 1)
            for r, old, a in zip(saved[SAVED:], at_saved[SAVED:], carry)
        ]
        cts = [to_axis(axis.size, c, a, 0) for c, a in zip(cts, at_cts)]
        outs = bind(self, [*operands, *saved[:SAVED], *rows, *cts], {**params, **mapped})
        return outs, [0] * len(outs)

    def guarded(self, args, params) -> list:
        """The adjoint, with a condition that is False where the counters say "no iterations"."""
        cc, bc, init, rest = self.parts(args, params)
        saved, cts = split(rest, SAVED + len(init))
        active, cond = (gt(saved[0], scalar_array(0, saved[0].aval.dtype, False)), params["cond_jaxpr"])
        no = scalar_array(False, active.aval.dtype, False)
        guard = stage_closed(lambda on, *xs: [choose(on, no, *eval_closed(cond, *xs))], [active.aval, *cond.in_avals])
        params = {**params, "cond_jaxpr": guard, "cond_nconsts": len(cc) + 1}
        saved = bind(self.loop.save, [active, *cc, *bc, *init], of_loop(params))[len(init) :]
        return bind(self, [active, *cc, *bc, *init, *saved, *cts], params)


class WhileCurved(_Derived):
    """The derivative of `WhileBack`; takes its operands, then the tangents marked `present`."""

    def abstract(self, *avals, body_jaxpr, nonzero, **_):
        return [tangent_aval(a) for a, nz in zip(body_jaxpr.in_avals, nonzero) if nz]

    def composed(self, args, params):
        present = params["present"]
        n = len(present)
        given = iter(args[n:])
        ts = _curved(self.loop, args[:n], [next(given) if p else None for p in present], params)
        return [instantiate(t, a) for t, a in zip(ts, self.abstract(**params))]

    def transpose(self, cts, *args, **params):
        """The transpose.

        The second derivative is symmetric: cotangents of the operands are second derivatives
        again, and cotangents of the cotangents are tangents of the loop.
        """
        present, nonzero, nc = params["present"], params["nonzero"], params["cond_nconsts"]
        n, loop = len(present), nc + len(nonzero)
        primals = list(args[:n])
        given = iter(cts)
        directions = [next(given) if nz else None for nz in nonzero]
        nb = params["body_nconsts"]
        ct_of = _by_carry(nonzero[nb:], primals[n - sum(nonzero[nb:]) :])
        operands = mixed(self.loop, primals[:loop], directions, ct_of, [None] * len(ct_of), present[nc:loop], params)
        back = [*[None] * nc, *operands, *[None] * (n - loop)]
        if any(present[loop:]):
            _, ts = self.loop.jvp(primals[:loop], [*[None] * nc, *directions], **of_loop(params))
            back[n - sum(nonzero[nb:]) :] = [t for t, nz in zip(ts, nonzero[nb:]) if nz]
        back = [b for b, p in zip(back, present) if p]
        return [*[None] * n, *[b if type(a) is Linear else None for a, b in zip(args[n:], back)]]


def _by_carry(marks, given) -> list:
    given = iter(given)
    return [next(given) if m else None for m in marks]


def _curved(loop, primals, tangents, params) -> list:
    """The tangents of the adjoint's results, from the tangents of its operands."""
    nonzero, nc, nb = params["nonzero"], params["cond_nconsts"], params["body_nconsts"]
    n, end = len(primals) - sum(nonzero[nb:]), nc + len(nonzero)
    cts, ct_ts = (_by_carry(nonzero[nb:], xs[n:]) for xs in (primals, tangents))
    if all(t is None for t in tangents[nc:end]):
        ct_ts = [instantiate(t, c.aval) for t, c in zip(tangents[n:], primals[n:])]
        return bind(loop.back, [*primals[:n], *ct_ts], params)
    found = mixed(loop, primals[:end], tangents[nc:end], cts, ct_ts, nonzero, params)
    return [f for f, nz in zip(found, nonzero) if nz]


def mixed(loop, primals, directions, cts, tangent_cts, wanted, params) -> list:
    """The gradient, in the operands marked `wanted`, of ⟨cts, J·directions⟩ + ⟨tangent_cts, loop⟩.

    The loop over primals and tangents returns both; its adjoint, applied to `tangent_cts` and
    `cts`, is that gradient.
    """
    nc, nb = params["cond_nconsts"], params["body_nconsts"]
    if all(d is None for d in directions):
        directions = [zeros(tangent_aval(p.aval)) if w else None for p, w in zip(primals[nc:], wanted)]
    operands, inner, places, moving = loop.tangent_loop(primals, [*[None] * nc, *directions], of_loop(params))
    tb, nk = inner["body_nconsts"] - nb, len(inner["body_jaxpr"].out_avals)
    marks = [*wanted[:nb], *[False] * tb, *[False] * nk]
    for i, w in enumerate(wanted[nb:]):
        marks[nb + tb + places[i]] = w
    marks[nb + tb :] = carried(inner["body_jaxpr"], tuple(marks), nb + tb, nk, smooth=True)
    back: list = [None] * nk
    for i, at in enumerate(places):
        back[at] = tangent_cts[i]
        if moving[i]:
            back[at + 1] = cts[i]
    avals = inner["body_jaxpr"].out_avals
    given = [instantiate(b, a) for b, a, m in zip(back, avals, marks[nb + tb :]) if m]
    saved = bind(loop.save, operands, inner)[nk:]
    inner = {**inner, "nonzero": tuple(marks), "apart": params["apart"]}
    found = iter(bind(loop.back, [*operands, *saved, *given], inner))
    every = [next(found) if m else None for m in marks]
    return [c if w else None for c, w in zip([*every[:nb], *[every[nb + tb + at] for at in places]], wanted)]
