"""`custom_vmap_call_p`: a function with a user's vmap rule, which its derivatives use as well."""

from __future__ import annotations

from collections.abc import Callable

from gradix._control.custom_jvp import RuledCall, closed_over, top_trace
from gradix._control.inner_programs import rearranged
from gradix._core.aval import same_types
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.primitive import Inlining, Linear
from gradix._core.trace import bind
from gradix._ops.basis import instantiate, tangent_aval, to_axis, zeros
from gradix._transforms.batch import batch_jaxpr, insert_axis
from gradix._transforms.jvp import jvp, jvp_jaxpr
from gradix._transforms.linearize import linearize, trace_for
from gradix._transforms.staging import eval_closed, stage_closed, stage_open

# (size, flags of mapped operands, operands) -> (results, flags of mapped results)
Rule = Callable[..., tuple[list, list]]


class CustomVmapCall(RuledCall):
    """A call of `call_jaxpr` whose batch rule is `rule(size, batched, args) -> (outs, batched)`.

    The rule takes and returns arrays with the batch axis in front. The first `num_consts` operands
    are values that the function captured; the rule does not get them. `back`, if given, holds the
    program and the rule of the transpose, which takes the nonlinear operands and the cotangents.

    `asked`, if given, is the number of leading operands that the user's rule is about: operands
    after them are tangents. Where only tangents are mapped, the program itself is mapped, as a rule
    need not have an answer for arguments of which none is mapped.
    """

    def batch(self, axis, args, axes, *, call_jaxpr, rule, num_consts, name, back=None, asked=None):
        if asked is not None and all(a is None for a in axes[:asked]):
            mapped, out_axes = batch_jaxpr(call_jaxpr, axis, tuple(axes))
            return eval_closed(mapped, *args), out_axes
        batched = [a is not None for a in axes]
        if any(batched[:num_consts]):
            raise ValueError(
                f"The custom_vmap function '{name}' closes over a value that vmap maps, of type "
                f"{args[batched.index(True)].aval}, which its rule cannot see. Pass it as an argument."
            )
        vals = [x if a is None else to_axis(axis.size, x, a, 0) for x, a in zip(args, axes)]
        outs, out_batched = rule(axis.size, batched, vals)
        wanted = [insert_axis(a, axis.size, 0 if b else None) for a, b in zip(call_jaxpr.out_avals, out_batched)]
        got = [o.aval for o in outs]
        if not same_types(got, wanted):
            raise ValueError(
                f"The vmap rule of the custom_vmap function '{name}' must return, for an axis of size "
                f"{axis.size}, results of types {[str(a) for a in wanted]}, but returned "
                f"{[str(a) for a in got]}. Mapped results have the mapped axis first; mark those without "
                "one as not batched."
            )
        return outs, [0 if b else None for b in out_batched]

    def jvp(self, primals, tangents, *, call_jaxpr, rule, num_consts, name, back=None, asked=None):
        nz = tuple([t is not None for t in tangents])
        both, out_nz = jvp_jaxpr(call_jaxpr, nz)
        outs = bind(
            custom_vmap_call_p,
            [*primals, *[t for t in tangents if t is not None]],
            {
                "call_jaxpr": both,
                "rule": tangent_rule(rule, nz, out_nz, num_consts, name),
                "num_consts": num_consts,
                "name": name,
                "asked": len(primals) if asked is None else asked,
            },
        )
        n = len(out_nz)
        given = iter(outs[n:])
        return outs[:n], [next(given) if f else None for f in out_nz]

    def linearize(self, primals, tangents, *, call_jaxpr, rule, num_consts, name, back=None, asked=None):
        """Call the function, and record a linear map whose transpose has a vmap rule, too."""
        outs = bind(
            self,
            primals,
            {
                "call_jaxpr": call_jaxpr,
                "rule": rule,
                "num_consts": num_consts,
                "name": name,
                "back": back,
                "asked": asked,
            },
        )
        nz, n = tuple([t is not None for t in tangents]), len(call_jaxpr.out_avals)
        both, out_nz = jvp_jaxpr(call_jaxpr, nz)
        if not any(out_nz):
            return outs, [None] * n
        pairs = tangent_rule(rule, nz, out_nz, num_consts, name)

        def only_tangents(size, batched, args):
            results, mapped = pairs(size, batched, args)
            return results[n:], mapped[n:]

        known = ClosedJaxpr(call_jaxpr.jaxpr, call_jaxpr.consts)
        ts = bind(
            custom_vmap_linear_p,
            [*primals, *[t for t in tangents if t is not None]],
            {
                "call_jaxpr": rearranged(both, range(len(both.in_avals)), range(n, n + sum(out_nz))),
                "rule": only_tangents,
                "num_consts": num_consts,
                "name": name,
                "back": (back_program(known, nz, out_nz), back_rule(rule, nz, out_nz)),
                "asked": len(primals) if asked is None else asked,
            },
        )
        given = iter(ts)
        return outs, [next(given) if f else None for f in out_nz]

    def transpose(self, cts, *args, call_jaxpr, num_consts, name, back, **_):
        known = [a for a in args if type(a) is not Linear]
        cts = [instantiate(c, a) for c, a in zip(cts, call_jaxpr.out_avals)]
        program, rule = back
        outs = iter(
            bind(
                custom_vmap_call_p,
                [*known, *cts],
                {"call_jaxpr": program, "rule": rule, "num_consts": num_consts, "name": name},
            )
        )
        return [next(outs) if type(a) is Linear else None for a in args]

    def show(self, params):
        return {"call": params["call_jaxpr"], "name": params["name"]}


