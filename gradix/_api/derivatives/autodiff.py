"""Derivatives of functions on pytrees: grad, value_and_grad, jvp, vjp, linearize, transposes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from gradix._api.arguments import (
    argument_names,
    as_numbers,
    check_callable,
    is_one_number,
    leaf_names,
    name_of,
    named_as,
)
from gradix._api.boundary import (
    Flat,
    arrays,
    has_holders,
    opened,
    positional,
    tangents_above,
    values,
    with_values_above,
)
from gradix._api.derivatives.linear_maps import (
    Pullback,
    Pushforward,
    Transpose,
    finished,
    shown_tangent,
    spread_inputs,
    tangent_of,
)
from gradix._api.derivatives.nondiff import (
    Parted,
    any_trees,
    any_values,
    check_nondiff,
    completed,
    refuse_values,
    share_but_of_refs,
    share_of_floats,
    share_of_value,
)
from gradix._api.refs import Lent
from gradix._base.tracebacks import filter_frames
from gradix._base.tree import tree_flatten, tree_structure
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.operators import Array
from gradix._core.refs import Ref
from gradix._ops.basis import full_like_one, is_differentiable, zeros
from gradix._ops.convert import convert_element_type
from gradix._transforms.jvp import jvp as _jvp
from gradix._transforms.linearize import linear_program, linearize as _linearize, trace_for
from gradix._transforms.repeats import is_slope

T = TypeVar("T")
P = ParamSpec("P")

_FLOAT0 = dtypes.float0


def value_and_grad(
    fun: Callable[P, T],
    argnums: int | tuple = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Hashable] = (),
    nondiff: str = "error",
) -> Callable[P, tuple[T, Any]]:
    """A function that returns both `fun(*args)` and its gradient.

    Args:
        fun: a function that returns a scalar (with `has_aux` a pair of it and auxiliary data).
        argnums: the number(s) of the arguments to differentiate in; a tuple gives a tuple of
            gradients.
        has_aux: `fun` returns `(value, aux)`; the result is then `((value, aux), gradient)`.
        holomorphic: `fun` is promised to be complex-differentiable; inputs and output are complex.
        allow_int: integer arguments get gradients of dtype float0.
        reduce_axes: accepted for compatibility.
        nondiff: "skip" accepts leaves that are not floats (ints, strings, functions). They are
            passed on unchanged, and the gradient has None in their places.

    Returns:
        A function with the arguments of `fun` that returns `(value, gradient)`; the gradient has
        the structure, shapes and dtypes of the argument.

    Raises:
        TypeError: the output is not a scalar, or an argument has no derivative, which the message
            names.

    Example:
        >>> import gradix
        >>> gradix.value_and_grad(lambda x: x ** 2)(3.0)
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
        >>> def loss(w, x):
        ...     return (w * x - 1.0) ** 2, {"prediction": w * x}
        >>> (value, aux), slope = gradix.value_and_grad(loss, has_aux=True)(2.0, 3.0)
        >>> float(value), float(aux["prediction"]), float(slope)
        (25.0, 6.0, 30.0)

    See also:
        `gradix.grad`, `gradix.vjp`, `gradix.jacrev`.
    """
    check_callable("value_and_grad", fun)
    both = _both(fun, argnums, has_aux, holomorphic, allow_int, nondiff=nondiff)

    @named_as(fun)
    def value_and_grad_f(*args, **kwargs):
        try:
            return both(args, kwargs)
        except Exception as error:
            filter_frames(error)
            raise

    return value_and_grad_f


def _both(
    fun, argnums, has_aux: bool, holomorphic: bool, allow_int: bool, *, nondiff: str = "error"
) -> Callable[[tuple, dict], tuple]:
    """`value_and_grad` of `fun` as a function of its positional and named arguments."""
    numbers, single = as_numbers("argnums", argnums), is_one_number(argnums)
    skips = nondiff != "error" and check_nondiff(nondiff)

    def in_parts(args, kwargs):
        parted = Parted(args, numbers, share_of_floats if skips else share_of_value)
        function = functools.wraps(fun)(parted.function(fun))
        both_of_parts = _both(function, numbers, has_aux, holomorphic, allow_int)
        value, gradients = both_of_parts(parted.args, kwargs)
        gradient = tuple([parted.spread(n, g) for n, g in zip(numbers, gradients)])
        return value, gradient[0] if single else gradient

    def both(args, kwargs):
        if skips or values and any_values([args[n] for n in numbers if n < len(args)]):
            return in_parts(args, kwargs)
        flat, leaves, trees = differentiated("grad", fun, args, kwargs, numbers, has_aux)
        check_inputs(fun, args, numbers, leaves, holomorphic, allow_int)
        active = [is_differentiable(x.aval) for x in leaves]
        outs, program = _linearize(flat, leaves, active, named=True)
        if has_aux:
            outs, aux = flat.split_aux(outs)
        check_scalar("grad", flat.out_tree, outs, holomorphic)
        (y,) = outs
        one, rest = full_like_one(y.aval), [None] * (len(program.outs) - 1)
        cts = iter(program.apply([one])[:1] if is_slope(program, leaves) else program.transpose([one, *rest]))
        grads = iter(
            [finished(None, x.aval) if not a or (ct := next(cts)) is None else ct for x, a in zip(leaves, active)]
        )
        parts = [tree.unflatten([next(grads) for _ in range(tree.num_leaves)]) for tree in trees]
        gradient = parts[0] if single else tuple(parts)
        value = flat.out_tree.unflatten(outs)
        return ((value, aux), gradient) if has_aux else (value, gradient)

    return both


def grad(
    fun: Callable[P, Any],
    argnums: int | tuple = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Hashable] = (),
    nondiff: str = "error",
) -> Callable[P, Any]:
    """The gradient of a scalar function; arguments as for `value_and_grad`.

    Args:
        fun: a function whose value is a real scalar.
        argnums: the position, or positions, of the arguments to differentiate in.
        has_aux: `fun` returns `(value, aux)`.
        holomorphic: `fun` is a holomorphic function of complex arguments, with a complex value.
        allow_int: accept integers, whose gradient is of dtype float0.
        reduce_axes: accepted for compatibility.
        nondiff: "skip" accepts leaves that are not floats. They are passed on unchanged, and the
            gradient has None in their places.

    Returns:
        A function with the arguments of `fun` that returns the gradient, or `(gradient, aux)` with
        `has_aux`. The gradient has the structure, shapes and dtypes of the argument.

    Raises:
        TypeError: the output is not a scalar, or an argument has no derivative, which the message
            names.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.grad(jnp.tanh)(0.0)
        Array(1., dtype=float32, weak_type=True)
        >>> gradix.grad(lambda p, x: (p["w"] * x + p["b"]) ** 2)({"w": 2.0, "b": 1.0}, 3.0)
        {'b': Array(14., dtype=float32, weak_type=True), 'w': Array(42., dtype=float32, weak_type=True)}

    See also:
        `gradix.value_and_grad`, `gradix.jacrev`, `gradix.hessian`, `gradix.vjp`, `gradix.jvp`.
    """
    check_callable("grad", fun)
    both = _both(fun, argnums, has_aux, holomorphic, allow_int, nondiff=nondiff)

    @named_as(fun)
    def grad_f(*args, **kwargs):
        try:
            value, gradient = both(args, kwargs)
            return (gradient, value[1]) if has_aux else gradient
        except Exception as error:
            filter_frames(error)
            raise

    return grad_f


@overload
def jvp(
    fun: Callable[..., T], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[T, Any]: ...


@overload
def jvp(
    fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]
) -> tuple[Any, Any, Any]: ...


def jvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False):
    """The value of `fun` at `primals`, and its derivative along `tangents`.

    Args:
        fun: a function of as many positional arguments as there are primals.
        primals, tangents: tuples or lists, of one structure, shape and dtype; integer primals take
            float0 tangents, and mutable arrays take mutable arrays, to which `fun` writes too.
        has_aux: `fun` returns `(value, aux)`, and aux is not differentiated.

    Returns:
        `(value, tangent)`, with `has_aux` `(value, tangent, aux)`.

    Raises:
        TypeError: `primals` or `tangents` is not a tuple or list, or they differ in structure or
            dtype.
        ValueError: a tangent has another shape than its primal.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.jvp(jnp.sin, (0.0,), (2.0,))
        (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    try:
        check_callable("jvp", fun)
        for what, x in (("primals", primals), ("tangents", tangents)):
            if not isinstance(x, (tuple, list)):
                raise TypeError(
                    f"{what} arguments to jvp must be tuples or lists; found {type(x).__name__}. "
                    "Wrap a single argument, as in jvp(f, (x,), (t,))."
                )
        if values and any_trees(primals):
            parted = Parted(tuple(primals), range(len(primals)), share_of_value)
            along = Parted(tuple(tangents), range(len(tangents)), share_of_value)
            return jvp(parted.function(fun), parted.args, along.args, has_aux)  # type: ignore[call-overload]
        above = with_values_above(tuple(primals)) if values else None
        if above is not None and not has_holders(opened(tuple(primals))[0]):
            return _jvp_above(fun, *above, tuple(tangents), has_aux)
        leaves, tree = opened(tuple(primals))
        t_leaves, t_tree = opened(tuple(tangents))
        if tree != t_tree:
            raise TypeError(
                f"primal and tangent arguments to jvp must have the same tree structure; primals have tree "
                f"structure {tree} whereas tangents have tree structure {t_tree}."
            )
        lent = lent_t = None
        if has_holders(leaves) or has_holders(t_leaves):
            _check_holders(leaves, t_leaves)
            lent, lent_t = Lent(name_of(fun), leaves), Lent("the tangents of jvp", t_leaves)
            leaves, t_leaves = lent.open(leaves), lent_t.open(t_leaves)
            leaves = arrays("jvp", leaves, tree_structure(leaves), "primals")
        else:
            leaves = arrays("jvp", leaves, tree, "primals")
        ts = [tangent_of("jvp", x.aval, t, i) for i, (x, t) in enumerate(zip(leaves, t_leaves))]
        flat = Flat(fun, name_of(fun), positional(tree).unflatten, has_aux, lent=lent)
        ys, out_ts = _jvp(flat, leaves, ts, trace_for(ts), named=True)
        if lent is not None and lent_t is not None:
            out_ts = lent_t.close([shown_tangent(t, y.aval) for t, y in zip(out_ts, ys)])
            ys = lent.close(ys)
        if has_aux:
            ys, aux = flat.split_aux(ys)
        out_ts = [shown_tangent(t, y.aval) for t, y in zip(out_ts, ys)]
        out = flat.out_tree.unflatten(ys)
        along_it = completed(out, tangents_above(flat.out_tree, out_ts)) if values else flat.out_tree.unflatten(out_ts)
        return (out, along_it, aux) if has_aux else (out, along_it)
    except Exception as error:
        filter_frames(error)
        raise


def _jvp_above(fun: Callable, leaves: list, tree, tangents: tuple, has_aux: bool):
    """`jvp` at arguments of which some leaves are values of types above arrays, as are their tangents."""
    t_leaves, t_tree = with_values_above(tangents) or tree_flatten(tangents)
    if t_tree != tree:
        raise TypeError(
            f"primal and tangent arguments to jvp must have the same tree structure; primals have tree "
            f"structure {tree} whereas tangents have tree structure {t_tree}."
        )
    shares = [share_of_value(x) for x in leaves]
    operands = [x if s is None else s.operands for x, s in zip(leaves, shares)]
    ts = [t if s is None else _arrays_along(x, t, len(s.operands)) for x, t, s in zip(leaves, t_leaves, shares)]

    def function(parts):
        return fun(*tree.unflatten([p if s is None else s.inside(p) for p, s in zip(parts, shares)]))

    return jvp(named_as(fun)(function), (operands,), (ts,), has_aux)  # type: ignore[call-overload]


def _arrays_along(x: Any, tangent: Any, n: int) -> list:
    """The tangents of the arrays in which a value of a type above arrays has derivatives."""
    node = values[type(x)].node(x)
    found = values[type(node)].cotangent(node, tangent)  # type: ignore[misc]
    return found[len(found) - n :]


def _check_holders(leaves: list, tangents: list) -> None:
    for i, (x, t) in enumerate(zip(leaves, tangents)):
        if isinstance(x, Ref) != isinstance(t, Ref):
            raise TypeError(
                f"jvp: the tangent of a mutable array is a mutable array, but leaf {i} of the "
                f"primals is {x!r}, and that of the tangents is {t!r}."
            )


@overload
def vjp(
    fun: Callable[..., T], *primals: Any, has_aux: Literal[False] = False, reduce_axes: Any = ()
) -> tuple[T, Callable[..., Any]]: ...


@overload
def vjp(
    fun: Callable, *primals: Any, has_aux: Literal[True], reduce_axes: Any = ()
) -> tuple[Any, Callable[..., Any], Any]: ...


def vjp(fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Hashable] = ()):
    """The value of `fun` at `primals`, and the function that pulls cotangents back.

    Args:
        fun: the function.
        primals: its arguments. Mutable arrays among them are constants: their cotangents are refs
            of zeros.
        has_aux: `fun` returns `(value, aux)`.
        reduce_axes: accepted for compatibility.

    Returns:
        `(value, vjp_fun)`, with `has_aux` `(value, vjp_fun, aux)`; `vjp_fun(ct)` returns a tuple
        with a cotangent for each of `primals`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> y, pull = gradix.vjp(jnp.sin, 0.0)
        >>> pull(2.0)
        (Array(2., dtype=float32, weak_type=True),)
    """
    try:
        check_callable("vjp", fun)
        leaves, tree = opened(primals)
        if (values and any_values(primals)) or any(isinstance(x, Ref) for x in leaves):
            mixed = Parted(primals, range(len(primals)), share_but_of_refs)
            out, pull_carried, *aux = vjp(mixed.function(fun), *mixed.args, has_aux=has_aux)  # type: ignore[call-overload]
            return (out, lambda ct: tuple([mixed.spread(n, g) for n, g in enumerate(pull_carried(ct))]), *aux)
        leaves = arrays("vjp", leaves, tree, "primals")
        flat = Flat(fun, name_of(fun), positional(tree).unflatten, has_aux)
        ys, program = _linearize(flat, leaves, [is_differentiable(x.aval) for x in leaves], named=True)
        if has_aux:
            ys, aux = flat.split_aux(ys)
        pull = Pullback(
            spread_inputs(program, leaves),
            tree,
            flat.out_tree,
            [x.aval for x in leaves],
            [y.aval for y in ys],
            args=leaves,
        )
        out = flat.out_tree.unflatten(ys)
        return (out, pull, aux) if has_aux else (out, pull)
    except Exception as error:
        filter_frames(error)
        raise


