"""What a function does to the random keys it is given, as a signature; keys with assertions.

The names are those under which other libraries' tests ask for these facts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradix import lax
from gradix._api.inspect import make_jaxpr
from gradix._base.errors import KeyReuseError as KeyReuseError
from gradix._core.dtypes import KeyType
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from gradix._core.key_flow import key_flow
from gradix._core.user_primitive import Primitive
from gradix._ops.random.random import (
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)
from gradix.experimental.key_reuse import check_key_reuse as check_key_reuse
from gradix.interpreters import batching, mlir
from gradix.random.gamma_primitive import random_gamma_p


class _Keys:
    """The keys of one array that have a property: all, or those where `mask` is true."""

    __slots__ = ("idx", "mask")
    idx: int
    mask: bool | np.ndarray

    def __init__(self, idx: int, mask: bool | np.bool_ | np.ndarray = True):
        mask = np.array(mask, bool)
        mask.flags.writeable = False
        is_uniform = not mask.ndim or mask.all() or not mask.any()
        object.__setattr__(self, "idx", idx)
        object.__setattr__(self, "mask", bool(mask.all()) if is_uniform else mask)

    def __setattr__(self, name, value):
        raise ValueError(f"{type(self).__name__} is immutable, so its {name} cannot be set.")

    def _facts(self) -> tuple:
        mask = self.mask
        told = mask if isinstance(mask, bool) else (mask.shape, mask.tobytes())
        return type(self).__name__, self.idx, told

    def __eq__(self, other) -> bool:
        return isinstance(other, _Keys) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __repr__(self) -> str:
        shown = "" if self.mask is True else f", {self.mask}"
        return f"{type(self).__name__}({self.idx}{shown})"


class Sink(_Keys):
    """The keys of argument `idx` that a function consumes."""

    __slots__ = ()


class Source(_Keys):
    """The keys of result `idx` that are new, so that they may be consumed."""

    __slots__ = ()


class Forward(NamedTuple):
    """Result `out_idx` holds the keys of argument `in_idx`."""

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


_ORDER = Sink, Source, Forward


def _place(part) -> tuple:
    return _ORDER.index(type(part)), part.in_idx if isinstance(part, Forward) else part.idx


class KeyReuseSignature:
    """What a function does to keys: `Sink`, `Source` and `Forward`, any number of each.

    Example:
        >>> from gradix import random
        >>> from gradix.experimental.key_reuse._core import function_type_signature
        >>> function_type_signature(random.split, random.key(0))
        KeyReuseSignature(Sink(0), Source(0))
    """

    __slots__ = ("_args",)

    def __init__(self, *args: Sink | Source | Forward):
        self._args = sorted(args, key=_place)

    @property
    def sinks(self):
        return (a for a in self._args if isinstance(a, Sink))

    @property
    def sources(self):
        return (a for a in self._args if isinstance(a, Source))

    @property
    def forwards(self):
        return (a for a in self._args if isinstance(a, Forward))

    def __eq__(self, other) -> bool:
        return isinstance(other, KeyReuseSignature) and frozenset(self._args) == frozenset(other._args)

    def __hash__(self) -> int:
        return hash(frozenset(self._args))

    def __repr__(self) -> str:
        return f"KeyReuseSignature({', '.join(map(repr, self._args))})"


def _is_key(v) -> bool:
    return isinstance(v.aval.dtype, KeyType)


def jaxpr_type_signature(jaxpr: Jaxpr) -> KeyReuseSignature:
    """The signature of a program.

    Raises:
        KeyReuseError: the program consumes a key twice.
    """
    flow = key_flow(ClosedJaxpr(jaxpr, ()))
    parts: list = []
    for i, v in enumerate(jaxpr.invars):
        if i in flow.consumed:
            parts.append(Sink(i, _mask(v, flow.consumed[i][0])))
    for i, v in enumerate(jaxpr.outvars):
        if not _is_key(v):
            continue
        if i in flow.forwarded:
            parts.append(Forward(flow.forwarded[i], i))
            continue
        fresh = ~_mask(v, flow.spent[i][0] if i in flow.spent else [])
        if fresh.any():
            parts.append(Source(i, fresh))
    return KeyReuseSignature(*parts)


def _mask(v, positions) -> np.ndarray:
    mask = np.zeros(v.aval.size, bool)
    mask[positions] = True
    return mask.reshape(v.aval.shape)


def function_type_signature(fun: Callable, *args: Any) -> KeyReuseSignature:
    """The signature of a function at arguments, of which only the types matter."""
    return jaxpr_type_signature(make_jaxpr(fun)(*args).jaxpr)


def check_key_reuse_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that a program consumes no key twice; it raises KeyReuseError where one does."""
    jaxpr_type_signature(jaxpr)


