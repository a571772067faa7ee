"""`linear_call_p`: a linear function for which the user defined the transpose."""

from __future__ import annotations

from gradix._control.custom_jvp import axis_of
from gradix._core.divisions import entries
from gradix._core.jaxpr import axis_names
from gradix._core.primitive import Linear, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import instantiate, to_axis
from gradix._transforms.batch import batch_jaxpr
from gradix._transforms.staging import eval_closed


class LinearCall(Primitive):
    """A call of `callee`; its operands are `n_res` residuals, then the linear operands.

    The program `transpose` takes the residuals and cotangents of the results, and returns
    cotangents of the linear operands. The transpose of a call is a call with both exchanged.
    """

    multiple_results = True
    named = True

    def names(self, params):
        return axis_names(params["callee"].effects | params["transpose"].effects)

    def abstract(self, *avals, callee, **_):
        return callee.out_avals

    def divide(self, mesh, avals, outs, params):
        return [entries(o) for o in outs]

    def run(self, args, params):
        return eval_closed(params["callee"], *args)

    def jvp(self, primals, tangents, *, n_res, **params):
        if any(t is not None for t in tangents[:n_res]):
            raise NotImplementedError(
                "linear_call is not differentiated with respect to its residuals: pass what has a "
                "derivative among the linear arguments, or stop the gradient with lax.stop_gradient."
            )
        params = {"n_res": n_res, **params}
        outs = bind(self, primals, params)
        if all(t is None for t in tangents):
            return outs, [None] * len(outs)
        ts = [instantiate(t, x.aval) for t, x in zip(tangents[n_res:], primals[n_res:])]
        return outs, bind(self, [*primals[:n_res], *ts], params)

    def transpose(self, cts, *args, callee, transpose, n_res):
        cts = [instantiate(c, a) for c, a in zip(cts, callee.out_avals)]
        params = {"callee": transpose, "transpose": callee, "n_res": n_res}
        back = bind(self, [*args[:n_res], *cts], params)
        pulled = [c if type(x) is Linear else None for c, x in zip(back, args[n_res:])]
        return [*[None] * n_res, *pulled]

    def batch(self, size, args, axes, *, callee, transpose, n_res):
        axis = axis_of(size)
        res = axes[:n_res]
        args = [*args[:n_res], *[to_axis(axis.size, x, a, 0) for x, a in zip(args, axes)][n_res:]]
        counts = len(callee.out_avals), len(transpose.out_avals)
        wide, back = (
            batch_jaxpr(program, axis, (*res, *[0] * n_in), (0,) * n_out)[0]
            for program, n_in, n_out in ((callee, counts[1], counts[0]), (transpose, *counts))
        )
        outs = bind(self, args, {"callee": wide, "transpose": back, "n_res": n_res})
        return outs, [0] * len(outs)

    def lower(self, em, outs, *args, callee, **_):
        return em.inline(callee.jaxpr, callee.consts, list(args))


linear_call_p = LinearCall("linear_call")
