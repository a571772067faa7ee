"""Derivatives of functions on pytrees: grad, value_and_grad, jvp, vjp, linearize, linear_transpose."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._api.arguments import argument_names, as_numbers, check_callable, leaf_names, name_of
from gradix._api.derivatives.linear_maps import (
    Pullback,
    Pushforward,
    finished,
    shown_tangent,
    spread_inputs,
    tangent_of,
)
from gradix._api.derivatives.nondiff import Mixed, check_nondiff
from gradix._base.tree import keystr, tree_flatten as flatten, tree_flatten_with_path, tree_unflatten
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.operators import Array
from gradix._core.trace import Tracer
from gradix._ops.basis import full_like_one, is_differentiable
from gradix._transforms.jvp import jvp as _jvp
from gradix._transforms.linearize import linear_program, linearize as _linearize, trace_for
from gradix._transforms.repeats import is_slope

_FLOAT0 = dtypes.float0


def arrays(name: str, leaves, tree, what: str, axes=None) -> list[Array]:
    """The leaves as arrays; with `axes`, those of axis None may be anything.

    Raises:
        TypeError: naming the path of the leaf that is none.
        OverflowError: a leaf is an int that does not fit.
    """
    out = []
    for i, x in enumerate(leaves):
        if isinstance(x, Array):
            out.append(x)
            continue
        try:
            out.append(as_array(x))
        except (TypeError, OverflowError) as e:
            if axes is not None and axes[i] is None:
                out.append(x)
                continue
            path = keystr(tree_flatten_with_path(tree_unflatten(tree, leaves))[0][i][0])
            wrong = "is no array" if isinstance(e, TypeError) else "does not fit"
            raise type(e)(f"{name}: {what}{path} {wrong}. {e}") from None
    return out


class Flat:
    """A function on pytrees as one on lists; remembers the tree of its results, and its auxiliary output."""

    __slots__ = ("function", "name", "in_tree", "out_tree", "aux", "has_aux", "rebuild")

    def __init__(self, function, name, in_tree, has_aux=False, rebuild=None):
        self.function, self.name, self.in_tree, self.has_aux = function, name, in_tree, has_aux
        self.rebuild = rebuild or in_tree.unflatten
        self.out_tree = self.aux = None

    def __call__(self, *leaves) -> list:
        out = self.function(*self.rebuild(leaves))
        if self.has_aux:
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise TypeError(f"{self.name}: with has_aux=True the function must return a pair (output, auxiliary "
                                f"data), got {_kind(out)}.")
            out, aux = out
            aux_leaves, aux_tree = flatten(aux)
            self.aux = aux_tree, aux_leaves, [isinstance(x, Tracer) for x in aux_leaves]
        outs, self.out_tree = flatten(out)
        result = arrays(self.name, outs, self.out_tree, "output")
        return result + self._aux_arrays() if self.has_aux else result

    def _aux_arrays(self) -> list:
        return [x for x, traced in zip(self.aux[1], self.aux[2]) if traced]

    def split_aux(self, outs):
        """Results, and the auxiliary tree, of what `__call__` returned after a transformation.

        Auxiliary leaves that depend on nothing traced are given back as they are.
        """
        n = self.out_tree.num_leaves
        tree, leaves, traced = self.aux
        given = iter(outs[n:])
        return outs[:n], tree.unflatten([next(given) if t else x for x, t in zip(leaves, traced)])


def _kind(x) -> str:
    return f"a {type(x).__name__} of length {len(x)}" if isinstance(x, (tuple, list)) else f"{type(x).__name__}"


def value_and_grad(fun: Callable, argnums: int | tuple = 0, has_aux: bool = False, holomorphic: bool = False,
                   allow_int: bool = False, reduce_axes=(), nondiff: str = "error") -> Callable:
    """A function that returns both `fun(*args)` and its gradient.

    Args:
        fun: returns a scalar (with `has_aux` a pair of it and auxiliary data).
        argnums: the number(s) of the arguments to differentiate in; a tuple gives a tuple of gradients.
        has_aux: `fun` returns `(value, aux)`; the result is then `((value, aux), gradient)`.
        holomorphic: `fun` is promised to be complex-differentiable; inputs and output are complex.
        allow_int: integer arguments get gradients of dtype float0.
        nondiff: "skip" lets arguments hold leaves that are no floats (ints, strings, functions): they are passed on
            as they are, and the gradient has None in their places.

    Raises:
        TypeError: the output is no scalar, or an argument has no derivative; the message names it.

    Example:
        >>> import gradix
        >>> gradix.value_and_grad(lambda x: x ** 2)(3.0)
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable("value_and_grad", fun)
    numbers, single = as_numbers("argnums", argnums), not isinstance(argnums, (tuple, list))

    if check_nondiff(nondiff):
        return _skipping(fun, numbers, single, has_aux, holomorphic)

    @_transformed(fun, "grad")
    def value_and_grad_f(*args, **kwargs):
        flat, leaves, trees = _differentiated("grad", fun, args, kwargs, numbers, has_aux)
        _check_inputs(fun, args, numbers, leaves, holomorphic, allow_int)
        outs, program = _linearize(flat, leaves, [is_differentiable(x.aval) for x in leaves])
        if has_aux:
            outs, aux = flat.split_aux(outs)
        _check_scalar("grad", flat.out_tree, outs, holomorphic)
        y, = outs
        one, rest = full_like_one(y.aval), [None] * (len(program.outs) - 1)
        cts = iter(program.apply([one])[:1] if is_slope(program, leaves) else program.transpose([one, *rest]))
        grads = iter([finished(next(cts) if is_differentiable(x.aval) else None, x.aval) for x in leaves])
        parts = [tree.unflatten([next(grads) for _ in range(tree.num_leaves)]) for tree in trees]
        gradient = parts[0] if single else tuple(parts)
        value = flat.out_tree.unflatten(outs)
        return ((value, aux), gradient) if has_aux else (value, gradient)

    return value_and_grad_f


