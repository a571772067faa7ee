"""PyTorch and Gradix in one program: exchange of tensors, and calls and derivatives both ways."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gradix._api.callbacks import pure_callback
from gradix._api.derivatives.autodiff import vjp
from gradix._api.derivatives.custom_vjp import custom_vjp
from gradix._api.jit.jit import jit
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.lazy import lazy_module
from gradix._base.listing import listing
from gradix._base.tree import tree_flatten, tree_map
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix.dlpack import from_dlpack

__all__ = ["as_gradix", "as_torch", "from_torch", "to_torch"]

torch = lazy_module("torch")

_BY_BITS = tuple(map(np.dtype, ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")))


def from_torch(tree: Any) -> Any:
    """Arrays with the values, shapes and dtypes of PyTorch's tensors.

    The values are copied, because a tensor may change later.

    Args:
        tree: a pytree of tensors, such as `dict(module.named_parameters())`. Leaves that are not
            tensors are returned unchanged.

    Raises:
        TypeError: the dtype of a tensor has no counterpart in Gradix.

    Example:
        >>> import torch                                               # doctest: +SKIP
        >>> from gradix.experimental.torch import from_torch
        >>> from_torch({"w": torch.tensor([1.0, 2.0]), "name": "w"})     # doctest: +SKIP
        {'name': 'w', 'w': Array([1., 2.], dtype=float32)}
    """
    return tree_map(lambda x: _array(x) if isinstance(x, torch.Tensor) else x, tree)


def to_torch(tree: Any) -> Any:
    """PyTorch's tensors with the values, shapes and dtypes of arrays, which are copied.

    Args:
        tree: a pytree of arrays, or of values that can be made arrays, such as numbers. Arrays of
            dtype float0 become None.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.torch import to_torch
        >>> to_torch({"w": jnp.array([1.0, 2.0])})            # doctest: +SKIP
        {'w': tensor([1., 2.])}
    """
    return tree_map(_tensor, tree)


def _array(x):
    x = x.detach()
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    x = x.cpu().contiguous()
    if x.is_floating_point() and x.element_size() == 1:  # PyTorch does not export 8-bit floats
        return as_array(x.view(torch.uint8).numpy().view(str(x.dtype).removeprefix("torch.")).copy())
    return from_dlpack(x)


def _tensor(x):
    x = as_array(x)
    if x.dtype == dtypes.float0:
        return None
    if x.dtype in _BY_BITS:  # torch.from_numpy does not know these dtypes
        bits = np.array(x).view(np.int16 if x.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(bits).view(getattr(torch, x.dtype.name))
    return torch.from_numpy(np.array(x))


# -- functions of arrays, called on tensors --------------------------------------------------------


def as_torch(fun: Callable) -> Callable:
    """A function of arrays as one of PyTorch's tensors, which autograd differentiates to any order.

    Args:
        fun: a function that takes and returns pytrees of arrays. It is jitted.

    Returns:
        A function that takes and returns the same pytrees of tensors. Leaves that are not tensors
        are passed to `fun` as arrays without a gradient.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.torch import as_torch
        >>> energy = as_torch(lambda x: jnp.sum(jnp.sin(x) ** 2))   # energy(tensor).backward() fills tensor.grad
    """
    known: dict = {}

    def call(*args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs))
        if tree not in known:
            known[tree] = _Flat(fun, tree)
        flat = known[tree]
        outs = _bridge().apply(flat, *[x if isinstance(x, torch.Tensor) else _tensor(x) for x in leaves])
        return flat.out_tree.unflatten(outs)

    call.__name__ = getattr(fun, "__name__", "function")
    return call


class _Flat:
    """A function of arrays in a list; `gradient` gives its gradient in the same form."""

    def __init__(self, fun: Callable, tree):
        self.fun, self.tree = fun, tree
        self.out_tree: Any = None
        self.run = jit(self._run)

    def _run(self, *leaves):
        args, kwargs = self.tree.unflatten(leaves)
        outs, self.out_tree = tree_flatten(self.fun(*args, **kwargs))
        return outs

    def gradient(self, count: int) -> _Flat:
        """The function of arguments and cotangents of results that gives the arguments' cotangents.

        `count` is the number of arguments.
        """

        def fun(*flat):
            outs, pull = vjp(self._run, *flat[:count])
            cts = [
                ct if out.dtype in dtypes.INEXACT else np.zeros(out.shape, dtypes.float0)
                for out, ct in zip(outs, flat[count:])
            ]
            return [g for g in pull(cts) if g.dtype != dtypes.float0]

        return _Flat(fun, _arguments(count + self.out_tree.num_leaves))


def _arguments(count: int):
    return tree_flatten((tuple(range(count)), {}))[1]


@cache
def _bridge():
    """The class through which PyTorch differentiates functions of arrays."""

    class Bridge(torch.autograd.Function):
        @staticmethod
        def forward(ctx, flat, *tensors):
            arrays = [_array(x) for x in tensors]
            ctx.flat, ctx.pull = flat, None
            ctx.save_for_backward(*tensors)
            if any(ctx.needs_input_grad[1:]):
                outs, ctx.pull = vjp(flat.run, *arrays)
            else:
                outs = flat.run(*arrays)
            ctx.set_materialize_grads(True)
            results = tuple([_tensor(x) for x in outs])
            ctx.mark_non_differentiable(*[x for x in results if not (x.is_floating_point() or x.is_complex())])
            return results

        @staticmethod
        def backward(ctx, *cts):
            tensors = ctx.saved_tensors
            inexact = [x.is_floating_point() or x.is_complex() for x in tensors]
            if torch.is_grad_enabled():  # the gradient itself will be differentiated
                found = iter(Bridge.apply(ctx.flat.gradient(len(tensors)), *tensors, *map(_conjugate, cts)))
            else:
                given = [_cotangent(ct) for ct in cts]
                found = iter([_tensor(g) for g, real in zip(ctx.pull(given), inexact) if real])
            return None, *[_conjugate(next(found)) if real else None for real in inexact]

    return Bridge


def _cotangent(ct):
    if not (ct.is_floating_point() or ct.is_complex()):
        return np.zeros(tuple(ct.shape), dtypes.float0)
    return _array(_conjugate(ct))


def _conjugate(ct):
    """A cotangent in the other library's convention: PyTorch's are the conjugates of ours."""
    return ct.conj() if ct.is_complex() else ct


# -- functions of tensors, called on arrays --------------------------------------------------------


def as_gradix(fun: Callable, result_shape_dtypes: Any = None) -> Callable:
    """A function of PyTorch's tensors as one of arrays, for jit, vmap and reverse mode.

    A compiled program calls back into Python, so it cannot be exported.

    Args:
        fun: a function without side effects that takes tensors and returns a pytree of tensors.
        result_shape_dtypes: a pytree of `ShapeDtypeStruct`s of the results; by default `fun` is
            called with zeros to find them, at each call and each trace.

    Returns:
        A function that takes and returns pytrees of arrays in place of the tensors.

    Example:
        >>> import torch                                      # doctest: +SKIP
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.torch import as_gradix
        >>> f = as_gradix(lambda x: torch.sin(x) * 2)         # doctest: +SKIP
        >>> gradix.grad(lambda x: f(x).sum())(jnp.zeros(2))   # doctest: +SKIP
        Array([2., 2.], dtype=float32)
    """

    def call(*args):
        leaves, tree = tree_flatten(args)
        leaves = [as_array(x) for x in leaves]
        types = result_shape_dtypes if result_shape_dtypes is not None else _result_types(fun, tree, leaves)
        return _differentiable(fun, tree, types)(*leaves)

    call.__name__ = getattr(fun, "__name__", "function")
    return call


def _result_types(fun: Callable, tree, leaves):
    """The types of a function's results, found by a call with zeros."""
    zeros = [torch.from_numpy(np.zeros((), np.uint8)).to(_torch_dtype(x.dtype)).expand(x.shape).clone() for x in leaves]
    with torch.no_grad():
        outs = fun(*tree.unflatten(zeros))
    return tree_map(lambda x: ShapeDtypeStruct(tuple(x.shape), _array(x[..., :0] if x.ndim else x).dtype), outs)


