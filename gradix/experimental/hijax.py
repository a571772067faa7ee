"""Types and primitives that libraries define on top of arrays.

Values of a `HiType` can be arguments and results of transformed functions, and carries of loops.
Inside they are opaque, and only operations of their library apply to them. Values of a
`MutableHiType` can be arguments, be captured, and be made inside; what a function does to them is
done to them when it has run.
"""

from __future__ import annotations

import functools
import operator as _operator
from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._api import hi_boxes as _hi_boxes, hi_calls as _hi_calls, hi_refs as _hi_refs  # noqa: F401
from gradix._api.hi_values import HiValue, is_value, register as _register, type_of
from gradix._api.inspect import typeof as _typeof
from gradix._api.mapping.custom_batching import custom_vmap as _custom_vmap
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import tree_flatten as _tree_flatten, tree_leaves as _tree_leaves, tree_map as _tree_map
from gradix._core.aval import AbstractValue as AbstractValue, ShapedArray as ShapedArray
from gradix._core.refs import AbstractRef as AbstractRef
from gradix._core.trace import state
from gradix._core.user_primitive import Primitive
from gradix._transforms.batch import AxisData as _AxisData
from gradix.interpreters.ad import (
    Zero as Zero,
    instantiate_zeros as instantiate_zeros,
    is_undefined_primal as is_undefined_primal,
)
from gradix.numpy.shapes import moveaxis as _moveaxis

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiPspec",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "VJPHiPrimitive",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "cur_qdd",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]


class HiType(AbstractValue):
    """The base class of types whose values consist of arrays.

    A subclass must be hashable, and define

    - `lo_ty() -> [ShapedArray]`: the types of the arrays that a value is made of;
    - `lower_val(value) -> [array]` and `raise_val(*arrays) -> value`;
    - `to_tangent_aval()`: the type of tangents, which is a `HiType` or the type of an array.

    A value that is a dataclass is made of the arrays in its fields where its type does not define the first three.

    Loops over rows of such values take the types of rows and of stacks of them from

    - `dec_rank(size, spec)` and `inc_rank(size, spec)`, where `spec` is what `leading_axis_spec()` returns.

    `shard_map` with a `HiPspec` needs the types of the parts of devices, and of the whole of them,

    - `shard(mesh, manual_axes, check_vma, spec)` and `unshard(mesh, check_vma, spec)`.

    The types of arrays have these methods, too. Derivatives add values of the type by adding their arrays.

    Example:
        >>> import dataclasses
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import hijax
        >>> @dataclasses.dataclass(frozen=True)
        ... class Interval:
        ...     low: gradix.Array
        ...     high: gradix.Array
        >>> @dataclasses.dataclass(frozen=True)
        ... class IntervalType(hijax.HiType):
        ...     end: hijax.ShapedArray
        ...     def lo_ty(self):
        ...         return [self.end, self.end]
        ...     def lower_val(self, value):
        ...         return [value.low, value.high]
        ...     def raise_val(self, low, high):
        ...         return Interval(low, high)
        >>> hijax.register_hitype(Interval, lambda value: IntervalType(gradix.typeof(value.low)))
        >>> gradix.jit(lambda value: value)(Interval(jnp.float32(1), jnp.float32(2)))
        Interval(low=Array(1., dtype=float32), high=Array(2., dtype=float32))
    """

    has_qdd = False

    def is_high(self) -> bool:
        """Whether values of the type consist of arrays and are not arrays themselves: True."""
        return True

    def lo_ty(self) -> list:
        """The types of the arrays that a value consists of; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} must implement `lo_ty`.")

    def lower_val(self, hi_val: Any) -> list:
        """The arrays that a value consists of; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} must implement `lower_val`.")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value that consists of these arrays; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} must implement `raise_val`.")

    def to_tangent_aval(self) -> Any:
        """The type of tangents, a `HiType` or the type of an array; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} must implement `to_tangent_aval`.")

    def to_ct_aval(self) -> Any:
        """The type of cotangents, which is that of tangents."""
        return self.to_tangent_aval()

    def leading_axis_spec(self) -> Any:
        """What says that a loop steps along the first axes of a value's arrays; a subclass defines it."""
        raise NotImplementedError(f"for loops over rows, {type(self).__name__} must implement `leading_axis_spec`.")

    def dec_rank(self, size: Any, spec: Any) -> Any:
        """The type of a row; a subclass defines it."""
        raise NotImplementedError(f"for loops over rows, {type(self).__name__} must implement `dec_rank`.")

    def inc_rank(self, size: Any, spec: Any) -> Any:
        """The type of stacked values; a subclass defines it."""
        raise NotImplementedError(f"for results of loops, {type(self).__name__} must implement `inc_rank`.")

    def shard(self, mesh: Any, manual_axes: Any, check_vma: bool, spec: Any) -> Any:
        """The type of one device's part of a value; a subclass defines it."""
        raise NotImplementedError(f"for shard_map, {type(self).__name__} must implement `shard`.")

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> Any:
        """The type of the whole of which devices have parts; a subclass defines it."""
        raise NotImplementedError(f"for shard_map, {type(self).__name__} must implement `unshard`.")


