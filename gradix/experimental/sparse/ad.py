"""Derivatives with respect to sparse arrays, which are taken by their specified elements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gradix import numpy as jnp
from gradix._api.derivatives import autodiff, jacobians
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import tree_flatten, tree_map, tree_unflatten
from gradix.experimental.sparse._array import JAXSparse
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse.bcsr import BCSR


def is_sparse(x: Any) -> bool:
    """Whether `x` is a sparse array.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> from gradix.experimental.sparse.ad import is_sparse
        >>> is_sparse(sparse.eye(3)), is_sparse(jnp.eye(3))
        (True, False)
    """
    return isinstance(x, JAXSparse)


def _by_data(fun: Callable, argnums: tuple[int, ...], args: tuple) -> tuple[Callable, list, list, Any]:
    """`fun` as a function of the data of the chosen arguments.

    The other results are that data, the leaves of the chosen arguments, and their tree.
    """
    leaves, tree = tree_flatten([args[i] for i in argnums], is_leaf=is_sparse)

    def of_data(data, *args, **kwargs):
        chosen = tree_unflatten(tree, [_with_data(x, d) for x, d in zip(leaves, data)])
        whole = list(args)
        for i, x in zip(argnums, chosen):
            whole[i] = x
        return fun(*whole, **kwargs)

    return of_data, [x.data if is_sparse(x) else x for x in leaves], leaves, tree


def _with_data(x, data):
    """The sparse array `x` with other elements at the same indices; `data` if `x` is not sparse."""
    if not is_sparse(x):
        return data
    (_, *rest), aux = x.tree_flatten()
    return type(x).tree_unflatten(aux, (data, *rest))


def _chosen(name: str, argnums, args) -> tuple[tuple[int, ...], bool]:
    single = not isinstance(argnums, Sequence)
    numbers = (argnums,) if single else tuple(argnums)
    if any(not -len(args) <= i < len(args) for i in numbers):
        raise ValueError(f"sparse.{name}: argnums={argnums} must be numbers of the {len(args)} positional arguments.")
    return tuple([i % len(args) for i in numbers]), single


def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., tuple[Any, Any]]:
    """A function that gives the value and gradient of `fun`, whose arguments may be sparse.

    The gradient with respect to a sparse array is a sparse array with the same indices, which holds
    the derivatives with respect to the specified elements.

    Args:
        fun: a function that returns a scalar.
        argnums: the numbers of the positional arguments to differentiate with respect to.
        has_aux: whether `fun` returns a pair of the scalar and other values.
        **kwargs: further arguments of `gradix.value_and_grad`.

    Returns:
        A function of the arguments of `fun` that returns `(value, gradient)`, or
        `((value, aux), gradient)` with `has_aux`.

    Raises:
        ValueError: `argnums` does not fit the arguments, when the function is called.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([0.0, 2.0, 3.0]))
        >>> value, by_x = sparse.value_and_grad(lambda x, y: x @ y)(x, jnp.array([5.0, 6.0, 7.0]))
        >>> value, by_x.data
        (Array(33., dtype=float32), Array([6., 7.], dtype=float32))
    """

    @functools.wraps(fun)
    def of_value_and_grad(*args, **given):
        numbers, single = _chosen("value_and_grad", argnums, args)
        of_data, data, leaves, tree = _by_data(fun, numbers, args)
        value, grads = autodiff.value_and_grad(of_data, has_aux=has_aux, **kwargs)(data, *args, **given)
        out = tree_unflatten(tree, [_with_data(x, g) for x, g in zip(leaves, grads)])
        return value, out[0] if single else tuple(out)

    return of_value_and_grad


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """A function that gives the gradient of `fun`, whose arguments may be sparse.

    The gradient with respect to a sparse array is a sparse array with the same indices. The
    arguments are those of `sparse.value_and_grad`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([0.0, 2.0, 3.0]))
        >>> sparse.grad(lambda x, y: x @ y)(x, jnp.array([5.0, 6.0, 7.0]))
        BCOO(float32[3], nse=2)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @functools.wraps(fun)
    def of_grad(*args, **given):
        value, grads = both(*args, **given)
        return (grads, value[1]) if has_aux else grads

    return of_grad


def _jacobian(which: Callable, name: str, fun: Callable, argnums, has_aux: bool, kwargs) -> Callable:
    @functools.wraps(fun)
    def of_jacobian(*args, **given):
        numbers, single = _chosen(name, argnums, args)
        of_data, data, leaves, tree = _by_data(fun, numbers, args)
        found = which(of_data, has_aux=has_aux, **kwargs)(data, *args, **given)
        found, aux = found if has_aux else (found, None)

        def rebuilt(rows: list):
            out = tree_unflatten(tree, [_in_rows(x, j) for x, j in zip(leaves, rows)])
            return out[0] if single else tuple(out)

        n = len(leaves)
        out = tree_map(
            rebuilt, found, is_leaf=lambda x: isinstance(x, list) and len(x) == n and not any(map(_is_tree, x))
        )
        return (out, aux) if has_aux else out

    return of_jacobian


def _is_tree(x) -> bool:
    return isinstance(x, (list, tuple, dict))


def _in_rows(x, jacobian):
    """The Jacobian with respect to the sparse array `x`; the axes of the result are batch axes."""
    if not is_sparse(x):
        return jacobian
    if not isinstance(x, (BCOO, BCSR)):
        raise NotImplementedError(
            f"sparse Jacobian with respect to a {type(x).__name__} matrix. Convert it by to_bcoo() first."
        )
    lead = jacobian.shape[: jacobian.ndim - x.data.ndim]
    parts = [jnp.broadcast_to(p, (*lead, *p.shape)) for p in x.tree_flatten()[0][1:]]
    return type(x)(
        (jacobian, *parts), shape=(*lead, *x.shape), indices_sorted=x.indices_sorted, unique_indices=x.unique_indices
    )


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """A function that gives the Jacobian of `fun` by forward mode; arguments may be sparse.

    The Jacobian with respect to a sparse array is a sparse array, whose batch axes are the axes of
    the result.

    Args:
        fun: a function of arrays.
        argnums: the numbers of the positional arguments to differentiate with respect to.
        has_aux: whether `fun` returns a pair of the result and other values.
        **kwargs: further arguments of `gradix.jacfwd`.

    Raises:
        ValueError: `argnums` does not fit the arguments, when the function is called.
        NotImplementedError: an argument is a COO, CSR or CSC matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> sparse.jacfwd(lambda m: m @ jnp.ones(2))(sparse.BCOO.fromdense(jnp.eye(2)))
        BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian(jacobians.jacfwd, "jacfwd", fun, argnums, has_aux, kwargs)


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """A function that gives the Jacobian of `fun` by reverse mode; arguments as for `jacfwd`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> sparse.jacrev(lambda m: m @ jnp.ones(2))(sparse.BCOO.fromdense(jnp.eye(2)))
        BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian(jacobians.jacrev, "jacrev", fun, argnums, has_aux, kwargs)


jacobian = jacrev


__dir__ = _own_names(__name__)