@overload
def linearize(
    fun: Callable[..., T], *primals: Any, has_aux: Literal[False] = False
) -> tuple[T, Callable[..., Any]]: ...


@overload
def linearize(fun: Callable, *primals: Any, has_aux: Literal[True]) -> tuple[Any, Callable[..., Any], Any]: ...


def linearize(fun: Callable, *primals: Any, has_aux: bool = False):
    """The value of `fun` at `primals`, and its derivative there as a linear function of tangents.

    The work that does not depend on the tangents is done once, here.

    Args:
        fun: the function.
        primals: its arguments.
        has_aux: `fun` returns `(value, aux)`.

    Returns:
        `(value, f_jvp)`, with `has_aux` `(value, f_jvp, aux)`; `f_jvp` takes a tangent for each of
        `primals`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> y, f_jvp = gradix.linearize(jnp.sin, 0.0)
        >>> f_jvp(3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    try:
        check_callable("linearize", fun)
        if values:
            refuse_values("linearize", primals)
            if any_trees(primals):
                return _linearize_parted(fun, primals, has_aux)
        leaves, tree = opened(primals)
        leaves = arrays("linearize", leaves, tree, "primals")
        flat = Flat(fun, name_of(fun), positional(tree).unflatten, has_aux)
        ys, program = _linearize(flat, leaves, [is_differentiable(x.aval) for x in leaves], named=True)
        if has_aux:
            ys, aux = flat.split_aux(ys)
        spread = spread_inputs(program, leaves)

        push = Pushforward(spread, tree, flat.out_tree, [x.aval for x in leaves], [y.aval for y in ys])
        out = flat.out_tree.unflatten(ys)
        return (out, push, aux) if has_aux else (out, push)
    except Exception as error:
        filter_frames(error)
        raise


def _linearize_parted(fun: Callable, primals: tuple, has_aux: bool):
    """`linearize` of a function of which the tangents are those of parts of its arguments."""
    numbers = range(len(primals))
    parted = Parted(primals, numbers, share_of_value)
    out, push, *aux = linearize(parted.function(fun), *parted.args, has_aux=has_aux)  # type: ignore[call-overload]

    def along(*tangents):
        return completed(out, push(*Parted(tangents, numbers, share_of_value).args))

    return (out, along, *aux)


def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Sequence[Hashable] = ()) -> Callable:
    """The transpose of a function that is linear; `primals` give only the types of its arguments.

    Args:
        fun: the function.
        primals: arrays, or types of arrays, in place of its arguments.
        reduce_axes: accepted for compatibility.

    Returns:
        A function from a cotangent of the output to a tuple of cotangents of the arguments.

    Raises:
        TypeError: arguments and results are not all floating or complex, nor all integers.
        NotImplementedError: an operation of `fun` is not linear in its arguments.

    Example:
        >>> import gradix
        >>> gradix.linear_transpose(lambda x: 3.0 * x, 0.0)(2.0)
        (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable("linear_transpose", fun)
    leaves, tree = opened(primals)
    avals = [_aval_of(x) for x in leaves]
    flat = Flat(fun, name_of(fun), positional(tree).unflatten)
    program = linear_program(flat, avals)
    out_avals = program.out_avals
    _check_linear_dtypes([a.dtype for a in avals], [a.dtype for a in out_avals])
    if any(a.dtype in dtypes.INTEGER for a in avals):
        return _integer_transpose(program, tree, flat.out_tree)
    return Transpose(program, tree, flat.out_tree, avals, out_avals)


def _integer_transpose(program, tree, out_tree) -> Callable:
    """The transpose of a linear map between integers, whose cotangents are integers, too."""

    def transposed(ct):
        leaves, got = opened(ct)
        if got != out_tree:
            raise TypeError(
                "linear_transpose: the cotangent tree does not match: it must have the structure of the output, "
                f"{out_tree}, got {got}."
            )
        given = zip(arrays("linear_transpose", leaves, got, "cotangent"), program.out_avals)
        cts = program.transpose([convert_element_type(c, a.dtype) for c, a in given])
        return tree.unflatten([zeros(a) if c is None else c for c, a in zip(cts, program.in_avals)])

    return transposed


def _check_linear_dtypes(given: list, made: list) -> None:
    for kind in (dtypes.INEXACT, dtypes.INTEGER):
        if all(d in kind for d in (*given, *made)):
            return
    raise TypeError(
        "linear_transpose only supports [float or complex] -> [float or complex], and integer -> "
        f"integer functions, got {[str(d) for d in given]} -> {[str(d) for d in made]}. Convert the "
        "arguments with .astype, or with functools.partial fix those that are not linear."
    )


def _aval_of(x) -> Any:
    if isinstance(x, Array):
        return x.aval
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (np.ndarray, np.generic)):
        return make_aval(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype), False)
    return as_array(x).aval