class HiPspec:
    """The base class of what a library writes in `in_specs` and `out_specs` of `shard_map` for its values.

    A subclass defines `to_lo()`, which lists the PartitionSpecs of the arrays that a value is made of, and may
    define `to_tangent_spec()`, the spec of tangents, if these are made of other arrays.

    Example:
        >>> from gradix.experimental import hijax
        >>> from gradix.sharding import PartitionSpec as P
        >>> class RowsOfBoth(hijax.HiPspec):
        ...     def to_lo(self):
        ...         return [P("x"), P("x")]
        >>> RowsOfBoth().to_tangent_spec().to_lo()
        [P('x',), P('x',)]
    """

    def to_lo(self) -> Any:
        """The PartitionSpec of each array that a value is made of; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} must implement `to_lo`.")

    def to_tangent_spec(self) -> Any:
        """The spec of tangents: the same."""
        return self

    def to_ct_spec(self) -> Any:
        """The spec of cotangents: that of tangents."""
        return self.to_tangent_spec()


class MutableHiType(AbstractValue):
    """The base class of types whose values can change; a value's state includes its arrays' types.

    The state of a value, `value.cur_qdd()`, is hashable. A subclass must be hashable, and define

    - `lo_ty_qdd(state) -> [ShapedArray]`: the types of the arrays of a value in this state;
    - `new_from_loval(state, *arrays) -> value`;
    - `read_loval(state, value) -> [array]` and `update_from_loval(state, value, *arrays)`;
    - `to_tangent_aval()`: the type of tangents.

    A method `normalize()` of states, if there is one, returns the state without weak types.

    Example:
        >>> from gradix.experimental import hijax
        >>> class BoxType(hijax.MutableHiType):
        ...     pass
        >>> BoxType.has_qdd, BoxType().is_high()
        (True, True)
    """

    has_qdd = True

    def is_high(self) -> bool:
        """Whether the type is above arrays."""
        return True

    def lo_ty_qdd(self, state: Any) -> list:
        raise NotImplementedError(f"{type(self).__name__} must implement `lo_ty_qdd`.")

    def new_from_loval(self, state: Any, *lo_vals: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must implement `new_from_loval`.")

    def read_loval(self, state: Any, hi_val: Any) -> list:
        raise NotImplementedError(f"{type(self).__name__} must implement `read_loval`.")

    def update_from_loval(self, state: Any, hi_val: Any, *lo_vals: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} must implement `update_from_loval`.")


class AvalQDD(NamedTuple):
    """A type, and the known state of one of its values.

    Example:
        >>> from gradix.experimental import hijax
        >>> class BoxType(hijax.MutableHiType):
        ...     def __repr__(self):
        ...         return "Box"
        >>> hijax.AvalQDD(BoxType(), "empty")
        AvalQDD(aval=Box, qdd='empty')
    """

    aval: AbstractValue
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type, and the state of one of its values, which an operation may change.

    Example:
        >>> from gradix.experimental import hijax
        >>> class BoxType(hijax.MutableHiType):
        ...     def __repr__(self):
        ...         return "Box"
        >>> hijax.AvalMutableQDD(BoxType(), "empty").mutable_qdd
        'empty'
    """

    aval: AbstractValue
    mutable_qdd: Any


