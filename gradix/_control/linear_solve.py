"""`linear_solve_p`: solves a linear system by the user's solver; derivatives are implicit."""

from __future__ import annotations

from gradix._control.custom_jvp import axis_of
from gradix._core.divisions import entries
from gradix._core.jaxpr import axis_names
from gradix._core.primitive import MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import add_any, instantiate, to_axis
from gradix._transforms.batch import batch_jaxpr
from gradix._transforms.jvp import jvp_jaxpr
from gradix._transforms.linearize import linear_program
from gradix._transforms.staging import eval_closed


class LinearSolve(Primitive):
    """Solves `matvec(x) = b`; its operands are the constants of the three programs, then b.

    The programs are matvec, solve and transpose_solve. Each takes its constants, then vectors;
    `counts` says how many constants each has. `negate` is passed in because this layer has no
    arithmetic.
    """

    mesh = MeshTraits(linear="last")
    costly = True
    multiple_results = True
    named = True

    def names(self, params):
        return axis_names(params["solve"].effects | params["matvec"].effects)

    def abstract(self, *avals, solve, **_):
        return solve.out_avals

    def divide(self, mesh, avals, outs, params):
        return [entries(o) for o in outs]  # the solving program has typed its results already

    def run(self, args, params):
        return self._solve(args, **params)

    def split(self, args, counts):
        """The constants of matvec, solve and transpose_solve, and the right-hand side."""
        parts, at = [], 0
        for n in counts:
            parts.append(list(args[at : at + n]))
            at += n
        return (*parts, list(args[at:]))

    def _solve(self, args, *, solve, counts, **_):
        _, s_consts, _, b = self.split(args, counts)
        return eval_closed(solve, *s_consts, *b)

    def jvp(self, primals, tangents, *, matvec, counts, negate, n_x, **params):
        params = {**params, "matvec": matvec, "counts": counts, "negate": negate, "n_x": n_x}
        outs = bind(self, primals, params)
        x = outs[:n_x]
        consts, _, _, b = self.split(primals, counts)
        t_consts, _, _, t_b = self.split(tangents, counts)
        rhs = list(t_b)
        if any(t is not None for t in t_consts):  # A·x' = b' - A'·x
            both, nonzero = jvp_jaxpr(matvec, tuple([t is not None for t in t_consts] + [False] * n_x))
            got = eval_closed(both, *consts, *x, *[t for t in t_consts if t is not None])
            moved = iter(got[n_x:])
            change = [next(moved) if nz else None for nz in nonzero]
            rhs = [t if c is None else negate(c) if t is None else add_any(t, negate(c)) for t, c in zip(rhs, change)]
        if all(t is None for t in rhs):
            return outs, [None] * len(outs)
        rhs = [instantiate(t, v.aval) for t, v in zip(rhs, b)]
        ts = bind(self, [*primals[: sum(counts)], *rhs], params)
        return outs, [*ts[:n_x], *[None] * (len(outs) - n_x)]

    def transpose(self, cts, *args, vecmat, transpose_solve, matvec, solve, counts, n_x, **params):
        if transpose_solve is None:
            raise TypeError(
                "transpose_solve required for backwards mode automatic differentiation of "
                "custom_linear_solve. Pass transpose_solve, or symmetric=True when the matrix is."
            )
        consts, s_consts, t_consts, b = self.split(args, counts)
        ct = [instantiate(c, v.aval) for c, v in zip(cts[:n_x], b)]
        outs = bind(
            self,
            [*consts, *t_consts, *s_consts, *ct],
            {
                "matvec": vecmat,
                "vecmat": matvec,
                "solve": transpose_solve,
                "transpose_solve": solve,
                "n_x": n_x,
                "counts": (counts[0], counts[2], counts[1]),
                **params,
            },
        )
        return [*[None] * sum(counts), *outs[:n_x]]

    def batch(self, size, args, axes, *, matvec, vecmat, solve, transpose_solve, counts, n_x, **params):
        axis = axis_of(size)
        *c_axes, _ = self.split(axes, counts)
        b_axes = (0,) * n_x
        mapped = {}
        for name, program, own in (
            ("matvec", matvec, c_axes[0]),
            ("vecmat", vecmat, c_axes[0]),
            ("solve", solve, c_axes[1]),
            ("transpose_solve", transpose_solve, c_axes[2]),
        ):
            mapped[name] = (
                None
                if program is None
                else batch_jaxpr(program, axis, (*own, *b_axes), (0,) * len(program.out_avals))[0]
            )
        n = sum(counts)
        args = [*args[:n], *[to_axis(axis.size, x, a, 0) for x, a in zip(args[n:], axes[n:])]]
        outs = bind(self, args, {**mapped, "counts": counts, "n_x": n_x, **params})
        return outs, [0] * len(outs)

    def lower(self, em, outs, *args, solve, counts, **_):
        _, s_consts, _, b = self.split(args, counts)
        return em.inline(solve.jaxpr, solve.consts, [*s_consts, *b])


linear_solve_p = LinearSolve("custom_linear_solve")


def transposed(closed, consts, avals):
    """The transpose of the linear function `closed(*consts, ·)`, as a function on lists."""
    program = linear_program(lambda *xs: eval_closed(closed, *consts, *xs), avals)
    return lambda *cts: [instantiate(c, a) for c, a in zip(program.transpose(list(cts)), avals)]
