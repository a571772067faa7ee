"""`custom_vjp_call_p`: a call of a function for which the user defined the reverse-mode rule."""

from __future__ import annotations

from gradix._base.lazy import lazy_module
from gradix._control.custom_jvp import (
    RuledCall,
    axis_of,
    check_closed,
    check_types,
    closed_over,
    is_deeper,
    mapped_call,
    top_trace,
)
from gradix._control.rules_with_refs import backward_through, forward_through, stage_ruled
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import instantiate, is_differentiable, move_axis, reduce_sum, tangent_aval, to_axis, zeros
from gradix._transforms.batch import batch
from gradix._transforms.jvp import JVPTrace, JVPTracer, LinearizeTrace, jvp_jaxpr
from gradix._transforms.staging import eval_closed, give_back

_captured = lazy_module("gradix._control.captured")


class CustomVJPCall(RuledCall):
    """A call of `call_jaxpr` with a user's reverse-mode rule.

    The rule consists of `fwd(*args) -> (outs, residuals)` and `bwd(residuals, cts)`. The first
    `num_consts` operands are captured values; these and the next `num_static` operands must have no
    tangents. With `symbolic_zeros`, the keyword `perturbed` of `fwd` says which arguments have
    tangents, and `bwd` gets None for a cotangent of zero.
    """

    def jvp(self, primals, tangents, *, call_jaxpr, **_):
        """Forward mode ignores the rule, and differentiates the function."""
        both, out_nonzero = jvp_jaxpr(call_jaxpr, tuple([t is not None for t in tangents]))
        outs = eval_closed(both, *primals, *[t for t in tangents if t is not None])
        n = len(call_jaxpr.out_avals)
        given = iter(outs[n:])
        return outs[:n], [next(given) if nz else None for nz in out_nonzero]

    def linearize(
        self, primals, tangents, *, call_jaxpr, fwd, bwd, num_consts, name, num_static=0, symbolic_zeros=False
    ):
        if any(t is not None for t in tangents[: num_consts + num_static]):
            raise closed_over(name, "custom_vjp", next(p for p, t in zip(primals, tangents) if t is not None))
        outs, ts = linear_by_rule(
            fwd, bwd, name, primals[num_consts:], tangents[num_consts:], symbolic_zeros=symbolic_zeros
        )
        check_types(name, "fwd rule", outs, call_jaxpr.out_avals)
        return outs, ts

    def batch(self, size, args, axes, *, call_jaxpr, fwd, bwd, num_consts, **params):
        axis, n_out = axis_of(size), len(call_jaxpr.out_avals)
        mapped, where = mapped_call(call_jaxpr, axis, axes)
        in_axes = axes[num_consts:]
        seen: dict = {}

        def mapped_fwd(*vals, **told):
            outs, out_axes = _captured.batch_rule(
                lambda *xs: [v for part in fwd(*xs, **told) for v in part], axis, vals, in_axes
            )
            outs[:n_out] = [
                o if a is w is None else _front(axis, o, a) for o, a, w in zip(outs[:n_out], out_axes, where)
            ]
            seen["res"] = out_axes[n_out:]
            return outs[:n_out], outs[n_out:]

        def mapped_bwd(residuals, cts):
            there = [c is not None for c in cts]
            cts = [c for c in cts if c is not None]
            vals = [*residuals, *cts]
            ct_axes = [w for w, t in zip(where, there) if t]
            given_axes = [*seen["res"], *[w if is_differentiable(c.aval) else None for c, w in zip(cts, ct_axes)]]
            n_res, present = len(residuals), []

            def back(*xs):
                given = iter(xs[n_res:])
                outs = bwd(xs[:n_res], [next(given) if t else None for t in there])
                present[:] = [o is not None for o in outs]
                return [o for o in outs if o is not None]

            given = iter(zip(*batch(back, axis, vals, given_axes)))
            return [_back(axis, *next(given), want) if p else None for p, want in zip(present, in_axes)]

        params.update(call_jaxpr=mapped, fwd=mapped_fwd, bwd=mapped_bwd, num_consts=num_consts)
        return bind(self, args, params), where

    def show(self, params):
        return {
            "name": params["name"],
            "bwd": getattr(params["bwd"], "__name__", "bwd"),
            "call_jaxpr": params["call_jaxpr"],
            "fwd": getattr(params["fwd"], "__name__", "fwd"),
            "symbolic_zeros": params.get("symbolic_zeros", False),
        }


def _front(axis, x, at):
    return to_axis(axis.size, x, None, 0) if at is None else move_axis(x, at, 0)


def _back(axis, ct, at, want):
    """A cotangent with its batch axis moved to `want`; summed over it if the operand has none."""
    if want is None:
        return ct if at is None else reduce_sum(ct, (at,))
    return to_axis(axis.size, ct, None, want) if at is None else move_axis(ct, at, want)