def _torch_dtype(dtype):
    return getattr(torch, np.dtype(dtype).name)


def _differentiable(fun: Callable, tree, types):
    """A callback to a function of tensors, whose derivative is computed by PyTorch."""

    def forward_on_host(*values):
        with torch.no_grad():
            return tree_map(_numpy, fun(*tree.unflatten([_from_host(x) for x in values])))

    @custom_vjp
    def run(*leaves):
        return pure_callback(forward_on_host, types, *leaves, vmap_method="sequential")

    def forward(*leaves):
        return run(*leaves), leaves

    def backward(leaves, cts):
        where = [i for i, x in enumerate(leaves) if x.dtype in dtypes.INEXACT]
        cts = [ct for ct in tree_flatten(cts)[0] if ct.dtype != dtypes.float0]
        wanted = [ShapeDtypeStruct(leaves[i].shape, leaves[i].dtype) for i in where]
        pulled = _Pulled(fun, tree, len(leaves), where)
        found = _differentiable(pulled, tree_flatten((*leaves, *cts))[1], wanted)(*leaves, *cts)
        given = dict(zip(where, found))
        return tuple([given[i] if i in given else np.zeros(x.shape, dtypes.float0) for i, x in enumerate(leaves)])

    run.defvjp(forward, backward)
    return run


class _Pulled:
    """The pullback by PyTorch's reverse mode, as a function of all arguments and the cotangents.

    It returns the cotangents of the arguments whose numbers are in `where`.
    """

    def __init__(self, fun: Callable, tree, count: int, where: list[int]):
        self.fun, self.tree, self.count, self.where = fun, tree, count, where

    def __call__(self, *tensors) -> list:
        deeper = any(x.requires_grad for x in tensors)  # the pullback itself is differentiated
        with torch.enable_grad():
            args, cts = list(tensors[: self.count]), tensors[self.count :]
            for i in self.where:
                args[i] = args[i] if args[i].requires_grad else args[i].detach().requires_grad_()
            outs = [
                x
                for x in tree_flatten(self.fun(*self.tree.unflatten(args)))[0]
                if x.is_floating_point() or x.is_complex()
            ]
            used = [(x, _conjugate(ct)) for x, ct in zip(outs, cts) if x.requires_grad]
            wanted = [args[i] for i in self.where]
            found = [None] * len(wanted)
            if used:
                found = torch.autograd.grad(
                    [x for x, _ in used], wanted, [ct for _, ct in used], create_graph=deeper, allow_unused=True
                )
        return [torch.zeros_like(x) if g is None else _conjugate(g) for x, g in zip(wanted, found)]


def _from_host(x):
    return _tensor(np.asarray(x))


def _numpy(x) -> np.ndarray:
    return np.asarray(_array(x))


__dir__ = listing(__name__)