def _skipping(fun, numbers, single: bool, has_aux: bool, holomorphic: bool) -> Callable:
    """`value_and_grad` in the float leaves of the arguments."""
    @_transformed(fun, "grad")
    def value_and_grad_f(*args, **kwargs):
        mixed = Mixed(args, numbers)
        both = value_and_grad(functools.wraps(fun)(mixed.function(fun)), numbers, has_aux, holomorphic)
        value, gradients = both(*mixed.args, **kwargs)
        parts = tuple([mixed.spread(n, g) for n, g in zip(numbers, gradients)])
        return value, parts[0] if single else parts

    return value_and_grad_f


def grad(fun: Callable, argnums: int | tuple = 0, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False, reduce_axes=(), nondiff: str = "error") -> Callable:
    """The gradient of a scalar function; arguments as for `value_and_grad`.

    Args:
        fun: a function whose value is a real scalar.
        argnums: the position, or positions, of the arguments to differentiate in.
        has_aux: `fun` returns `(value, aux)`.
        holomorphic: `fun` is a holomorphic function of complex arguments, with a complex value.
        allow_int: accept integers, whose gradient is of dtype float0.
        reduce_axes: accepted for compatibility.
        nondiff: "skip" passes leaves of the arguments that are no floats on as they are; the gradient has None there.

    Returns:
        A function with the arguments of `fun` that returns the gradient, or `(gradient, aux)` with `has_aux`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.grad(jnp.tanh)(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    check_callable("grad", fun)
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes, nondiff)

    @_transformed(fun, "grad")
    def grad_f(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f


def _transformed(fun, transform: str):
    """Give a wrapper the name and documentation of what it wraps."""
    def wrap(wrapper):
        with contextlib.suppress(AttributeError):
            functools.update_wrapper(wrapper, fun)
        return wrapper
    return wrap


def _differentiated(name, fun, args, kwargs, numbers, has_aux=False):
    """`fun` as a flat function of the arguments numbered, their leaves, and a tree for each."""
    count = len(args)
    places = []
    for n in numbers:
        if not -count <= n < count:
            raise TypeError(f"differentiating with respect to argnums={n} requires at least "
                             f"{n + 1 if n >= 0 else -n} positional arguments to be passed by the caller, "
                             f"but got only {count} positional arguments. Arguments passed by keyword cannot be "
                             "numbered.")
        if n % count in places:
            raise ValueError(f"argnums={numbers} name the argument {n % count} of {name_of(fun)} twice; name each "
                             "once.")
        places.append(n % count)
    leaves, trees = [], []
    for p in places:
        part, tree = flatten(args[p])
        leaves += arrays(name, part, tree, f"argument {p}")
        trees.append(tree)

    def rebuild(values):
        given, at = list(args), 0
        for p, tree in zip(places, trees):
            n = tree.num_leaves
            given[p] = tree.unflatten(values[at:at + n])
            at += n
        return given

    function = functools.partial(fun, **kwargs) if kwargs else fun
    return Flat(function, name_of(fun), trees[0] if trees else None, has_aux, rebuild), leaves, trees


def _check_inputs(fun, args, numbers, leaves, holomorphic, allow_int):
    for i, x in enumerate(leaves):
        dtype = x.aval.dtype
        if holomorphic:
            if dtype not in dtypes.COMPLEX:
                raise TypeError(f"grad with holomorphic=True requires inputs with complex dtype, but got "
                                f"{_leaf_name(fun, args, numbers, i)} of {x.aval}. Convert it with .astype(complex).")
        elif dtype in dtypes.COMPLEX or dtype in dtypes.FLOAT:
            continue
        elif not allow_int:
            raise TypeError(
                "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                f"got {_leaf_name(fun, args, numbers, i)} of {x.aval}. Differentiate in a float: pass 1.0 for 1, or "
                f"convert with .astype(float); allow_int=True gives such arguments a zero gradient of dtype float0.")


def _leaf_name(fun, args, numbers, index) -> str:
    names = argument_names(fun, len(args))
    all_names = [n for p in numbers for n in leaf_names(names[p], args[p])]
    return f"argument {all_names[index]}" if index < len(all_names) else f"leaf {index}"


def _check_scalar(name, out_tree, outs, holomorphic):
    if out_tree.num_leaves != 1 or not out_tree.num_nodes == 1:
        raise TypeError(f"Gradient only defined for scalar-output functions. Output was of structure {out_tree}. "
                        "Return one scalar; further results go out with has_aux=True.")
    aval = outs[0].aval
    if aval.shape:
        raise TypeError(f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. "
                        "Reduce it, as in .sum() or .mean(), or use jacrev for all derivatives.")
    if holomorphic:
        if aval.dtype not in dtypes.COMPLEX:
            raise TypeError(f"grad with holomorphic=True requires outputs with complex dtype, but got {aval}.")
    elif aval.dtype in dtypes.COMPLEX:
        raise TypeError(f"grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
                        f"{aval}. For holomorphic differentiation, pass holomorphic=True. For differentiation of "
                        "non-holomorphic functions involving complex outputs, use vjp directly.")
    elif aval.dtype not in dtypes.FLOAT:
        raise TypeError(f"grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
                        f"{aval}. Convert the result with .astype(float) if that is what is meant.")


def jvp(fun: Callable, primals, tangents, has_aux: bool = False):
    """The value of `fun` at `primals`, and its derivative along `tangents`.

    Args:
        primals, tangents: tuples or lists, of one structure, shape and dtype; integer primals take float0 tangents.

    Returns:
        `(value, tangent)`, with `has_aux` `(value, tangent, aux)`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.jvp(jnp.sin, (0.0,), (2.0,))
        (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable("jvp", fun)
    for what, x in (("primals", primals), ("tangents", tangents)):
        if not isinstance(x, (tuple, list)):
            raise TypeError(f"{what} arguments to jvp must be tuples or lists; found {type(x).__name__}. "
                            "Wrap a single argument, as in jvp(f, (x,), (t,)).")
    leaves, tree = flatten(tuple(primals))
    t_leaves, t_tree = flatten(tuple(tangents))
    if tree != t_tree:
        raise TypeError(f"primal and tangent arguments to jvp must have the same tree structure; primals have tree "
                        f"structure {tree} whereas tangents have tree structure {t_tree}.")
    leaves = arrays("jvp", leaves, tree, "primals")
    ts = [tangent_of("jvp", x.aval, t, i) for i, (x, t) in enumerate(zip(leaves, t_leaves))]
    flat = Flat(fun, name_of(fun), tree, has_aux)
    ys, out_ts = _jvp(flat, leaves, ts, trace_for(ts))
    if has_aux:
        ys, aux = flat.split_aux(ys)
    out_ts = [shown_tangent(t, y.aval) for t, y in zip(out_ts, ys)]
    result = flat.out_tree.unflatten(ys), flat.out_tree.unflatten(out_ts)
    return (*result, aux) if has_aux else result


def vjp(fun: Callable, *primals, has_aux: bool = False, reduce_axes=()):
    """The value of `fun` at `primals`, and the function that pulls cotangents back.

    Args:
        fun: the function.
        primals: its arguments.
        has_aux: `fun` returns `(value, aux)`.
        reduce_axes: accepted for compatibility.

    Returns:
        `(value, vjp_fun)`, with `has_aux` `(value, vjp_fun, aux)`; `vjp_fun(ct)` returns a tuple with a cotangent
        for each of `primals`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> y, pull = gradix.vjp(jnp.sin, 0.0)
        >>> pull(2.0)
        (Array(2., dtype=float32, weak_type=True),)
    """
    check_callable("vjp", fun)
    leaves, tree = flatten(primals)
    leaves = arrays("vjp", leaves, tree, "primals")
    flat = Flat(fun, name_of(fun), tree, has_aux)
    ys, program = _linearize(flat, leaves, [is_differentiable(x.aval) for x in leaves])
    if has_aux:
        ys, aux = flat.split_aux(ys)
    pull = Pullback(spread_inputs(program, leaves), tree, flat.out_tree, [x.aval for x in leaves],
                    [y.aval for y in ys], args=leaves)
    out = flat.out_tree.unflatten(ys)
    return (out, pull, aux) if has_aux else (out, pull)


def linearize(fun: Callable, *primals, has_aux: bool = False):
    """The value of `fun` at `primals`, and its derivative there as a linear function of tangents.

    The work that does not depend on the tangents is done once, here.

    Args:
        fun: the function.
        primals: its arguments.
        has_aux: `fun` returns `(value, aux)`.

    Returns:
        `(value, f_jvp)`, with `has_aux` `(value, f_jvp, aux)`; `f_jvp` takes a tangent for each of `primals`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> y, f_jvp = gradix.linearize(jnp.sin, 0.0)
        >>> f_jvp(3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    check_callable("linearize", fun)
    leaves, tree = flatten(primals)
    leaves = arrays("linearize", leaves, tree, "primals")
    flat = Flat(fun, name_of(fun), tree, has_aux)
    ys, program = _linearize(flat, leaves, [is_differentiable(x.aval) for x in leaves])
    if has_aux:
        ys, aux = flat.split_aux(ys)
    spread = spread_inputs(program, leaves)

    push = Pushforward(spread, tree, flat.out_tree, [x.aval for x in leaves], [y.aval for y in ys])
    out = flat.out_tree.unflatten(ys)
    return (out, push, aux) if has_aux else (out, push)


def linear_transpose(fun: Callable, *primals, reduce_axes=()) -> Callable:
    """The transpose of a function that is linear; `primals` give only the types of its arguments.

    Args:
        fun: the function.
        primals: arrays, or types of arrays, in place of its arguments.
        reduce_axes: accepted for compatibility.

    Returns:
        A function from a cotangent of the output to a tuple of cotangents of the arguments.

    Raises:
        TypeError: an argument is not of an inexact dtype.
        NotImplementedError: an operation of `fun` is not linear in its arguments.

    Example:
        >>> import gradix
        >>> gradix.linear_transpose(lambda x: 3.0 * x, 0.0)(2.0)
        (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable("linear_transpose", fun)
    leaves, tree = flatten(primals)
    avals = [_aval_of(x) for x in leaves]
    for a in avals:
        if not is_differentiable(a):
            raise TypeError(f"linear_transpose only supports [float or complex] dtypes for inputs, got {a}.")
    flat = Flat(fun, name_of(fun), tree)
    program = linear_program(flat, avals)
    out_avals = program.out_avals
    return Pullback(program, tree, flat.out_tree, avals, out_avals)


def _aval_of(x) -> Any:
    if isinstance(x, Array):
        return x.aval
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (np.ndarray, np.generic)):
        return make_aval(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype), False)
    return as_array(x).aval
