"""The bodies of a scan in reverse mode: the known part, the linear part, and its transpose."""

from __future__ import annotations

from gradix._control.inner_programs import dependent, rearranged
from gradix._control.residuals import thinned
from gradix._core.effects import is_kept
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._ops.basis import add_any_p
from gradix._transforms.dce import dce_jaxpr
from gradix._transforms.linearize import Split, transpose_with_refs
from gradix._transforms.staging import eval_closed


class LinearPlan:
    """The linear scan's body, and the sources of its residuals.

    A source is ("in", i), ("out", i) or ("fixed", i). The body takes the residuals `fixed`, which
    are equal in each step, before the constants, and the residuals `rows` before the stacked
    tangents. `known_consts` are the sources of the known scan's constants.
    """

    __slots__ = ("body", "fixed", "rows", "known_consts")

    def __init__(self, body, fixed, rows, known_consts):
        self.body, self.fixed, self.rows, self.known_consts = body, fixed, rows, known_consts


def linear_body(cut: Split, nc: int, nk: int) -> tuple[ClosedJaxpr, ClosedJaxpr | None, LinearPlan]:
    """The known and the linear scan of a body that was split.

    Returns:
        the known body, which stacks residuals; the program that computes the residuals equal in
        each step, or None; and the plan of the linear scan.
    """
    key = ("scan_linear", nc, nk)
    found = cut.known.memo.get(key)
    if found is None:
        found = cut.known.memo[key] = _linear_body(cut, nc, nk)
    return found


def _linear_body(cut: Split, nc: int, nk: int):
    varying = dependent(cut.known, (*[False] * nc, *[True] * (len(cut.known.jaxpr.invars) - nc)))
    cut = thinned(cut, lambda kind, i: not nc <= i < nc + nk if kind == "in" else nk <= i < cut.n_out or not varying[i])
    jaxpr, n_in, n_out = cut.known.jaxpr, len(cut.known.jaxpr.invars), cut.n_out
    varying = dependent(cut.known, (*[False] * nc, *[True] * (n_in - nc)))
    outvars, hoisted, places = list(jaxpr.outvars[:n_out]), [], {}
    fixed, rows, slots = [], [], []  # slots: the list that holds a residual, and its position there

    def source(kind, i):
        """The source of a residual: an operand, a stacked result, or a value equal in each step."""
        if kind == "in":
            if i < nc:
                return fixed, ("in", i)
            if i >= nc + nk:
                return rows, ("in", i)
            var = jaxpr.invars[i]
        else:
            var = jaxpr.outvars[i]
            if not varying[i] and type(var) is not Literal:
                places.setdefault(var, ("fixed", len(hoisted)))
                if places[var] == ("fixed", len(hoisted)):
                    hoisted.append(var)
                return fixed, places[var]
            if nk <= i < n_out:
                return rows, ("out", i)
        place = places.get(var)
        if place is None:
            place = places[var] = ("out", len(outvars))
            outvars.append(var)
        return rows, place

    for kind, i in cut.sources:
        part, place = source(kind, i)
        slots.append((part is rows, len(part)))
        part.append(place)
    known, known_consts = _known_body(jaxpr, outvars, hoisted, nc)
    fixed_program = None
    if hoisted:
        whole = Jaxpr(jaxpr.constvars, jaxpr.invars[:nc], hoisted, [e for e in jaxpr.eqns if not is_kept(e.effects)])
        fixed_program = ClosedJaxpr(dce_jaxpr(whole, keep_inputs=True)[0], cut.known.consts)
    plan = LinearPlan(_ordered(cut, slots, nc, nk), fixed, rows, known_consts)
    return ClosedJaxpr(known, cut.known.consts), fixed_program, plan