def key_reuse_signature_from_eqn(eqn: JaxprEqn) -> KeyReuseSignature:
    """The signature of one equation."""
    invars = [Var(v.aval) for v in eqn.invars]
    outvars: list = [Var(v.aval) for v in eqn.outvars]
    alone = JaxprEqn(eqn.primitive, invars, outvars, eqn.params, source=eqn.source)
    return jaxpr_type_signature(Jaxpr([], invars, outvars, [alone]))


def unknown_signature(eqn: JaxprEqn) -> KeyReuseSignature:
    """A signature on the safe side: an equation consumes the keys it is given, and makes new ones."""
    return KeyReuseSignature(
        *[Sink(i) for i, v in enumerate(eqn.invars) if _is_key(v)],
        *[Source(i) for i, v in enumerate(eqn.outvars) if _is_key(v)],
    )


# -- keys with assertions --------------------------------------------------------------------------


def _identity(name: str) -> Primitive:
    """A primitive whose result is its operand."""
    identity = Primitive(name)
    identity.rearranges = True
    identity.def_impl(lambda x, **_: x)
    identity.def_abstract_eval(lambda x, **_: x)
    identity.host = lambda x, **_: x  # type: ignore[method-assign]
    batching.defvectorized(identity)
    mlir.register_lowering(identity, lambda ctx, x, **_: [x])
    return identity


consume_p = _identity("consume")
consume_p.consumes_keys = True
assert_consumed_value_p = _identity("assert_consumed_value")
assert_consumed_value_p.rearranges = False  # for its own rule


def consume(key):
    """The same keys, which are consumed from here on."""
    return consume_p.bind(key)


def assert_consumed(key, value=True) -> None:
    """Let checks of key reuse raise AssertionError unless the keys are consumed where `value` is."""
    mask = np.asarray(value, bool)
    assert_consumed_value_p.bind(key, value=mask.tolist() if mask.ndim else bool(mask))


def assert_unconsumed(key) -> None:
    """Let checks of key reuse raise AssertionError if any of the keys is consumed."""
    assert_consumed(key, False)


_kept = KeyReuseSignature(Forward(0, 0))
_made = KeyReuseSignature(Source(0))
_taken = KeyReuseSignature(Sink(0))
# The signatures of primitives which are the same for all operands.
key_reuse_signatures = {
    consume_p: KeyReuseSignature(Sink(0), Forward(0, 0)),
    assert_consumed_value_p: _kept,
    random_bits_p: _taken,
    random_gamma_p: _taken,
    random_split_p: KeyReuseSignature(Sink(0), Source(0)),
    random_fold_in_p: _made,
    random_clone_p: _made,
    random_seed_p: _made,
    random_wrap_p: _made,
    random_unwrap_p: KeyReuseSignature(),
    lax.eq_p: KeyReuseSignature(),
    lax.ne_p: KeyReuseSignature(),
    lax.broadcast_in_dim_p: _kept,
    lax.convert_element_type_p: _kept,
    lax.copy_p: _kept,
    lax.reshape_p: _kept,
    lax.squeeze_p: _kept,
}