class aval_method(NamedTuple):
    """A method that a type adds to its values.

    Example:
        >>> import dataclasses
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import hijax
        >>> @dataclasses.dataclass(frozen=True)
        ... class Angle:
        ...     radians: gradix.Array
        >>> class Sine(hijax.VJPHiPrimitive):
        ...     def __init__(self, angle):
        ...         self.in_avals, self.out_aval, self.params = (angle,), angle.radians, {}
        ...         super().__init__()
        ...     def expand(self, angle):
        ...         return jnp.sin(angle.radians)
        >>> @dataclasses.dataclass(frozen=True)
        ... class AngleType(hijax.HiType):
        ...     radians: hijax.ShapedArray
        ...     sine = hijax.aval_method(lambda angle: Sine(gradix.typeof(angle))(angle))
        ...     def lo_ty(self):
        ...         return [self.radians]
        ...     def lower_val(self, angle):
        ...         return [angle.radians]
        ...     def raise_val(self, radians):
        ...         return Angle(radians)
        >>> hijax.register_hitype(Angle, lambda angle: AngleType(gradix.typeof(angle.radians)))
        >>> gradix.jit(lambda angle: angle.sine())(Angle(jnp.float32(0)))
        Array(0., dtype=float32)
    """

    fun: Callable


class aval_property(NamedTuple):
    """A property that a type adds to its values.

    Example:
        >>> import dataclasses
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import hijax
        >>> @dataclasses.dataclass(frozen=True)
        ... class Angle:
        ...     radians: gradix.Array
        >>> class Degrees(hijax.VJPHiPrimitive):
        ...     def __init__(self, angle):
        ...         self.in_avals, self.out_aval, self.params = (angle,), angle.radians, {}
        ...         super().__init__()
        ...     def expand(self, angle):
        ...         return jnp.rad2deg(angle.radians)
        >>> @dataclasses.dataclass(frozen=True)
        ... class AngleType(hijax.HiType):
        ...     radians: hijax.ShapedArray
        ...     degrees = hijax.aval_property(lambda angle: Degrees(gradix.typeof(angle))(angle))
        ...     def lo_ty(self):
        ...         return [self.radians]
        ...     def lower_val(self, angle):
        ...         return [angle.radians]
        ...     def raise_val(self, radians):
        ...         return Angle(radians)
        >>> hijax.register_hitype(Angle, lambda angle: AngleType(gradix.typeof(angle.radians)))
        >>> gradix.jit(lambda angle: angle.degrees)(Angle(jnp.float32(jnp.pi)))
        Array(180., dtype=float32)
    """

    fget: Callable


class EffectTypes:
    """A set of allowed effects, by class."""

    def __init__(self):
        self.types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        self.types.add(effect_type)

    def contains(self, effect) -> bool:
        return isinstance(effect, tuple(self.types))


