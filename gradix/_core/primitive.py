"""The class `Primitive`: an operation, its rules for each transform, and its properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._core import seams, trace as _trace
from gradix._core.array import as_array
from gradix._core.aval import ShapedArray
from gradix._core.current_trace import bind_with_trace
from gradix._core.divisions import NO_SUMS, ShardingTypeError, Sums, sums, sums_kept
from gradix._core.effects import no_effects
from gradix._core.keys import typed_items


class Linear:
    """Marks a linear operand in a transpose rule, which must return its cotangent.

    Example:
        >>> import gradix
        >>> from gradix.interpreters import ad
        >>> ad.UndefinedPrimal(gradix.typeof(1.0)).aval
        ShapedArray(float32[], weak_type=True)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)

    def __jax_array__(self):
        raise NotImplementedError(
            "the function to transpose is not linear: it combines two values that both depend "
            f"on its arguments, one of type {self.aval}. Use vjp for functions that are not "
            "linear."
        )

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


class Inlining(NamedTuple):
    """When a transformation replaces a call by the equations of the called program."""

    # linearization inlines the call, so it records the operations inside of a user's rule
    on_tapes: bool = False
    # third and higher derivatives inline it, since equal equations are merged outside calls only
    in_high_orders: bool = False


class MeshTraits(NamedTuple):
    """How a primitive behaves among the devices of a mesh."""

    # its operands may vary over different mesh axes inside of `shard_map`
    mixes: bool = False
    # the types that `abstract` returns already say over which mesh axes the results vary
    types_inside: bool = False
    placed: bool = False  # it runs on the devices of the mesh that its parameters name
    # the types that `abstract` returns already say how results are divided over explicit axes
    divides: bool = False
    # "kept" makes the result of unreduced operands unreduced; "product" does so if only one
    # of two factors is unreduced, "quotient" if only the dividend is
    sums: str = ""
    # which operands can be summands of values that devices add up later, where each computes on its own: "all" of
    # them at once, "one" factor of a product, or only the "first" or the "last"; derived from `sums` and `live`
    # where it is empty
    linear: str = ""


class ValueTraits(NamedTuple):
    """Properties of the values of a primitive's results, for any operands."""

    # whether an element of the result is NaN wherever an operand's element at that index is NaN
    keeps_nan: bool = False
    # for a product: the finite coefficient with which a cotangent of zero stays zero
    neutral: int | None = None
    # whether finite operands can give infinite or NaN results; or a function
    # (operands, params) -> bool that decides it for one equation
    singular: Any = False


