"""`custom_jvp`: functions for which the user defines the forward-mode rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from gradix._api.arguments import Names, name_of
from gradix._api.boundary import arrays, positional, values as kinds
from gradix._api.derivatives.custom_derivatives import CustomDerivative, Found, Given, add_trees, zeros_like_tree
from gradix._api.derivatives.nondiff import completed
from gradix._api.derivatives.symbolic_zeros import SymbolicZero
from gradix._api.tracing import called
from gradix._base.tracebacks import filter_frames
from gradix._base.tree import tree_flatten as flatten
from gradix._control.custom_jvp import call_custom_jvp
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._ops.basis import tangent_aval

P = ParamSpec("P")
T = TypeVar("T")


class custom_jvp(CustomDerivative, Generic[P, T]):
    """A function with a forward-mode rule that the user defines; all derivatives use the rule.

    Args:
        fun: the function.
        nondiff_argnums, nondiff_argnames: arguments that have no tangents; the rule gets them
            first, unchanged.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> @gradix.custom_jvp
        ... def log1pexp(x):
        ...     return jnp.log(1.0 + jnp.exp(x))
        >>> @log1pexp.defjvp
        ... def log1pexp_jvp(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t
        >>> gradix.grad(log1pexp)(100.0)
        Array(1., dtype=float32, weak_type=True)
    """

    def __init__(self, fun: Callable[P, T], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the rule: `jvp(primals, tangents) -> (primal_out, tangent_out)`; returns it.

        With `symbolic_zeros`, a tangent that is zero for all values is a `SymbolicZero`; the rule
        may return one, too.
        """
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set a rule `jvp(t, primal_out, *primals)` per argument; None is a zero derivative."""
        if self.nondiff_argnums:
            raise TypeError("defjvps does not support nondiff_argnums; use defjvp.")

        call: Callable[..., Any] = self

        def jvp(primals, tangents):
            y = call(*primals)
            total = None
            for rule, t in zip(jvps, tangents):
                if rule is None:
                    continue
                part = rule(t, y, *primals)
                total = part if total is None else add_trees(total, part)
            return y, zeros_like_tree(y) if total is None else total

        self.defjvp(jvp)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            if self.jvp is None:
                raise AttributeError(
                    f"No JVP defined for custom_jvp function {self._name} using defjvp. "
                    f"Decorate its rule with @{self._name}.defjvp before calling it."
                )
            static, traced, given = self._split(self._resolve(args, kwargs))
            (known, values), out = Given.of(self._name, given), Found()
            rule = self._rule(static, known, out)
            outs = call_custom_jvp(
                self._flat(static, known, out),
                rule,
                [*traced, *values],
                self._name,
                Names(self.fun, positional(known.tree), self.nondiff_argnums),
                len(traced),
                symbolic_zeros=self.symbolic_zeros,
            )
            return out["tree"].unflatten(outs)
        except Exception as error:
            filter_frames(error)
            raise

    def _rule(self, static, args, out: dict):
        jvp, name, k = self.jvp, self._name, len(static.places)

        def rule(primals, tangents):
            tangents = [SymbolicZero.from_primal_value(p) if t is None else t for p, t in zip(primals, tangents)]
            own = static.filled(primals[:k])
            roles = *["nondiff argument"] * len(own), "primals", "tangents"
            values = args.filled(primals[k:]), args.filled(tangents[k:], lambda x: None)
            if kinds:
                values = values[0], completed(*values)
            pair = called("custom_jvp", jvp, *own, *values, roles=roles)
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise TypeError(
                    f"Custom JVP rule {name_of(jvp)} for function {name} must produce a pair (list or "
                    f"tuple of length two) representing primal and tangent outputs, but got {pair!r}."
                )
            ys, y_tree = flatten(pair[0])
            ts, t_tree = flatten(pair[1])
            ys = arrays(name, ys, y_tree, "primal output of the rule")
            out.setdefault("tree", y_tree)
            if t_tree != y_tree:
                raise TypeError(
                    f"Custom JVP rule {name_of(jvp)} for function {name} must produce primal and tangent "
                    f"outputs with equal container (pytree) structures, but got {y_tree} and {t_tree} "
                    "respectively."
                )
            if y_tree != out["tree"]:
                raise TypeError(
                    f"Custom JVP rule {name_of(jvp)} for function {name} must produce a pair whose first "
                    f"element has the structure of the function's output, {out['tree']}, but got {y_tree}."
                )
            return ys, [_rule_tangent(name, jvp, y, t) for y, t in zip(ys, ts)]

        functools.update_wrapper(rule, jvp, assigned=("__name__",), updated=())  # type: ignore[arg-type]
        return rule


def _rule_tangent(name, rule, y, t):
    want = tangent_aval(y.aval)
    if want.dtype == dtypes.float0 or type(t) is SymbolicZero:
        return None
    t = as_array(t)
    if (t.aval.shape, t.aval.dtype) != (want.shape, want.dtype):
        raise TypeError(
            f"Custom JVP rule {name_of(rule)} for function {name} must produce primal and tangent outputs "
            f"with equal shapes and corresponding dtypes, but got primal {y.aval} with tangent {t.aval}, "
            f"expecting tangent {want}."
        )
    return t