# -- arguments and results of gradients ----------------------------------------------------------------


def differentiated(name, fun, args, kwargs, numbers, has_aux=False):
    """`fun` as a flat function of the arguments `numbers`, their leaves, and a tree for each.

    Raises:
        TypeError: there is no argument of that number, or an argument has leaves that are not
            arrays.
        ValueError: `numbers` holds an argument twice.
    """
    count = len(args)
    if values:
        chosen = [args[n] for n in numbers if -count <= n < count]
        refuse_values(name, chosen)
        if any_trees(chosen):
            raise TypeError(
                f"{name} takes no derivative in rows of different lengths as a whole: write {name}(lambda buffer: "
                "f(gradix.Ragged(buffer, rows.counts)))(rows.buffer). grad, vjp, jvp and linearize take a Ragged."
            )
    places = []
    for n in numbers:
        if not -count <= n < count:
            raise TypeError(
                f"differentiating with respect to argnums={n} requires at least "
                f"{n + 1 if n >= 0 else -n} positional arguments to be passed by the caller, "
                f"but got only {count} positional arguments. Arguments passed by keyword cannot be "
                "numbered."
            )
        if n % count in places:
            raise ValueError(
                f"argnums={numbers} name the argument {n % count} of {name_of(fun)} twice; name each once."
            )
        places.append(n % count)
    leaves, trees = [], []
    for p in places:
        part, tree = opened(args[p])
        leaves += arrays(name, part, tree, f"argument {p}")
        trees.append(tree)

    def given(operands):
        full, at = list(args), 0
        for p, tree in zip(places, trees):
            n = tree.num_leaves
            full[p] = tree.unflatten(operands[at : at + n])
            at += n
        return full, kwargs

    return Flat(fun, name_of(fun), given, has_aux), leaves, trees