control_flow_allowed_effects = EffectTypes()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Set the function by which `typeof` finds the type of values of a class.

    Args:
        val_cls: the class of the values.
        typeof_fn: a function of a value that returns its type, such as an instance of a `HiType`.

    Example:
        >>> import gradix
        >>> from gradix.experimental import hijax
        >>> class Pair:
        ...     pass
        >>> class PairType(hijax.HiType):
        ...     def __repr__(self):
        ...         return "Pair"
        >>> hijax.register_hitype(Pair, lambda pair: PairType())
        >>> gradix.typeof(Pair())
        Pair
    """
    _register(val_cls, typeof_fn)


def cur_qdd(value: Any) -> Any:
    """The current state of a mutable value, as its method `cur_qdd` returns it.

    Raises:
        TypeError: the value is not of a mutable type.

    Example:
        >>> from gradix.experimental import hijax
        >>> class Box:
        ...     def cur_qdd(self):
        ...         return "empty"
        >>> class BoxType(hijax.MutableHiType):
        ...     pass
        >>> hijax.register_hitype(Box, lambda box: BoxType())
        >>> cur_qdd(Box())
        'empty'
    """
    aval = _typeof(value)
    if not getattr(aval, "has_qdd", False):
        raise TypeError(
            f"cur_qdd takes values of a type whose `has_qdd` is True, such as a MutableHiType; got a "
            f"value of type {aval}."
        )
    return _hi_boxes.state_of(value)


class HiPrimitive(Primitive):
    """An operation on values above arrays, which `to_lojax(*values, **params)` evaluates.

    Outside of transformations `impl(*values, **params)` is called instead, if there is one;
    and `jvp(primals, tangents, **params)` differentiates it.

    Example:
        >>> from gradix.experimental import hijax
        >>> class Greet(hijax.HiPrimitive):
        ...     def impl(self, name, *, loudly):
        ...         return name.upper() if loudly else name
        >>> Greet("greet").bind("hello", loudly=True)
        'HELLO'
    """

    def bind(self, *args, **params):
        """Evaluate the operation.

        Raises:
            NotImplementedError: the operation has no rule for a derivative that is taken.
        """
        if any(map(_hi_boxes.is_mutable, args)) or self._makes_mutable(args, params):
            evaluate = self.to_lojax if state.depth else self._evaluate
            return _hi_boxes.applied(functools.partial(evaluate, **params), args)
        if not _hi_calls.is_traced(args):
            given = [a.raised() if type(a) is HiValue else a for a in args]
            return self._evaluate(*given, **params)

        def expand(*values):
            return self.to_lojax(*values, **params)

        def jvp(primals, tangents):
            return self.jvp(primals, tangents, **params)

        has_jvp = type(self).jvp is not HiPrimitive.jvp
        return _hi_calls.called(args, expand, jvp if has_jvp else None, None, self.name)

    def _evaluate(self, *values, **params):
        """Evaluate the operation on concrete values: by `impl`, or by `to_lojax` without one."""
        has_impl = "impl" in self.__dict__ or type(self).impl is not Primitive.impl
        has_other = type(self).to_lojax is not HiPrimitive.to_lojax
        evaluate = self.to_lojax if has_other and not has_impl else self.impl
        return evaluate(*values, **params)

    def _makes_mutable(self, args, params) -> bool:
        """Whether the result is a value that can change, as the operation's types say."""
        if not state.depth or type(self).abstract_eval is Primitive.abstract_eval:
            return False
        avals = [type_of(a) if is_value(a) else _typeof(a) for a in args]
        return isinstance(self.abstract_eval(*avals, **params)[0], AvalQDD)

    def to_lojax(self, *values, **params):
        """Evaluate the operation on values that consist of traced arrays; by default as `impl`."""
        return self.impl(*values, **params)


class _Accumulator:
    """Sums the cotangents of an argument that `vjp_bwd` passes to it."""

    def __init__(self):
        self.value: Any = None

    def accum(self, ct: Any) -> None:
        """Add a cotangent."""
        self.value = ct if self.value is None else _tree_map(_operator.add, self.value, ct)


