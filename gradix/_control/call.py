"""`jit_p`: a call of a program, which is compiled as a whole."""

from __future__ import annotations

from gradix._control.inner_programs import dependent
from gradix._core.effects import is_ordered
from gradix._core.jaxpr import ClosedJaxpr, axis_names
from gradix._core.primitive import Inlining, Linear, MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.cotangent_masks import Live
from gradix._transforms.batch import batch_jaxpr
from gradix._transforms.dce import dce_closed
from gradix._transforms.finite import holds_selection
from gradix._transforms.jvp import jvp_jaxpr
from gradix._transforms.linearize import linearize_jaxpr, transpose_with_refs
from gradix._transforms.staging import given_refs, take_back


class Call(Primitive):
    """A call of the closed program in parameter `jaxpr`; `name` is the name of the function.

    The optional parameter `refs` holds pairs of a ref of the program and the ref given for it,
    which rules of derivatives inside may use later.
    """

    multiple_results = True
    effectful = True
    named = True
    is_call = True
    mesh = MeshTraits(mixes=True, types_inside=True)
    live: str | None = "call"
    # tangents that are equal outside of a call become distinct inputs of the called program
    inlining = Inlining(in_high_orders=True)

    def hand_to(self, trace, args, params):
        more = {"donated_invars": (False,) * len(args), "keep_unused": False, "inline": False}
        return trace.process_primitive(self, args, {**params, **more})

    def bind(self, *args, donated_invars=(), keep_unused=False, inline=False, **params):
        """Apply the program; only traces of libraries get the parameters that are named here."""
        return super().bind(*args, **params)

    def bind_with_trace(self, trace, args, avals, params):
        """As `bind`, in `trace`."""
        params = {k: params[k] for k in ("jaxpr", "name", "refs") if k in params}
        return super().bind_with_trace(trace, args, avals, params)

    def abstract(self, *avals, jaxpr, name, **_):
        return jaxpr.out_avals

    def effects(self, params):
        return params["jaxpr"].effects

    def names(self, params):
        effects = params["jaxpr"].effects
        return axis_names(effects) if effects else ()

    def dependent(self, marks, params, smooth):
        return dependent(params["jaxpr"], tuple(marks), smooth)

    def jvp(self, primals, tangents, *, jaxpr, **params):
        nonzero = tuple([t is not None for t in tangents])
        both, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
        outs = bind(self, [*primals, *(t for t in tangents if t is not None)], {"jaxpr": both, **params})
        n = len(jaxpr.out_avals)
        given = iter(outs[n:])
        return outs[:n], [next(given) if nz else None for nz in out_nonzero]

    def linearize(self, primals, tangents, *, jaxpr, **params):
        nonzero = tuple([t is not None for t in tangents])
        split = linearize_jaxpr(jaxpr, nonzero)
        outs = bind(self, primals, {"jaxpr": split.known, **params})
        residuals = split.residuals(primals, outs)
        if not any(split.out_nonzero):
            return outs[: split.n_out], [None] * split.n_out
        ts = bind(self, [*residuals, *(t for t in tangents if t is not None)], {"jaxpr": split.linear, **params})
        given = iter(ts)
        return outs[: split.n_out], [next(given) if nz else None for nz in split.out_nonzero]

    def transpose(self, cts, *args, jaxpr, **params):
        linear = tuple([type(a) is Linear for a in args])
        nonzero = tuple([c is not None for c in cts])
        back, live, refs = transpose_with_refs(jaxpr, linear, nonzero)
        refs = given_refs(refs, params)
        known = [a for a, is_lin in zip(args, linear) if not is_lin]
        operands = [*known, *(c for c in cts if c is not None), *[r.read() for r, _ in refs]]
        outs = take_back(refs, bind(self, operands, {"jaxpr": back, **params}))
        given = iter([o if alive else None for o, alive in zip(outs, live)])
        return [next(given) if is_lin else None for is_lin in linear]

    def selects(self, params) -> bool:
        return holds_selection(params["jaxpr"].jaxpr)

    def transpose_live(self, cts, lives, *args, jaxpr, **params):
        """As `transpose`, with masks of live cotangent elements: see _ops/cotangent_masks.py."""
        linear = tuple([type(a) is Linear for a in args])
        nonzero = tuple([c is not None for c in cts])
        shapes = tuple([None if m is None else m.shape for m in lives])
        back, (flags, after), refs = transpose_with_refs(jaxpr, linear, nonzero, shapes)
        refs = given_refs(refs, params)
        known = [a for a, is_lin in zip(args, linear) if not is_lin]
        operands = [
            *known,
            *[c for c in cts if c is not None],
            *[m.mask() for m in lives if m is not None],
            *[r.read() for r, _ in refs],
        ]
        outs = take_back(refs, bind(self, operands, {"jaxpr": back, **params}))
        masks = iter(outs[len(flags) :])
        masks = [None if shape is None else Live.of(next(masks)) for shape in after]
        pairs = iter([(o, m) if alive else (None, None) for o, m, alive in zip(outs, masks, flags)])
        pairs = [next(pairs) if is_lin else (None, None) for is_lin in linear]
        return [c for c, _ in pairs], [m for _, m in pairs]

    def batch(self, axis, args, axes, *, jaxpr, **params):
        mapped, out_axes = batch_jaxpr(jaxpr, axis, tuple(axes))
        return bind(self, args, {"jaxpr": mapped, **params}), list(out_axes)

    def dce(self, used, eqn):
        """The call without unused results, and without the operands that only these need."""
        jaxpr, used_inputs = dce_closed(eqn.params["jaxpr"], tuple(used))
        return eqn.replace(
            invars=[v for v, u in zip(eqn.invars, used_inputs) if u],
            outvars=[v for v, u in zip(eqn.outvars, used) if u],
            params={**eqn.params, "jaxpr": jaxpr},
        )

    def lower(self, em, outs, *args, jaxpr: ClosedJaxpr, name, **_):
        return em.call_jaxpr(name, jaxpr.jaxpr, jaxpr.consts, args, ordered=any(map(is_ordered, jaxpr.effects)))

    def show(self, params):
        return {k: params[k] for k in ("name", "jaxpr")}


jit_p = Call("jit")


class AnnotatedCall(Call):
    """A call whose derivatives are those of its program, and lose what the call says besides."""

    def jvp(self, primals, tangents, *, jaxpr, name, **_):
        return jit_p.jvp(primals, tangents, jaxpr=jaxpr, name=name)

    def linearize(self, primals, tangents, *, jaxpr, name, **_):
        return jit_p.linearize(primals, tangents, jaxpr=jaxpr, name=name)

    def transpose(self, cts, *args, jaxpr, name, **_):
        return jit_p.transpose(cts, *args, jaxpr=jaxpr, name=name)

    def transpose_live(self, cts, lives, *args, jaxpr, name, **_):
        return jit_p.transpose_live(cts, lives, *args, jaxpr=jaxpr, name=name)