def check_inputs(fun, args, numbers, leaves, holomorphic, allow_int):
    for i, x in enumerate(leaves):
        dtype = x.aval.dtype
        if holomorphic:
            if dtype not in dtypes.COMPLEX:
                raise TypeError(
                    f"grad with holomorphic=True requires inputs with complex dtype, but got "
                    f"{_leaf_name(fun, args, numbers, i)} of {x.aval}. Convert it with .astype(complex)."
                )
        elif dtype in dtypes.COMPLEX or dtype in dtypes.FLOAT:
            continue
        elif not allow_int:
            raise TypeError(
                "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                f"got {_leaf_name(fun, args, numbers, i)} of {x.aval}. Differentiate in a float: pass 1.0 for 1, or "
                f"convert with .astype(float); allow_int=True gives such arguments a zero gradient of dtype float0."
            )


def _leaf_name(fun, args, numbers, index) -> str:
    names = argument_names(fun, len(args))
    all_names = [n for p in numbers for n in leaf_names(names[p], args[p])]
    return f"argument {all_names[index]}" if index < len(all_names) else f"leaf {index}"


def check_scalar(name, out_tree, outs, holomorphic):
    if out_tree.num_leaves != 1 or not out_tree.num_nodes == 1:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output was of structure {out_tree}. "
            "Return one scalar; further results go out with has_aux=True."
        )
    aval = outs[0].aval
    if aval.shape:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. "
            "Reduce it, as in .sum() or .mean(), or use jacrev for all derivatives."
        )
    if holomorphic:
        if aval.dtype not in dtypes.COMPLEX:
            raise TypeError(f"grad with holomorphic=True requires outputs with complex dtype, but got {aval}.")
    elif aval.dtype in dtypes.COMPLEX:
        raise TypeError(
            f"grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
            f"{aval}. For holomorphic differentiation, pass holomorphic=True. For differentiation of "
            "non-holomorphic functions involving complex outputs, use vjp directly."
        )
    elif aval.dtype not in dtypes.FLOAT:
        raise TypeError(
            f"grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
            f"{aval}. Convert the result with .astype(float) if it is meant to be a number."
        )