class VJPHiPrimitive:
    """An operation on arrays and values above arrays; each instance serves one set of types.

    The `__init__` of a subclass sets `in_avals`, a tuple of the arguments' types (or of trees of
    types), `out_aval`, and `params`, a dictionary whose items become attributes. It then calls
    `super().__init__()`. A subclass defines

    - `expand(*args)`, which computes the value by operations on arrays;
    - for reverse mode, `vjp_fwd(nzs_in, *args) -> (out, res)` together with
      `vjp_bwd_retval(res, ct) -> cts`, which returns a tuple with a cotangent for each argument, or
      with `vjp_bwd(res, ct, *accums)`, which calls `accum` of each accumulator;
    - for forward mode, `jvp(primals, tangents) -> (out, tangent)`;
    - `batch(axis_data, args, dims) -> (out, dims)`, if `vmap` must not simply map `expand`.

    Raises:
        AttributeError: `__init__` did not set one of the three attributes, or the class defines
            both `vjp_bwd` and `vjp_bwd_retval`.

    Example:
        >>> import gradix
        >>> from gradix.experimental.hijax import VJPHiPrimitive
        >>> class Cube(VJPHiPrimitive):
        ...     def __init__(self, x):
        ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
        ...         super().__init__()
        ...     def expand(self, x):
        ...         return x ** 3
        ...     def vjp_fwd(self, nzs_in, x):
        ...         return self(x), x
        ...     def vjp_bwd_retval(self, x, ct):
        ...         return (3 * x ** 2 * ct,)
        >>> gradix.grad(lambda x: Cube(gradix.typeof(x))(x))(2.0)
        Array(12., dtype=float32, weak_type=True)
    """

    in_avals: Any
    out_aval: Any
    params: dict[str, Any]
    effects: frozenset = frozenset()

    def __init__(self):
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(
                    f"subclass {type(self).__name__} should set `{name}` before it calls super().__init__()."
                )
        cls, base = type(self), VJPHiPrimitive
        if cls.vjp_bwd is not base.vjp_bwd and cls.vjp_bwd_retval is not base.vjp_bwd_retval:
            raise AttributeError(
                f"subclass {cls.__name__} defines both `vjp_bwd` and `vjp_bwd_retval`: they are two forms of one "
                "rule. Define one of them."
            )
        for name, value in self.params.items():
            setattr(self, name, value)

    def __call__(self, *args: Any) -> Any:
        """Apply the operation by `expand`; its derivatives follow the rules of the class."""
        leaves = _tree_leaves(args, is_leaf=is_value)
        if not _hi_calls.is_traced(leaves):
            return self.expand(*_hi_calls.concrete(args))
        cls, nzs = type(self), _tree_map(lambda _: True, args, is_leaf=is_value)
        forward = self.vjp_fwd if cls.vjp_fwd is not VJPHiPrimitive.vjp_fwd else None
        jvp = self.jvp if cls.jvp is not VJPHiPrimitive.jvp else None
        if jvp is None and cls.lin is not VJPHiPrimitive.lin:
            jvp = lambda xs, ts: self._jvp_of_lin(nzs, xs, ts)
        expand = self.expand
        if cls.batch is not VJPHiPrimitive.batch and not any(map(is_value, leaves)):
            expand = self._mapped()
        rules = None if forward is None else (forward, self._pull)
        return _hi_calls.called(args, expand, jvp, rules, cls.__name__)

    def _pull(self, res: Any, ct: Any):
        if type(self).vjp_bwd is VJPHiPrimitive.vjp_bwd:
            return self.vjp_bwd_retval(res, ct)
        accumulators = [_Accumulator() for _ in self.in_avals]
        self.vjp_bwd(res, ct, *accumulators)
        return tuple([a.value for a in accumulators])

    def _jvp_of_lin(self, nzs, primals, tangents):
        out, res = self.lin(nzs, *primals)
        return out, self.linearized(res, *tangents)

    def _mapped(self) -> Callable:
        ruled = _custom_vmap(self.expand)

        @ruled.def_vmap
        def rule(axis_size, in_batched, *args):
            dims = _tree_map(lambda b: 0 if b else None, in_batched)
            out, at = self.batch(_AxisData(None, axis_size), args, tuple(dims))
            leaves, tree = _tree_flatten(out)
            at = [at] * len(leaves) if at is None or isinstance(at, int) else _tree_flatten(at)[0]
            placed = [x if a is None else _moveaxis(x, a, 0) for x, a in zip(leaves, at)]
            return tree.unflatten(placed), tree.unflatten([a is not None for a in at])

        return ruled

    # -- what a subclass defines -------------------------------------------------------------------

    def expand(self, *args: Any) -> Any:
        raise NotImplementedError(f"subclass {type(self).__name__} must implement `expand`.")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
        raise NotImplementedError(f"for grad support, subclass {type(self).__name__} must implement `vjp_fwd`.")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        for accumulator, ct in zip(arg_accums, self.vjp_bwd_retval(res, outgrad)):
            accumulator.accum(ct)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        raise NotImplementedError(
            f"for grad support, subclass {type(self).__name__} must implement `vjp_bwd` or `vjp_bwd_retval`."
        )

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        raise NotImplementedError(f"for jvp support, subclass {type(self).__name__} must implement `jvp`.")

    def lin(self, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
        raise NotImplementedError(f"for linearize support, subclass {type(self).__name__} must implement `lin`.")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        raise NotImplementedError(f"for linearize support, subclass {type(self).__name__} must implement `linearized`.")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> tuple[Any, Any]:
        raise NotImplementedError(f"for vmap support, subclass {type(self).__name__} must implement `batch`.")


__dir__ = _own_names(__name__)
