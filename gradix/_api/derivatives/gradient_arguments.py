"""Checks and flattens the arguments of a gradient, and checks its scalar output."""

from __future__ import annotations

import functools

from gradix._api.arguments import argument_names, leaf_names, name_of
from gradix._api.derivatives.hi_arguments import refuse_values
from gradix._api.flat_functions import Flat, arrays
from gradix._api.hi_values import flatten, kinds
from gradix._core import dtypes


def differentiated(name, fun, args, kwargs, numbers, has_aux=False):
    """`fun` as a flat function of the arguments `numbers`, their leaves, and a tree for each.

    Raises:
        TypeError: there is no argument of that number, or an argument has leaves that are not
            arrays.
        ValueError: `numbers` holds an argument twice.
    """
    count = len(args)
    if kinds:
        refuse_values(name, [args[n] for n in numbers if -count <= n < count])
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
                f"argnums={numbers} name the argument {n % count} of {name_of(fun)} twice; name each "
                "once."
            )
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
            given[p] = tree.unflatten(values[at : at + n])
            at += n
        return given

    function = functools.partial(fun, **kwargs) if kwargs else fun
    return (
        Flat(function, name_of(fun), trees[0] if trees else None, has_aux, rebuild),
        leaves,
        trees,
    )


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
            raise TypeError(
                f"grad with holomorphic=True requires outputs with complex dtype, but got {aval}."
            )
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