class CustomLinear(Primitive):
    """A linear map of which only the transpose `bwd` is known.

    Its operands are `num_res` residuals, then the tangents.
    """

    multiple_results = True
    mesh = MeshTraits(mixes=True, types_inside=True)
    only_backward = True

    def abstract(self, *avals, out_avals, **_):
        return list(out_avals)

    def transpose(self, cts, *args, bwd, num_res, out_avals, symbolic_zeros=False, **_):
        residuals = args[:num_res]
        back = bwd(residuals, cts if symbolic_zeros else [instantiate(c, a) for c, a in zip(cts, out_avals)])
        wanted = iter(back)
        out = [None] * num_res
        for a in args[num_res:]:
            ct = next(wanted)
            out.append(ct if type(a) is Linear else None)
        return out

    def run(self, args, params):
        self.refuse(**params)

    def refuse(self, *args, name, **_):
        raise TypeError(
            f"can't apply forward-mode autodiff (jvp) to a linearized custom_vjp function: of '{name}' "
            "only the transpose is known here. Use jvp of the function itself, or vjp, grad or jacrev."
        )

    jvp = batch = lower = refuse  # type: ignore[assignment]


custom_vjp_call_p = CustomVJPCall("custom_vjp_call")
custom_lin_p = CustomLinear("custom_lin")


def linear_by_rule(fwd, bwd, name, primals, tangents, trace=None, *, symbolic_zeros: bool = False):
    """Run `fwd`, and record a linear map with transpose `bwd`; `trace` is the linearizing trace."""
    told = {"perturbed": [t is not None for t in tangents]} if symbolic_zeros else {}
    outs, residuals = fwd(*primals, **told)
    check_closed(name, "custom_vjp", trace, [*outs, *residuals])
    ts = [zeros(tangent_aval(p.aval)) if t is None else t for p, t in zip(primals, tangents)]
    active = [is_differentiable(p.aval) for p in primals]

    def bwd_active(res, cts):
        return [c for c, a in zip(bwd(res, cts), active) if a]

    avals = tuple([tangent_aval(o.aval) for o in outs])
    if not any(t is not None for t in tangents):
        return outs, [None] * len(outs)
    out_ts = bind(
        custom_lin_p,
        [*residuals, *[t for t, a in zip(ts, active) if a]],
        {
            "num_res": len(residuals),
            "bwd": bwd_active,
            "out_avals": avals,
            "name": name,
            "symbolic_zeros": symbolic_zeros,
        },
    )
    return outs, [t if is_differentiable(o.aval) else None for t, o in zip(out_ts, outs)]


def _explicit(function, fwd, bwd, primals, told: dict, trace) -> tuple:
    """Function and rules with the values from inside of `trace` that they capture as operands.

    Returns all three, and these values, which come before the other operands.
    """
    avals = [p.aval for p in primals]
    lengths: list = []

    def flat(*xs, **told):
        outs, residuals = fwd(*xs, **told)
        lengths[:] = [len(outs)]
        return [*outs, *residuals]

    more = _captured.captured([(function, avals), (lambda *xs: flat(*xs, **told), avals)], trace)
    n = len(more)

    def explicit_fwd(*xs, **told):
        told = {name: flags[n:] for name, flags in told.items()}
        found = _captured.with_captured(lambda *xs: flat(*xs, **told), more)(*xs)
        return found[: lengths[0]], found[lengths[0] :]

    def explicit_bwd(residuals, cts):
        return [*[None] * n, *bwd(residuals, cts)]

    return _captured.with_captured(function, more), explicit_fwd, explicit_bwd, more


def call_custom_vjp(
    function, fwd, bwd, args, name: str, debug, *, num_static: int = 0, symbolic_zeros: bool = False
) -> list:
    """Call a flat function that has a user's reverse-mode rule, in the trace of its arguments.

    The first `num_static` arguments must have no tangents.
    """
    top = top_trace(args)
    # forward mode ignores the rule, and differentiates the function
    if (
        top is None or type(top) is JVPTrace or not args
    ):  # a rule is about arguments, of which there may be none but refs
        return function(*args)
    if isinstance(top, LinearizeTrace):
        primals, tangents = zip(*map(top.split, args)) if args else ((), ())
        if any(t is not None for t in tangents[:num_static]):
            raise closed_over(name, "custom_vjp", args[0])
        told = {"perturbed": [t is not None for t in tangents]} if symbolic_zeros else {}
        found = fwd(*primals, **told)
        if any(is_deeper(v, top) for part in found for v in part):
            function, fwd, bwd, more = _explicit(function, fwd, bwd, primals, told, top)
            return call_custom_vjp(
                function,
                fwd,
                bwd,
                [*more, *args],
                name,
                debug,
                num_static=num_static + len(more),
                symbolic_zeros=symbolic_zeros,
            )
        outs, ts = linear_by_rule(
            lambda *_, **__: found, bwd, name, list(primals), list(tangents), top, symbolic_zeros=symbolic_zeros
        )
        return [o if t is None else JVPTracer(top, o, t) for o, t in zip(outs, ts)]
    closed, consts, refs, sealing = stage_ruled(function, args, debug)
    if sealing is not None:
        fwd, bwd = sealing.fwd(fwd), sealing.bwd(bwd)
    if refs:
        fwd, bwd = forward_through(fwd, refs, name), backward_through(bwd, refs)
    outs = bind(
        custom_vjp_call_p,
        [*consts, *[r.read() for r in refs], *args],
        {
            "call_jaxpr": closed,
            "fwd": fwd,
            "bwd": bwd,
            "num_consts": len(consts),
            "name": name,
            "num_static": len(refs) + num_static,
            "symbolic_zeros": symbolic_zeros,
        },
    )
    outs = give_back(refs, outs)
    return outs if sealing is None else sealing.open(outs)