def _known_body(jaxpr: Jaxpr, outvars, hoisted, nc: int) -> tuple[Jaxpr, list]:
    """The known body, which takes hoisted values as constants, and the sources of its constants."""
    if not hoisted:
        return jaxpr.replace(outvars=outvars), [("in", i) for i in range(nc)]
    outside = set(hoisted)
    eqns = [e for e in jaxpr.eqns if is_kept(e.effects) or not outside.issuperset(e.outvars)]
    consts = [*jaxpr.invars[:nc], *hoisted]
    sources = [*[("in", i) for i in range(nc)], *[("fixed", i) for i in range(len(hoisted))]]
    needed, used = dce_jaxpr(Jaxpr(jaxpr.constvars, [*consts, *jaxpr.invars[nc:]], outvars, eqns))
    invars = [*[v for v, u in zip(consts, used) if u], *jaxpr.invars[nc:]]
    return Jaxpr(jaxpr.constvars, invars, outvars, needed.eqns, debug_info=jaxpr.debug_info), [
        source for source, u in zip(sources, used) if u
    ]


def _ordered(cut: Split, slots, nc: int, nk: int) -> ClosedJaxpr:
    """The linear program with inputs in the order of a scan.

    The order is: fixed residuals, tangents of constants, tangents of the carry, residual rows,
    tangents of rows.
    """
    n_res = len(cut.sources)
    fixed = sorted([(at, i) for i, (is_row, at) in enumerate(slots) if not is_row])
    rows = sorted([(at, i) for i, (is_row, at) in enumerate(slots) if is_row])
    c, k = sum(cut.nonzero[:nc]), sum(cut.nonzero[nc : nc + nk])
    total = n_res + sum(cut.nonzero)
    ins = [*[i for _, i in fixed], *range(n_res, n_res + c + k), *[i for _, i in rows], *range(n_res + c + k, total)]
    return rearranged(cut.linear, ins)


def invariants(program: ClosedJaxpr | None, consts) -> list:
    """The residuals that are equal in each step; they are computed once, outside of the loop."""
    return eval_closed(program, *consts) if program is not None else []


def transposed_body(closed: ClosedJaxpr, linear: tuple, ct_nonzero: tuple, nc: int, nk: int):
    """The body of the backward scan, flags of the operands whose cotangents may be nonzero, and refs.

    Its constants are the known constants. Its carry holds the values of the refs that rules of the
    user use, then the summed cotangents of the constants, then the cotangents of the carry. Its
    rows are the known rows, then the cotangents of the stacked results; it returns rows of the
    cotangents of rows.
    """
    key = ("scan_transpose", linear, ct_nonzero, nc, nk)
    found = closed.memo.get(key)
    if found is None:
        found = closed.memo[key] = _transposed_body(closed, linear, ct_nonzero, nc, nk)
    return found


def _transposed_body(closed, linear, ct_nonzero, nc, nk):
    back, live_cts, refs = transpose_with_refs(closed, linear, ct_nonzero)
    jaxpr, n_known = back.jaxpr, len(linear) - sum(linear)
    alive = iter(live_cts)
    live = [next(alive) if is_lin else False for is_lin in linear]
    # the cotangent of a carry stays in the backward carry even where it is zero
    live[nc : nc + nk] = linear[nc : nc + nk]
    cts = iter(jaxpr.outvars)
    ct_of = [next(cts) if is_lin else None for is_lin in linear]
    known_c = nc - sum(linear[:nc])
    n_carry = sum(linear[nc : nc + nk])
    n_own = len(jaxpr.invars) - len(refs)
    known, given, held = jaxpr.invars[:n_known], jaxpr.invars[n_known:n_own], jaxpr.invars[n_own:]
    eqns, sums_in, sums_out = list(jaxpr.eqns), [], []
    for ct, alive_ct in zip(ct_of[:nc], live[:nc]):
        if alive_ct:
            before, after = Var(ct.aval), Var(ct.aval)
            eqns.append(JaxprEqn(add_any_p, [before, ct], [after], {}))
            sums_in.append(before)
            sums_out.append(after)
    invars = [*known[:known_c], *held, *sums_in, *given[:n_carry], *known[known_c:], *given[n_carry:]]
    outvars = [
        *[next(cts) if is_written else v for v, (_, is_written) in zip(held, refs)],
        *sums_out,
        *[c for c in ct_of[nc : nc + nk] if c is not None],
        *[c for c, a in zip(ct_of[nc + nk :], live[nc + nk :]) if a],
    ]
    body = Jaxpr(jaxpr.constvars, invars, outvars, eqns, jaxpr.effects, jaxpr.debug_info)
    return ClosedJaxpr(body, back.consts), live, refs
