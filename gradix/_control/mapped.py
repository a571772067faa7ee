"""`mapped_p`: a program mapped over the first axis of its operands, whose sizes differ by example.

A count that differs among the examples of `vmap` is no size of the batch. So the mapped function is
kept as a program, which derivatives transform as it is; it is batched when it is lowered, after
masking has replaced its sizes by their bounds.
"""

from __future__ import annotations

from gradix._control.inner_programs import dependent, stacked
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.primitive import Linear, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import move_axis, reduce_sum, to_front
from gradix._transforms.batch import AxisData, batch
from gradix._transforms.dce import dce_closed
from gradix._transforms.jvp import jvp_jaxpr
from gradix._transforms.linearize import linearize_jaxpr, transpose_jaxpr
from gradix._transforms.staging import eval_closed, stage_closed


class Mapped(Primitive):
    """The program `jaxpr` for each of `size` examples; `in_axes` holds 0 for mapped operands or None.

    All its results are mapped along their first axis.
    """

    multiple_results = True
    effectful = True

    def abstract(self, *avals, jaxpr, size, in_axes):
        return [stacked(size, a) for a in jaxpr.out_avals]

    def effects(self, params):
        return params["jaxpr"].effects

    def dependent(self, marks, params, smooth):
        return dependent(params["jaxpr"], tuple(marks), smooth)

    def jvp(self, primals, tangents, *, jaxpr, size, in_axes):
        nonzero = tuple([t is not None for t in tangents])
        both, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
        outs = bind(
            self,
            [*primals, *[t for t in tangents if t is not None]],
            _params(both, size, (*in_axes, *_marked(in_axes, nonzero))),
        )
        n = len(jaxpr.out_avals)
        given = iter(outs[n:])
        return outs[:n], [next(given) if nz else None for nz in out_nonzero]

    def linearize(self, primals, tangents, *, jaxpr, size, in_axes):
        nonzero = tuple([t is not None for t in tangents])
        split = linearize_jaxpr(jaxpr, nonzero)
        outs = bind(self, primals, _params(split.known, size, in_axes))
        if not any(split.out_nonzero):
            return outs[: split.n_out], [None] * split.n_out
        residual_axes = [in_axes[i] if kind == "in" else 0 for kind, i in split.sources]
        ts = bind(
            self,
            [*split.residuals(primals, outs), *[t for t in tangents if t is not None]],
            _params(split.linear, size, (*residual_axes, *_marked(in_axes, nonzero))),
        )
        given = iter(ts)
        return outs[: split.n_out], [next(given) if nz else None for nz in split.out_nonzero]

    def transpose(self, cts, *args, jaxpr, size, in_axes):
        linear = tuple([type(a) is Linear for a in args])
        nonzero = tuple([c is not None for c in cts])
        back, live = transpose_jaxpr(jaxpr, linear, nonzero)
        known = [a for a, is_lin in zip(args, linear) if not is_lin]
        known_axes = _marked(in_axes, [not is_lin for is_lin in linear])
        given_cts = [c for c in cts if c is not None]
        outs = bind(self, [*known, *given_cts], _params(back, size, (*known_axes, *[0] * len(given_cts))))
        # an operand that all examples share gets the sum of their cotangents
        outs = [
            None if not alive else o if axis == 0 else reduce_sum(o, (0,))
            for o, alive, axis in zip(outs, live, _marked(in_axes, linear))
        ]
        given = iter(outs)
        return [next(given) if is_lin else None for is_lin in linear]

    def batch(self, outer, args, axes, *, jaxpr, size, in_axes):
        args = [x if a is None else to_front(outer, x, a) for x, a in zip(args, axes)]
        row = [x.aval if a is None else x.aval.update(shape=x.aval.shape[1:]) for x, a in zip(args, axes)]
        each = stage_closed(lambda *xs: bind(self, list(xs), _params(jaxpr, size, in_axes)), row)
        outs = bind(self, args, _params(each, outer, tuple([None if a is None else 0 for a in axes])))
        return outs, [0] * len(outs)

    def expand(self, *args, jaxpr, size, in_axes):
        outs, axes = batch(lambda *xs: eval_closed(jaxpr, *xs), AxisData(None, size), args, in_axes)
        return [to_front(size, o, a) for o, a in zip(outs, axes)]

    def dce(self, used, eqn):
        jaxpr, used_inputs = dce_closed(eqn.params["jaxpr"], tuple(used))
        return eqn.replace(
            invars=[v for v, u in zip(eqn.invars, used_inputs) if u],
            outvars=[v for v, u in zip(eqn.outvars, used) if u],
            params=_params(jaxpr, eqn.params["size"], _marked(eqn.params["in_axes"], used_inputs)),
        )


mapped_p = Mapped("mapped")


def _params(jaxpr: ClosedJaxpr, size, axes) -> dict:
    return {"jaxpr": jaxpr, "size": size, "in_axes": tuple(axes)}


def _marked(axes, marks) -> tuple:
    return tuple([a for a, is_marked in zip(axes, marks) if is_marked])


def mapped(closed: ClosedJaxpr, size, args, axes) -> list:
    """The results of a program for each example, stacked along a first axis.

    Args:
        axes: for each argument the axis of the examples, or None if all share it.
    """
    args = [x if a is None else move_axis(x, a, 0) for x, a in zip(args, axes)]
    return bind(mapped_p, args, _params(closed, size, [None if a is None else 0 for a in axes]))


def mapped_jaxpr(closed: ClosedJaxpr, axis, in_axes: tuple, out_axes) -> tuple:
    """As `batch_jaxpr`, for a program with counts of its own."""
    if axis.name is not None and closed.effects:
        raise NotImplementedError(
            f"vmap over the named axis {axis.name!r} of a function that communicates over it and has sizes that "
            "values decide: these sizes differ among the examples. Leave out axis_name."
        )
    wanted = tuple(out_axes or ("any",) * len(closed.out_avals))
    shared = _shared(closed, in_axes) if "any" in wanted else [False] * len(wanted)
    shared = [s and w == "any" for s, w in zip(shared, wanted)]
    wanted = tuple([None if s else 0 if w in ("any", None) else w for s, w in zip(shared, wanted)])

    def whole(*args):
        if all(shared):
            return eval_closed(closed, *args)
        outs = mapped(closed, axis.size, args, in_axes)
        once = iter(_evaluated(closed, shared, args) if any(shared) else ())
        return [next(once) if s else move_axis(o, 0, w) for o, s, w in zip(outs, shared, wanted)]

    avals = [
        v if a is None else v.update(shape=(*v.shape[:a], axis.size, *v.shape[a:]))
        for v, a in zip(closed.in_avals, in_axes)
    ]
    return stage_closed(whole, avals), wanted


def _shared(closed: ClosedJaxpr, in_axes) -> list[bool]:
    """Which results are the same for all examples; none if a size differs among them."""
    n, jaxpr = len(closed.out_avals), closed.jaxpr
    sizes = [e.outvars[0] for e in jaxpr.eqns if e.primitive.defines_size]
    with_sizes = ClosedJaxpr(jaxpr.replace(outvars=[*jaxpr.outvars, *sizes]), closed.consts)
    marks = dependent(with_sizes, tuple([a is not None for a in in_axes]))
    return [False] * n if any(marks[n:]) else [not m for m in marks[:n]]


def _evaluated(closed: ClosedJaxpr, marks, args) -> list:
    """The marked results of a program."""
    part, used = dce_closed(closed, tuple(marks))
    return eval_closed(part, *[x for x, u in zip(args, used) if u])
