"""`custom_vjp` and `custom_gradient`: functions with a user's reverse-mode rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from gradix._api.arguments import Names, check_callable, name_of
from gradix._api.boundary import arrays, positional
from gradix._api.derivatives.custom_derivatives import CustomDerivative, Found, Given, is_array_like
from gradix._api.derivatives.symbolic_zeros import CustomVJPPrimal, SymbolicZero
from gradix._api.tracing import called
from gradix._base.config import state as options
from gradix._base.lazy import lazy_module
from gradix._base.tracebacks import boundary, filter_frames
from gradix._base.tree import numbered, prefix_errors, tree_flatten as flatten
from gradix._control.custom_vjp import call_custom_vjp
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.aval import same_types, seen
from gradix._ops.basis import tangent_aval, zeros
from gradix._ops.convert import convert_element_type

P = ParamSpec("P")
T = TypeVar("T")
_marks = lazy_module("gradix._api.counted.marks")


class custom_vjp(CustomDerivative, Generic[P, T]):
    """A function with a reverse-mode rule that the user defines.

    `fwd(*args)` returns the output and residuals; `bwd(*nondiff_args, residuals, ct)` returns a
    tuple with a cotangent for each other argument, or None for zero. Forward mode differentiates
    the function itself. Arguments may hold leaves that are no arrays; these have no cotangent, and
    any value that `bwd` returns for them is ignored.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> @gradix.custom_vjp
        ... def clip_gradient(x):
        ...     return x
        >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1, 1),))
        >>> gradix.grad(lambda x: 5 * clip_gradient(x))(2.0)
        Array(1., dtype=float32, weak_type=True)
    """

    def __init__(self, fun: Callable[P, T], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None
        self.symbolic_zeros = False

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Set the rule.

        With `symbolic_zeros`, each leaf of the arguments of `fwd` is a `CustomVJPPrimal`, which
        says whether it has a tangent, and `bwd` gets a `SymbolicZero` for a cotangent that is zero
        for all values.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            if self.fwd is None or self.bwd is None:
                raise AttributeError(
                    f"No VJP defined for custom_vjp function {self._name} using defvjp. "
                    f"Call {self._name}.defvjp(fwd, bwd) before calling it."
                )
            static, traced, given = self._split(self._resolve(args, kwargs))
            (known, values), out = Given.of(self._name, given), Found()
            outs = call_custom_vjp(
                self._flat(static, known, out),
                self._forward(static, known, out),
                self._backward(static, known, out),
                [*traced, *values],
                self._name,
                Names(self.fun, positional(known.tree), self.nondiff_argnums),
                num_static=len(traced),
                symbolic_zeros=self.symbolic_zeros,
            )
            return out["tree"].unflatten(outs)
        except Exception as error:
            filter_frames(error)
            raise

    def _forward(self, static, args, out):
        fwd, numbers, k = self.fwd, self.nondiff_argnums, len(static.places)

        def forward(*leaves, perturbed=None):
            values = leaves[k:]
            if perturbed is not None:
                values = [CustomVJPPrimal(x, p) for x, p in zip(values, perturbed[k:])]
            given = list(args.filled(values, None if perturbed is None else lambda x: CustomVJPPrimal(x, False)))
            for n, a in zip(numbers, static.filled(leaves[:k])):
                given.insert(n, a)
            roles = tuple([f"argument {i}" for i in range(len(given))])
            pair = called(f"custom_vjp of {self._name}", fwd, *given, roles=roles)
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise TypeError(
                    f"Custom VJP fwd rule {name_of(fwd)} for function {self._name} must produce a pair "
                    "(list or tuple of length two) where the first element represents the primal output "
                    f"and the second the residuals, but got {pair!r}."
                )
            ys, y_tree = flatten(pair[0])
            if out.setdefault("tree", y_tree) != y_tree:
                raise TypeError(
                    f"Custom VJP fwd rule {name_of(fwd)} for function {self._name} must produce a pair "
                    f"whose first element has the structure of the function's output, {out['tree']}, but "
                    f"got {y_tree}."
                )
            res, res_tree = flatten(pair[1])
            # a Python bool stays one, so that `bwd` can branch on it
            is_array = [is_array_like(r) and type(r) is not bool for r in res]
            out["res"] = res_tree, is_array, [None if a else r for r, a in zip(res, is_array)]
            ys = arrays(self._name, ys, y_tree, "output of fwd")
            out["avals"] = [tangent_aval(y.aval) for y in ys]
            types = [*[as_array(x).aval for x in leaves[k:]], *out["avals"]]
            out["sizes"], marks = _marks.marks_of(types) if seen.counts is not None else ((), ())
            return ys, [*leaves[:k], *marks, *[as_array(r) for r, a in zip(res, is_array) if a]]

        functools.update_wrapper(forward, fwd, assigned=("__name__",), updated=())
        return forward

    def _backward(self, static, args, out):
        bwd, k = self.bwd, len(static.places)

        def backward(residuals, cts):
            res_tree, is_array, others = out["res"]
            sizes, types = out["sizes"], [*args.avals, *out["avals"]]
            end = k + len(sizes)
            if sizes:
                types = _marks.resized(types, sizes, residuals[k:end])
            of_arguments, of_results = types[: len(args.avals)], types[len(args.avals) :]
            given = iter(residuals[end:])
            res = res_tree.unflatten([next(given) if a else o for a, o in zip(is_array, others)])
            cts = [SymbolicZero(a) if c is None else c for c, a in zip(cts, of_results)]
            own = static.filled(residuals[:k])
            roles = *["nondiff argument"] * len(own), "residuals", "cotangent"
            result = called("custom_vjp", bwd, *own, res, out["tree"].unflatten(cts), roles=roles)
            avals: list = [None] * len(args.leaves)
            for i, aval in zip(args.places, of_arguments):
                avals[i] = aval
            found = self._cotangents(result, args.tree, avals)
            return [*[None] * k, *[found[i] for i in args.places]]

        functools.update_wrapper(backward, bwd, assigned=("__name__",), updated=())
        return backward

    def _cotangents(self, result, tree, avals) -> list:
        """The result of `bwd` as cotangents per leaf; None means zeros for an argument."""
        if isinstance(result, list):
            result = tuple(result)
        count = len(tree.children())
        if not isinstance(result, tuple) or len(result) != count:
            raise TypeError(
                f"Custom VJP bwd rule {name_of(self.bwd)} must produce a tuple of length equal to the "
                f"primal args tuple ({count}), but got {result!r}."
            )
        leaves: list[Any] = []
        for i, (part, sub) in enumerate(zip(result, tree.children())):
            leaves += self._argument_cotangents(i, part, sub)
        return [self._checked(ct, a, i) for i, (ct, a) in enumerate(zip(leaves, avals))]

    def _argument_cotangents(self, i, part, sub) -> list:
        values = _matched(part, sub)
        if values is None:
            errors = "\n".join(map(str, prefix_errors(part, numbered(sub))))
            raise TypeError(
                f"Custom VJP bwd rule {name_of(self.bwd)} must produce an output with the same container "
                f"(pytree) structure as the args tuple of the primal function; for argument {i} it has "
                f"{flatten(part)[1]} where {sub} is expected.\n{errors}"
            )
        return values

    def _checked(self, ct, aval, index):
        if aval is None:
            return None
        want = tangent_aval(aval)
        if want.dtype == dtypes.float0:
            return None
        if type(ct) is SymbolicZero and tuple(ct.shape) != want.shape:
            raise ValueError(
                f"Custom VJP bwd rule {name_of(self.bwd)} for function {self._name} returned a symbolic "
                f"zero of shape {tuple(ct.shape)} for leaf {index} of the arguments, which is of type "
                f"{want}. Make it of the argument's type, or return None."
            )
        if ct is None or type(ct) is SymbolicZero:
            return zeros(want)
        try:
            ct = as_array(ct)
        except TypeError as e:
            raise TypeError(
                f"Custom VJP bwd rule {name_of(self.bwd)} for function {self._name} must produce arrays, or None for "
                f"zeros: for leaf {index} of the arguments it returned another object. {e}"
            ) from None
        got = ct.aval
        if got.dtype == dtypes.float0:
            return zeros(want)
        if got.shape == want.shape and got.dtype != want.dtype and _converts(got.dtype, want.dtype):
            # rules in mixed precision return cotangents of other dtypes
            ct = convert_element_type(ct, want.dtype)
            got = ct.aval
        if not same_types([got], [want]) and not options.jax_disable_bwd_checks:
            raise ValueError(
                f"Custom VJP bwd rule {name_of(self.bwd)} for function {self._name} must produce a cotangent of the "
                f"shape and dtype of each argument: for leaf {index} of the arguments it is {want}, but got {got}. "
                "Sum over broadcast axes, or convert with .astype."
            )
        return ct


def _converts(given, wanted) -> bool:
    """Whether a cotangent is converted to a dtype: all are, except complex to real."""
    return (given in dtypes.NUMERIC or given in dtypes.BOOL) and (
        given not in dtypes.COMPLEX or wanted in dtypes.COMPLEX
    )


def _matched(part, tree) -> list | None:
    """The leaves of `part`, one per leaf of `tree`; None if `part` is not a prefix of `tree`."""
    if part is None:
        return [None] * tree.num_leaves
    parts, top = flatten(part, lambda x: x is not part)
    if top.node_data() is None:
        return [part] * tree.num_leaves
    subtrees = tree.children()
    if top.node_data() != tree.node_data() or len(parts) != len(subtrees):
        return None
    below = [_matched(p, t) for p, t in zip(parts, subtrees)]
    return None if any(b is None for b in below) else [v for b in below if b is not None for v in b]


def custom_gradient(fun: Callable[P, tuple[T, Callable[..., Any]]]) -> Callable[P, T]:
    """Make a differentiable function of one that returns its value and a pullback of cotangents.

    Example:
        >>> import gradix
        >>> @gradix.custom_gradient
        ... def double_gradient(x):
        ...     return x ** 2, lambda ct: (4 * ct * x,)
        >>> gradix.grad(double_gradient)(3.0)
        Array(12., dtype=float32, weak_type=True)
    """
    check_callable("custom_gradient", fun)

    @custom_vjp
    @functools.wraps(fun)
    def value_only(*args):
        return fun(*args)[0]

    def fwd(*args):
        return fun(*args)[0], args

    def bwd(args, ct):
        out = fun(*args)[1](ct)  # calling `fun` again means that no traced value is captured
        return out if isinstance(out, tuple) else (out,)

    value_only.defvjp(fwd, bwd)

    @functools.wraps(fun)
    @boundary
    def wrapped(*args, **kwargs):
        return value_only(*args, **kwargs)

    return wrapped
