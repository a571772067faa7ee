"""Solutions differentiated implicitly: custom_root, custom_linear_solve; and stop_gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradix._api.boundary import Flat, arrays, positional
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten, treedef_tuple
from gradix._control.custom_jvp import call_custom_jvp
from gradix._control.linear_solve import linear_solve_p, transposed
from gradix._core.array import as_array
from gradix._core.aval import joined, same_types
from gradix._core.jaxpr import no_debug
from gradix._core.operators import Array
from gradix._core.trace import bind, varying_over
from gradix._ops.basis import instantiate, is_differentiable
from gradix._ops.complex_parts import neg
from gradix._ops.markers import stop_gradient_p
from gradix._transforms.dce import without_dead
from gradix._transforms.jvp import jvp as _jvp
from gradix._transforms.linearize import trace_for
from gradix._transforms.staging import eval_closed, stage_open

T = TypeVar("T")


def stop_gradient(x: T) -> T:
    """`x`, with a derivative of zero.

    Args:
        x: a pytree of arrays and numbers; those that are not floating are returned as they are.

    Raises:
        TypeError: a leaf is neither an array nor a number.

    Example:
        >>> import gradix
        >>> gradix.grad(lambda x: x * gradix.lax.stop_gradient(x))(3.0)
        Array(3., dtype=float32, weak_type=True)
        >>> gradix.grad(lambda p: p["a"] * gradix.lax.stop_gradient(p)["b"])({"a": 2.0, "b": 5.0})
        {'a': Array(5., dtype=float32, weak_type=True), 'b': Array(0., dtype=float32, weak_type=True)}

    See also:
        `gradix.checkpoint`, `gradix.custom_vjp`, `gradix.grad`.
    """
    leaves, tree = flatten(x)
    return tree.unflatten([_stopped(a) for a in leaves])


def _stopped(x):
    if type(x) in (bool, int, float, complex):
        return x
    if not isinstance(x, Array):
        x = as_array(x)
    return bind(stop_gradient_p, (x,), {}) if is_differentiable(x.aval) else x


def _flat(name: str, function: Callable, tree) -> Flat:
    """A function of one pytree as one of its leaves."""
    return Flat(function, name, positional(treedef_tuple((tree,))).unflatten)


def _check_same(name: str, what: str, got_tree, got, tree, avals) -> None:
    by_tree = got_tree != tree and len(got) == len(avals)
    kind = TypeError if by_tree or name == "custom_root" else ValueError
    if got_tree != tree or not same_types([a.strip_weak_type() for a in got], [a.strip_weak_type() for a in avals]):
        raise kind(
            f"{name}: the output of {what} must have the structure, shapes and dtypes of the vector it is "
            f"given: expected {tree} with {[str(a) for a in avals]}, got {got_tree} with "
            f"{[str(a) for a in got]}."
        )


@boundary
def custom_root(
    f: Callable,
    initial_guess: Any,
    solve: Callable[[Callable, Any], Any],
    tangent_solve: Callable[[Callable, Any], Any],
    has_aux: bool = False,
) -> Any:
    """The root of `f` that `solve` finds, differentiated by the implicit function theorem.

    Args:
        f: a function of one pytree to one of the same structure; it may close over values to
            differentiate in.
        initial_guess: a pytree of arrays, where `solve` starts.
        solve: `solve(f, initial_guess)` returns the root (with `has_aux` a pair of it and auxiliary
            data).
        tangent_solve: `tangent_solve(g, y)` returns x with g(x) = y, for g the derivative of `f` at
            the root.
        has_aux: `solve` returns `(root, auxiliary data)`; so does the function.

    Returns:
        The root, in the structure of `initial_guess`; with `has_aux` a pair of it and the data.

    Raises:
        TypeError: an output has another structure, shape or dtype than `initial_guess`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix import lax
        >>> def sqrt(a):
        ...     newton = lambda f, x: lax.fori_loop(0, 8, lambda _, x: 0.5 * (x + a / x), x)
        ...     return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
        >>> gradix.grad(sqrt)(4.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    leaves, tree = flatten(initial_guess)
    leaves = arrays("custom_root", leaves, tree, "initial_guess")
    avals, aux = [x.aval for x in leaves], {}
    flat = _flat("custom_root", f, tree)
    closed, consts = stage_open(flat, avals)
    _check_same("custom_root", "f", flat.out_tree, closed.out_avals, tree, avals)
    n, k = len(consts), len(leaves)

    def solution(*args):
        cs, guess = args[:n], args[n:]
        answer = solve(
            lambda x: tree.unflatten(eval_closed(closed, *cs, *[as_array(v) for v in flatten(x)[0]])),
            tree.unflatten(guess),
        )
        return _solution("custom_root", answer, has_aux, tree, avals, aux)

    def tangent_solution(*args):
        cs, root, y = args[:n], args[n : n + k], args[n + k :]

        def g(x):
            _, got = _jvp(lambda *v: eval_closed(closed, *cs, *v), root, [as_array(t) for t in flatten(x)[0]])
            return tree.unflatten([instantiate(t, r.aval) for t, r in zip(got, root)])

        return _solution("custom_root", tangent_solve(g, tree.unflatten(y)), False, tree, avals, {})

    # They are staged, so that values they close over are operands without derivatives.
    const_avals = [c.aval for c in consts]
    solver, s_consts = stage_open(solution, [*const_avals, *avals])
    tangent_solver, t_consts = stage_open(tangent_solution, [*const_avals, *avals, *avals])
    tangent_solver = without_dead(tangent_solver)
    m = n + len(s_consts)

    def run(*args):
        return eval_closed(solver, *args[n:m], *args[:n], *args[m + len(t_consts) :])

    def rule(primals, tangents):
        outs = call_custom_jvp(run, rule, primals, "custom_root", no_debug)
        cs, root = primals[:n], outs[:k]
        ts = [t if is_differentiable(p.aval) else None for p, t in zip(cs, tangents)]
        trace = trace_for(ts)
        _, change = _jvp(lambda *c: eval_closed(closed, *c, *root), cs, ts, trace)
        y = [neg(instantiate(c, r.aval)) for c, r in zip(change, root)]
        moved = eval_closed(tangent_solver, *primals[m : m + len(t_consts)], *cs, *root, *y)
        return outs, [*moved, *[None] * (len(outs) - k)]

    outs = call_custom_jvp(run, rule, [*consts, *s_consts, *t_consts, *leaves], "custom_root", no_debug)
    root = tree.unflatten(outs[:k])
    return (root, aux["tree"].unflatten(outs[k:])) if has_aux else root


def _solution(name: str, answer, has_aux: bool, tree, avals, seen: dict) -> list:
    """What a user's solver returned, as leaves; notes the tree of its auxiliary output."""
    x, aux = answer if has_aux else (answer, ())
    xs, got = flatten(x)
    xs = arrays(name, xs, got, "solution")
    _check_same(name, "solve", got, [v.aval for v in xs], tree, avals)
    aux_leaves, seen["tree"] = flatten(aux)
    return xs + arrays(name, aux_leaves, seen["tree"], "auxiliary output")


@boundary
def custom_linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable[[Callable, Any], Any],
    transpose_solve: Callable[[Callable, Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The solution x of `matvec(x) = b` that `solve` finds, differentiated implicitly.

    Args:
        matvec: a linear function of a pytree of the structure of `b`; it may close over values to
            differentiate in.
        b: a pytree of arrays.
        solve: `solve(matvec, b)` returns x (with `has_aux` a pair of it and auxiliary data).
        transpose_solve: `transpose_solve(vecmat, b)` solves the transposed system; reverse mode
            needs it.
        symmetric: the system is its own transpose, so that `solve` serves for both.
        has_aux: `solve` returns `(x, auxiliary data)`; so does the function.

    Returns:
        x, in the structure of `b`; with `has_aux` a pair of it and the data.

    Raises:
        TypeError: an output has another structure than `b`, and as many leaves.
        ValueError: an output has another number of leaves, shape or dtype than `b`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix import lax
        >>> f = lambda a: lax.custom_linear_solve(lambda x: a * x, 6.0, lambda mv, b: b / mv(1.0), symmetric=True)
        >>> f(2.0), gradix.grad(f)(2.0)
        (Array(3., dtype=float32, weak_type=True), Array(-1.5, dtype=float32, weak_type=True))
    """
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, tree = flatten(b)
    leaves = arrays("custom_linear_solve", leaves, tree, "b")
    applied, seen = _flat("custom_linear_solve", matvec, tree), {}
    mv, mv_consts = stage_open(applied, [x.aval for x in leaves])
    vma = joined([a.vma for a in mv.out_avals])
    if any(vma - x.aval.vma for x in leaves):  # its transpose must not sum over the devices of a mesh
        leaves = [varying_over(x, vma) for x in leaves]
        mv, mv_consts = stage_open(applied, [x.aval for x in leaves])
    avals = [x.aval for x in leaves]
    _check_same("custom_linear_solve", "matvec", applied.out_tree, mv.out_avals, tree, avals)
    n, k = len(mv_consts), len(leaves)

    def vecmat_flat(*args):
        return transposed(mv, args[:n], avals)(*args[n:])

    const_avals = [c.aval for c in mv_consts]
    vm = mv if symmetric else stage_open(vecmat_flat, [*const_avals, *avals])[0]

    def solver(user, program):
        if user is None:
            return None, []

        def flat(*args):
            cs, given = args[:n], args[n:]
            answer = user(lambda x: tree.unflatten(eval_closed(program, *cs, *flatten(x)[0])), tree.unflatten(given))
            return _solution("custom_linear_solve", answer, has_aux, tree, avals, seen)

        closed, own = stage_open(flat, [*const_avals, *avals])
        return closed, [*own, *mv_consts]

    s, s_consts = solver(solve, mv)
    t, t_consts = solver(transpose_solve, vm)
    outs = bind(
        linear_solve_p,
        [*mv_consts, *s_consts, *t_consts, *leaves],
        {
            "matvec": mv,
            "vecmat": vm,
            "solve": s,
            "transpose_solve": t,
            "negate": neg,
            "n_x": k,
            "counts": (n, len(s_consts), len(t_consts)),
        },
    )
    x = tree.unflatten(outs[:k])
    return (x, seen["tree"].unflatten(outs[k:])) if has_aux else x