class Primitive:
    """One operation with all its rules.

    This class declares every rule and flag that the package reads of a primitive, and
    `python -m gradix._ops` lists what each primitive defines. Where a rule is missing, the error
    names the rule and says what to do instead.

    Every rule takes arrays as positional and parameters as keyword arguments. The rules of a
    primitive with `multiple_results` return a list where those of other primitives return a value.

    These rules say what the primitive means:

    - `abstract(*avals, **params)`: the types of the results; raises the user's shape and dtype
      errors.
    - `lower(em, out, *values, **params)`: StableHLO through the emitter; `out` is the aval (list of
      avals). Or `expand(*args, **params)`: a composition of other primitives.
    - `effects(params)`, `names(params)`: side effects, and the named axes it communicates over.
    - `show(params)`: the parameters as a jaxpr prints them.

    These rules evaluate the primitive on concrete arrays:

    - `host(*arrays, **params)`: takes and returns NumPy arrays, with exactly the values that the
      compiled form computes. The rule of a primitive with a single result may return
      NotImplemented for the result dtypes listed in `declines`; XLA then computes the result.
    - `specialise(*avals, **params)`: returns the host rule for these types as a function of the
      arrays alone, or None. It is defined only where that function is quicker than `host`.
    - `threaded(*avals, **params)`: returns "numpy" or "scipy" where the host rule gives the BLAS or
      LAPACK of that package enough work to start its thread pool; else None.
    - `run(args, params)`: evaluates a primitive with inner programs; where it returns
      NotImplemented, the primitive is compiled.
    - `work(params)`: the number of equations that a run evaluates, for primitives with inner
      programs.
    - `params_key(params)`: a key by which programs compiled for these parameters are found again.

    These rules transform the primitive:

    - `jvp(primals, tangents, **params) -> (out, tangent)`: None stands for a tangent of zero, in
      the arguments and in the result.
    - `linearize`: as `jvp`, used while the tangent operations are being recorded; it differs from
      `jvp` only for primitives with inner programs.
    - `transpose(ct, *args, **params) -> [ct or None per operand]`: linear operands are passed as
      `Linear`; with `multiple_results`, `ct` is a list in which None stands for zero.
    - `transpose_live(cts, lives, *args, **params)`: as `transpose`, but takes and returns a mask of
      live elements beside each cotangent; for primitives whose `live` is "call".
    - `batch(size, args, axes, **params) -> (out, axis)`: None stands for an array without the batch
      axis, in the arguments and in the result.
    - `dependent(marks, params, smooth) -> flags`: says which results depend on the marked operands;
      with `smooth`, only dependences whose derivative may be nonzero count. Without this rule
      every result is taken to depend on every operand.
    - `mask(sizes, eqn, *args)`: evaluates an equation whose shapes hold sizes that values decide, on
      buffers of the greatest sizes; without it, the rules of the package's own primitives are in
      `gradix._api.counted`.
    - `dce(used, eqn) -> eqn`: removes from an equation the unused results, and everything that only
      these results need.
    - `divide(mesh, avals, outs, params) -> rows`: says over which explicit mesh axes each result is
      divided.
    """

    # -- rules that a primitive may lack -----------------------------------------------------------
    params_key = staticmethod(typed_items)
    host: Callable[..., Any] | None = None
    specialise: Callable[..., Any] | None = None
    threaded: Callable[..., str | None] | None = None
    run: Callable[..., Any] | None = None
    work: Callable[..., int] | None = None
    expand: Callable[..., Any] | None = None
    lower: Callable[..., Any] | None = None
    transpose_live: Callable[..., Any] | None = None
    dependent: Callable[..., list] | None = None
    dce: Callable[..., Any] | None = None

    # -- its form ----------------------------------------------------------------------------------
    multiple_results = False
    effectful = False  # whether `effects(params)` can be other than empty
    named = False  # whether `names(params)` can be other than empty
    # whether it only calls the program in its parameter `jaxpr` or `call_jaxpr`
    is_call = False
    # whether its parameter `call_jaxpr` is an open Jaxpr; libraries that interpret jaxprs read this
    call_primitive = False
    inlining = Inlining()
    mesh = MeshTraits()
    accepts: frozenset | None = None  # the dtypes of operands; None where they depend on more
    # the StableHLO operation that computes it or combines two elements; or a lowering function
    hlo: Any = None
    identity: Callable[..., Any] | None = None  # dtype -> the element that a reduction starts from
    # the binary operation by which a reduction or scatter combines two elements
    combine: Any = None
    # whether its first operand is a random key that must not be used again
    consumes_keys = False

    # -- derivatives -------------------------------------------------------------------------------
    only_backward = False  # whether only the transpose of this linear map is known
    # how its transpose handles masks of live cotangent elements: see _ops/cotangent_masks.py
    live: str | None = None
    # whether its transpose makes elements of a cotangent dead; or a function (params) -> bool
    selects: Any = False

    # -- its cost, and its elements ----------------------------------------------------------------
    # eager evaluation prefers the host rule up to this many elements of operands and results
    host_limit = 1 << 17
    declines: frozenset = frozenset()  # the dtypes of results for which the host rule may decline
    # whether the host rule never raises a floating-point exception
    silent = False
    # whether it loops or calls a library, so that skipping it pays
    costly = False
    # how long an elementwise function takes: "simple", "periodic" or "long"
    formula: str | None = None
    values = ValueTraits()
    # whether it only copies elements from operands to results, for elements of any type
    rearranges = False

    # whether `bind` takes a parameter `sharding` for the result, which is no parameter of its rules
    takes_sharding = False

    # -- sizes that values decide ------------------------------------------------------------------
    mask: Callable[..., Any] | None = None
    defines_size = False  # whether it gives a dimension variable its value

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args, **params):
        """Apply the primitive to arrays or tracers in the current trace.

        `sharding`, where a primitive has no such parameter, says how its result is divided.
        """
        if self.takes_sharding:
            out = _trace.bind(self, [as_array(a) for a in args], {k: v for k, v in params.items() if k != "sharding"})
            asked = params.get("sharding")
            return out if asked is None else seams.reshard(out, asked)
        return _trace.bind(self, [as_array(a) for a in args], params)

    # -- rules that every primitive has; those not defined raise an error --------------------------

    def abstract(self, *avals, **params) -> Any:
        raise self.missing("abstract", "tracing", "give the primitive its result types")

    def jvp(self, primals, tangents, **params) -> Any:
        raise self.missing("jvp", "differentiation", "wrap the call in custom_jvp or custom_vjp")

    def linearize(self, primals, tangents, **params) -> Any:
        return self.jvp(primals, tangents, **params)

    def transpose(self, ct, *args, **params) -> Any:
        raise self.missing("transpose", "reverse-mode differentiation", "wrap the call in custom_vjp")

    def batch(self, size, args, axes, **params) -> Any:
        raise self.missing("batch", "vmap", "go through the examples one by one with lax.map")

    def effects(self, params) -> frozenset:
        return no_effects

    def names(self, params) -> tuple:
        """The named axes the primitive communicates over."""
        return ()

    def show(self, params) -> dict:
        """The parameters as a jaxpr prints them."""
        return params

    # -- among the devices of a mesh ---------------------------------------------------------------

    def asked_of(self, params) -> tuple:
        """The shardings that the parameters request for the results; empty where there are none."""
        return ()

    def needs_varying(self, params) -> frozenset:
        """The mesh axes over which the operands must vary."""
        return no_effects

    def varying(self, vma: frozenset, params, tracked: frozenset) -> frozenset:
        """The axes among `tracked` over which results vary if the operands vary over `vma`."""
        return vma

    def divide(self, mesh, avals, outs, params) -> list:
        """How each result is divided, where operands are divided over explicit axes of `mesh`.

        Returns:
            for each result a tuple, which has for each axis None, a mesh axis, or a tuple of these.

        Raises:
            ShardingTypeError: the division does not follow from how the operands are divided.
        """
        raise ShardingTypeError(
            f"how the result of '{self.name}' is divided does not follow from its operands' types: "
            f"{', '.join([a.str_short() for a in avals])}. Gather them with gradix.sharding.reshard(x, "
            "PartitionSpec()), or let the compiler divide: gradix.sharding.auto_axes(f, out_sharding=...)."
        )

    def sums(self, mesh, avals, params) -> Sums:
        """The explicit mesh axes over which the results are unreduced, and their cotangents."""
        if not any(a.division is not None and sums(a) != NO_SUMS for a in avals):
            return NO_SUMS
        return sums_kept(self, mesh, avals)

    # -- methods for libraries that interpret jaxprs -----------------------------------------------

    def impl(self, *args, **params) -> Any:
        """Evaluate the primitive on concrete arrays, outside of every trace."""
        return seams.evaluate(self, [as_array(a) for a in args], params)

    def abstract_eval(self, *avals, **params) -> tuple[Any, frozenset]:
        """The types of the results, and the effects."""
        return self.abstract(*avals, **params), self.effects(params)

    def get_bind_params(self, params) -> dict:
        """The parameters of an equation as `bind` takes them."""
        return dict(params)

    def hand_to(self, trace, args, params) -> Any:
        """Let a trace that a library defines process this primitive."""
        return trace.process_primitive(self, args, params)

    def bind_with_trace(self, trace, args, avals, params) -> Any:
        """Apply the primitive in `trace`, for interpreters that libraries define."""
        return bind_with_trace(trace, self, [as_array(a) for a in args], params)

    def missing(self, rule: str, transform: str, instead: str) -> NotImplementedError:
        kind = type(self)
        # a class of this package is none that its users change
        method = "" if kind.__module__.startswith("gradix.") else f"; or add a method `{rule}` to class {kind.__name__}"
        return NotImplementedError(
            f"{transform} of primitive '{self.name}' is not possible: it has no `{rule}` rule.\n"
            f"Instead, {instead}{method}."
        )

    def __repr__(self) -> str:
        return self.name

    def __deepcopy__(self, memo) -> Primitive:
        return self

    def __copy__(self) -> Primitive:
        return self
