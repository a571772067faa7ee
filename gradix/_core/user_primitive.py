"""Primitives of users and libraries, whose rules are functions in JAX's conventions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradix._base.bounded import BoundedCache
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.effects import no_effects
from gradix._core.keys import exact_items
from gradix._core.primitive import Primitive as Base
from gradix._core.trace import Tracer, state


class _AnyPrimitive(type(Base)):  # type: ignore[misc]
    """Makes `isinstance(p, Primitive)` true for the built-in primitives as well."""

    def __instancecheck__(cls, x) -> bool:
        return type.__instancecheck__(Base, x) if cls is Primitive else type.__instancecheck__(cls, x)


class Primitive(Base, metaclass=_AnyPrimitive):
    """A primitive whose rules are set one by one; see also `gradix.interpreters`.

    Args:
        name: the name of the primitive.

    Example:
        >>> from gradix.extend.core import Primitive
        >>> import numpy as np
        >>> double_p = Primitive("double")
        >>> _ = double_p.def_impl(lambda x: 2 * np.asarray(x))
        >>> _ = double_p.def_abstract_eval(lambda x: x)
        >>> double_p.bind(3.0)
        np.float64(6.0)
    """

    params_key = staticmethod(exact_items)
    _effects: frozenset = no_effects

    def bind(self, *args, **params):
        """Apply the primitive; without transformations, `impl` gets Python values unchanged."""
        if state.stage is None and self._evaluates() and not any(isinstance(a, Tracer) for a in args):
            return self.impl(*args, **params)
        return super().bind(*args, **params)

    def def_impl(self, impl: Callable) -> Callable:
        """Set the evaluation rule `impl(*arrays, **params)`; assigning to `impl` does the same."""
        self.impl = impl  # type: ignore[method-assign]
        return impl

    def def_abstract_eval(self, abstract_eval: Callable) -> Callable:
        """Set the rule `abstract_eval(*avals, **params)`, which returns the results' types."""

        def without_effects(*avals, **params):
            return abstract_eval(*avals, **params), no_effects

        self.abstract_eval = without_effects  # type: ignore[method-assign]
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Callable) -> Callable:
        """Set a rule as `def_abstract_eval` does, which returns `(types, effects)`."""
        self.abstract_eval, self.effectful = abstract_eval, True  # type: ignore[method-assign]
        return abstract_eval

    def impl(self, *args, **params):
        raise NotImplementedError(
            f"Evaluation rule for '{self.name}' not implemented. Define one with "
            f"{self.name}_p.def_impl(f), or a lowering with mlir.register_lowering."
        )

    def abstract_eval(self, *avals, **params) -> tuple[Any, frozenset]:
        raise NotImplementedError(
            f"Abstract evaluation for '{self.name}' not implemented. Define the types of its "
            f"results with {self.name}_p.def_abstract_eval(f)."
        )

    def abstract(self, *avals, **params):
        out, effects = self.abstract_eval(*avals, **params)
        if effects:
            self._note(params, frozenset(effects))
        if self.multiple_results != isinstance(out, (list, tuple)):
            raise ValueError(
                f"the rule of def_abstract_eval of '{self.name}' must return "
                f"{'a list of types' if self.multiple_results else 'a type'}, as multiple_results is "
                f"{self.multiple_results}; it returned {out!r}."
            )
        return [_as_aval(a) for a in out] if self.multiple_results else _as_aval(out)

    def _note(self, params: dict, effects: frozenset) -> None:
        """Remember the effects of applications with these parameters."""
        self.effectful = True
        known = vars(self).setdefault("_effects_of", BoundedCache(1 << 10))
        try:
            key = self.params_key(params)
            known.keep(key, known.get(key, no_effects) | effects)
        except TypeError:  # a parameter cannot be hashed
            self._effects = self._effects | effects

    def _evaluates(self) -> bool:
        """Whether `impl` is defined, by `def_impl`, by an assignment or in a subclass."""
        return "impl" in vars(self) or type(self).impl is not Primitive.impl

    def missing(self, rule: str, transform: str, instead: str) -> NotImplementedError:
        how = {
            "jvp": "ad.primitive_jvps[{}] = rule, ad.defjvp or ad.deflinear2",
            "transpose": "ad.primitive_transposes[{}] = rule or ad.deflinear2",
            "batch": "batching.primitive_batchers[{}] = rule or batching.defvectorized",
        }.get(rule, "a method {}")
        return NotImplementedError(
            f"{transform} of primitive '{self.name}' is not possible: it has no `{rule}` rule. "
            f"Define one with {how.format(self.name + '_p')}, from gradix.interpreters."
        )

    def effects(self, params) -> frozenset:
        known = vars(self).get("_effects_of")
        if known is None:
            return self._effects
        try:
            return self._effects | known.get(self.params_key(params), no_effects)
        except TypeError:
            return self._effects

    def run(self, args, params):
        """Evaluate by the user's `impl`; without one, by compiling the lowering."""
        if not self._evaluates() and (self.lower is not None or self.expand is not None):
            return NotImplemented
        out = self.impl(*args, **params)
        return [as_array(x) for x in out] if self.multiple_results else as_array(out)


def _as_aval(a):
    if hasattr(a, "str_short"):
        return a
    return make_aval(tuple(a.shape), a.dtype, bool(getattr(a, "weak_type", False)))