class CustomVmapLinear(CustomVmapCall):
    """The derivative of such a call; it is linear in its last operands."""

    is_call = False  # transforms record it as one equation and do not inline it
    inlining = Inlining()


custom_vmap_call_p = CustomVmapCall("custom_vmap_call")
custom_vmap_linear_p = CustomVmapLinear("custom_vmap_linear")


# -- derivatives of rules --------------------------------------------------------------------------


def _spread(size: int, x, is_mapped: bool):
    return x if is_mapped else to_axis(size, x, None, 0)


def tangent_rule(rule: Rule, nz, out_nz, num_consts: int, name: str) -> Rule:
    """The vmap rule of the jvp.

    It takes the primals and the tangents marked `nz`, and returns the results and the tangents
    marked `out_nz`.
    """
    n = len(nz)

    def both(size, batched, args):
        given = iter(zip(args[n:], batched[n:]))
        primals, tangents, mapped = list(args[:n]), [], list(batched[:n])
        for i, has in enumerate(nz):
            if not has:
                tangents.append(None)
                continue
            if i < num_consts:
                raise closed_over(name, "custom_vmap", primals[i])
            t, is_mapped = next(given)
            if is_mapped or mapped[i]:
                primals[i], t, mapped[i] = (_spread(size, primals[i], mapped[i]), _spread(size, t, is_mapped), True)
            tangents.append(t)
        out_mapped: list = []

        def mapped_function(*xs):
            outs, out_mapped[:] = rule(size, mapped, list(xs))
            return outs

        ys, ts = jvp(mapped_function, primals, tangents, trace_for(tangents))
        ts = [instantiate(t, tangent_aval(y.aval)) for t, y, f in zip(ts, ys, out_nz) if f]
        return [*ys, *ts], [*out_mapped, *[m for m, f in zip(out_mapped, out_nz) if f]]

    return both


def back_rule(rule: Rule, nz, out_nz) -> Rule:
    """The vmap rule of the transpose; it returns the cotangents of the primals marked `nz`."""
    n = len(nz)

    def back(size, batched, args):
        primals = [_spread(size, x, m) if has else x for x, m, has in zip(args, batched, nz)]
        mapped = [m or has for m, has in zip(batched, nz)]
        given = iter([_spread(size, c, m) for c, m in zip(args[n:], batched[n:])])

        def mapped_function(*xs):
            outs, out_mapped = rule(size, mapped, list(xs))
            return [_spread(size, o, m) for o, m in zip(outs, out_mapped)]

        _, program = linearize(mapped_function, primals, nz)
        cts = program.transpose([next(given) if f else None for f in out_nz])
        return [zeros(a) if c is None else c for c, a in zip(cts, program.in_avals)], [True] * len(cts)

    return back


def back_program(closed: ClosedJaxpr, nz: tuple, out_nz: tuple) -> ClosedJaxpr:
    """The program of the transpose; it returns the cotangents of the primals marked `nz`."""
    key = ("custom_vmap_back", nz, out_nz)
    found = closed.memo.get(key)
    if found is None:
        n = len(nz)

        def back(*args):
            given = iter(args[n:])
            _, program = linearize(lambda *xs: eval_closed(closed, *xs), args[:n], nz)
            cts = program.transpose([next(given) if f else None for f in out_nz])
            return [zeros(a) if c is None else c for c, a in zip(cts, program.in_avals)]

        avals = [*closed.in_avals, *[tangent_aval(a) for a, f in zip(closed.out_avals, out_nz) if f]]
        found = closed.memo[key] = stage_closed(back, avals, closed.jaxpr.debug_info)
    return found


def call_custom_vmap(function, rule: Rule, args, name: str, debug) -> list:
    """Call a flat function that has a user's vmap rule, in the trace of its arguments."""
    if top_trace(args) is None:
        return function(*args)
    closed, consts = stage_open(function, [a.aval for a in args], debug)
    k = len(consts)
    return bind(
        custom_vmap_call_p,
        [*consts, *args],
        {
            "call_jaxpr": closed,
            "rule": lambda size, batched, xs: rule(size, batched[k:], xs[k:]),
            "num_consts": k,
            "name": name,
        },
    )
