"""`sparsify` makes functions of ordinary arrays work on sparse ones, operation by operation."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from gradix import lax, numpy as jnp
from gradix._api.inspect import make_jaxpr
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.listing import own_names as _own_names
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten, tree_unflatten
from gradix._core.jaxpr import ClosedJaxpr, fold
from gradix._core.trace import bind
from gradix.experimental.sparse._array import JAXSparse
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._environment import (
    SparsifyEnv as SparsifyEnv,
    SparsifyValue as SparsifyValue,
    arrays_to_spvalues as arrays_to_spvalues,
    raw as _raw,
    spvalues_to_arrays as spvalues_to_arrays,
    spvalues_to_avals as spvalues_to_avals,
)
from gradix.experimental.sparse._rules import LINEAR, RULES, zero_preserving
from gradix.experimental.sparse.bcsr import BCSR, bcsr_dot_general
from gradix.lax import dot_general_p

TODENSE = "sparse.todense"  # `todense` marks values by this name while a function is traced.


class _Tracing(threading.local):
    depth = 0


_tracing = _Tracing()


def is_sparsifying() -> bool:
    """Whether a function is being traced by `sparsify`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> from gradix.experimental.sparse import transform
        >>> seen = []
        >>> @sparse.sparsify
        ... def f(x):
        ...     seen.append(transform.is_sparsifying())
        ...     return x
        >>> _ = f(jnp.ones(2))
        >>> seen, transform.is_sparsifying()
        ([True], False)
    """
    return _tracing.depth > 0


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def sparsify_raw(f: Callable) -> Callable:
    """`sparsify(f)` on `SparsifyValue`s: a function of a `SparsifyEnv` and of such values.

    It returns the list of the results, whose buffers it adds to the environment, and their tree. Arrays may
    share their indices there, as they may in `sparsify`.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.sparse import transform
        >>> env = transform.SparsifyEnv([jnp.array([[1]]), jnp.array([2.0])])
        >>> results, tree = transform.sparsify_raw(lambda x: 3 * x)(env, env.sparse((2,), data_ref=1, indices_ref=0))
        >>> transform.spvalues_to_arrays(env, results)[0].todense()
        Array([0., 6.], dtype=float32)
    """
    return _raw(sparsify(f))


def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """A function like `f` that takes sparse arrays too, and returns them where results are sparse.

    Each operation is replaced by one on elements and indices. Operations whose result would be
    dense, such as `cos`, raise an error; write `sparse.todense` where an ordinary array is wanted.

    Args:
        f: a function of pytrees of arrays.
        use_tracer: has no effect; there is one implementation.

    Raises:
        NotImplementedError: an operation has no rule, or its result would be dense.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> @sparse.sparsify
        ... def f(m, v):
        ...     return 2 * m.T @ v
        >>> f(sparse.BCOO.fromdense(jnp.array([[0.0, 3.0], [1.0, 0.0]])), jnp.array([1.0, 10.0]))
        Array([20.,  6.], dtype=float32)
    """

    @functools.wraps(f)
    @boundary
    def sparsified_function(*args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs), is_leaf=_is_sparse)
        seen: list = []

        def flat(*xs):
            args, kwargs = tree_unflatten(tree, xs)
            out, out_tree = tree_flatten(f(*args, **kwargs))
            seen.append(out_tree)
            return out

        _tracing.depth += 1
        try:
            closed = make_jaxpr(flat)(*[ShapeDtypeStruct(x.shape, x.dtype) if _is_sparse(x) else x for x in leaves])
        finally:
            _tracing.depth -= 1
        given = [x if _is_sparse(x) else jnp.asarray(x) for x in leaves]
        return tree_unflatten(seen[-1], evaluate(closed, given))

    return sparsified_function


def sparsified(function: Callable, *args: Any, **kwargs: Any) -> Callable:
    """`sparsify` of a function of one array, whose further arguments are given here.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> from gradix.experimental.sparse import transform
        >>> transform.sparsified(jnp.multiply, 2.0)(sparse.eye(2)).todense()
        Array([[2., 0.],
               [0., 2.]], dtype=float32)
    """
    return sparsify(lambda x: function(x, *args, **kwargs))


# -- evaluation of programs ------------------------------------------------------------------------


def evaluate(closed: ClosedJaxpr, args: Any) -> list:
    """The results of a program, some of whose arguments are sparse.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import sparse
        >>> from gradix.experimental.sparse import transform
        >>> program = gradix.make_jaxpr(lambda x: x.sum())(jnp.eye(3))
        >>> transform.evaluate(program, [sparse.eye(3)])
        [Array(3., dtype=float32)]
    """
    return fold(closed.jaxpr, closed.consts, args, _apply)


def _apply(eqn, values) -> list:
    prim, params = eqn.primitive, eqn.params
    if not any(map(_is_sparse, values)):
        out = bind(prim, [jnp.asarray(v) if not hasattr(v, "aval") else v for v in values], params)
        return list(out) if prim.multiple_results else [out]
    name = prim.name
    if name == "name" and params["name"] == TODENSE:
        return [values[0].todense()]
    if name in _CONTROL:
        return _CONTROL[name]([_unflagged(v) if _is_sparse(v) else v for v in values], params)
    inner = _program_in(eqn)
    if inner is not None:
        return evaluate(inner, values[len(values) - len(inner.jaxpr.invars) :])
    if prim is dot_general_p and isinstance(values[0], BCSR) and not _is_sparse(values[1]):
        return [bcsr_dot_general(*values, **{k: v for k, v in params.items() if k in _OF_PRODUCT})]
    rule = zero_preserving(prim)
    alone = values[0] if len(values) == 1 else None
    if (
        rule is not None
        and isinstance(alone, BCSR)
        and (prim.name in LINEAR or alone.unique_indices)  # Elements keep their places.
    ):
        return _listed(rule(alone, **params), prim)
    was_csr = all(isinstance(v, BCSR) for v in values if _is_sparse(v))
    values = [v.to_bcoo() if isinstance(v, BCSR) else _as_bcoo(v) if _is_sparse(v) else v for v in values]
    rule = RULES.get(name) or zero_preserving(prim)
    if rule is None:
        raise NotImplementedError(
            f"sparse rule for {name} is not implemented because it would result in dense output, or "
            "because it has not been written yet. If dense output is your intent, use sparse.todense() "
            "to convert your arguments to dense matrices."
        )
    outs = _listed(rule(*values, **params), prim)
    return [_back_to_csr(x) for x in outs] if was_csr else outs


def _listed(out, prim) -> list:
    return list(out) if prim.multiple_results else [out]


_OF_PRODUCT = ("dimension_numbers", "preferred_element_type")


def _as_bcoo(mat) -> BCOO:
    """The BCOO array of a sparse array of any format."""
    return mat if isinstance(mat, BCOO) else mat.to_bcoo()


def _back_to_csr(x):
    if isinstance(x, BCOO) and x.n_sparse == 2:
        return BCSR.from_bcoo(x)
    return x


def _program_in(eqn):
    """The program of an equation that only calls it, such as that of jit; None for others."""
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        closed = eqn.params.get(key)
        if isinstance(closed, ClosedJaxpr) and len(closed.jaxpr.outvars) == len(eqn.outvars):
            return closed
    return None


# -- loops and branches, which take sparse arrays as pytrees ---------------------------------------


def _cond(values, params):
    index, *rest = values
    branches = [functools.partial(_run, b) for b in params["branches"]]
    return list(lax.switch(index, branches, *rest))


def _run(closed, *args):
    return tuple([_unflagged(x) if _is_sparse(x) else x for x in evaluate(closed, args)])


def _unflagged(mat):
    """A sparse array not marked as sorted or unique, so that a loop can carry it."""
    mat = mat if isinstance(mat, BCSR) else _as_bcoo(mat)
    children, aux = mat.tree_flatten()
    return type(mat)(children, **{**aux, "indices_sorted": False, "unique_indices": False})


def _while(values, params):
    n, m = params["cond_nconsts"], params["body_nconsts"]
    of_cond, of_body, init = values[:n], values[n : n + m], values[n + m :]
    return list(
        lax.while_loop(
            lambda c: evaluate(params["cond_jaxpr"], [*of_cond, *c])[0],
            lambda c: _run(params["body_jaxpr"], *of_body, *c),
            tuple(init),
        )
    )


def _scan(values, params):
    n, m, closed = params["num_consts"], params["num_carry"], params["jaxpr"]
    consts, init, xs = values[:n], values[n : n + m], values[n + m :]
    for x in xs:
        if _is_sparse(x) and not x.n_batch:
            raise NotImplementedError(
                "scan over the rows of a sparse array whose first axis is not a batch axis. Call "
                "update_layout(n_batch=1) on it first."
            )

    def body(carry, rows):
        outs = _run(closed, *consts, *carry, *rows)
        return outs[:m], outs[m:]

    carry, ys = lax.scan(
        body, tuple(init), tuple(xs), length=params["length"], reverse=params["reverse"], unroll=params["unroll"]
    )
    return [*carry, *ys]


_CONTROL: dict[str, Callable] = {"cond": _cond, "while": _while, "scan": _scan}


__dir__ = _own_names(__name__)
