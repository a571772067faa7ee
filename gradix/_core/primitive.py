"""The primitive: one operation, every rule the transforms know for it, and all that is declared of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._core import trace as _trace
from gradix._core.array import as_array
from gradix._core.aval import ShapedArray
from gradix._core.current_trace import bind_with_trace
from gradix._core.divisions import NO_SUMS, ShardingTypeError, Sums, sums, sums_kept
from gradix._core.effects import no_effects


class Linear:
    """Stands, in a transpose rule, for an operand the rule must give the cotangent of."""

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
    """When a transformation works on the equations of a call's program in place of the call."""

    # where tangents are recorded, so that a user's rule is recorded by what it does
    on_tapes: bool = False
    # from the third derivative on, where equal work is looked for outside of calls
    in_high_orders: bool = False


class MeshTraits(NamedTuple):
    """How a primitive behaves among the devices of a mesh."""

    # its operands may vary over different mesh axes inside of `shard_map`
    mixes: bool = False
    # `abstract` gives the types of a program's results, which tell these axes
    types_inside: bool = False
    placed: bool = False  # it runs on the devices of the mesh that its parameters name
    # `abstract` gives the types of results with their division over explicit axes
    divides: bool = False
    # what becomes of operands that are still to be summed over mesh axes: "kept" where the result
    # may be summed in their place, "product" where that is so of either of two
    sums: str = ""


class ValueTraits(NamedTuple):
    """What is known of the values of a primitive's results, whatever its operands hold."""

    # whether a NaN among the elements at a place always gives NaN there
    keeps_nan: bool = False
    # for a product: the coefficient that leaves a cotangent of zero at zero
    neutral: int | None = None
    # whether finite operands can give infinite or undefined results, or what tells it of one
    # equation: (operands, params) -> bool
    singular: Any = False


class Primitive:
    """One operation and all its rules; a missing rule is an error that says which and what to do.

    The vocabulary is closed: what any part of the package asks of a primitive is declared in this
    class, and `python -m gradix._ops` shows what each primitive declares.

    Conventions of every rule: arrays are positional, parameters are keywords; a primitive with
    `multiple_results` returns a list where the others return one value.

    What it means:

    - `abstract(*avals, **params)`: the types of the results; raises the user's shape and dtype
      errors.
    - `lower(em, out, *values, **params)`: StableHLO through the emitter; `out` is the aval (list of
      avals). Or `expand(*args, **params)`: a composition of other primitives.
    - `effects(params)`, `names(params)`: side effects, and the named axes it communicates over.
    - `show(params)`: the parameters as a jaxpr prints them.

    How it is evaluated on concrete arrays:

    - `host(*arrays, **params)`: NumPy arrays in, NumPy array(s) out, exactly as the compiled form
      computes. One of a single result may decline with NotImplemented, if it `declines` for results
      of that dtype; XLA then computes it.
    - `specialise(*avals, **params)`: the host rule for these types as a function of the arrays
      alone, or None; only where that is quicker than `host` with its parameters.
    - `threaded(*avals, **params)`: "numpy" or "scipy" where the host rule leaves so much to the BLAS
      or LAPACK of that package that it would wake a pool of threads; else None.
    - `run(args, params)`: how to evaluate primitives with inner programs; may decline with
      NotImplemented, and is then compiled.
    - `work(params)`: how many equations a run evaluates, for primitives with inner programs.

    How it is transformed:

    - `jvp(primals, tangents, **params) -> (out, tangent)`: a tangent of None is zero, both ways.
    - `linearize`: as `jvp` where the tangents are being recorded; only primitives with inner
      programs differ.
    - `transpose(ct, *args, **params) -> [ct or None per operand]`: linear operands arrive as
      `Linear`; with `multiple_results` the `ct` is a list in which None is zero.
    - `transpose_live(cts, lives, *args, **params)`: as `transpose`, with the masks of live elements
      beside the cotangents, in and out; for primitives whose `live` is "call".
    - `batch(size, args, axes, **params) -> (out, axis)`: an axis of None is unmapped, both ways.
    - `dependent(marks, params, smooth) -> flags`: which results depend on the operands marked; with
      `smooth`, through a derivative that may be nonzero. Without it every result depends on every
      operand.
    - `dce(used, eqn) -> eqn`: the equation without results that are not used, and without what only
      they need.
    - `divide(mesh, avals, outs, params) -> rows`: over which explicit mesh axes each result is
      divided.
    """

    # -- rules that a primitive may lack -----------------------------------------------------------
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
    # it calls the program in parameter `jaxpr` or `call_jaxpr`, and does no more
    is_call = False
    # what libraries ask: whether the program is the parameter `call_jaxpr`, bare
    call_primitive = False
    inlining = Inlining()
    mesh = MeshTraits()
    accepts: frozenset | None = None  # the dtypes of operands; None where they depend on more
    # StableHLO's name of what it computes, or combines elements by; or a lowering
    hlo: Any = None
    identity: Callable[..., Any] | None = None  # dtype -> the element that a reduction starts from
    # what combines two elements, where a scatter or reduction is made of another operation
    combine: Any = None
    # whether its first operand is a random key that must not be used again
    consumes_keys = False

    # -- derivatives -------------------------------------------------------------------------------
    only_backward = False  # whether of this linear map only the transpose is known
    # how a cotangent's dead elements stay so: see _ops/cotangent_masks.py
    live: str | None = None
    # whether its transpose leaves elements of a cotangent dead, or (params) -> bool
    selects: Any = False

    # -- its cost, and what becomes of elements ----------------------------------------------------
    # elements of operands and results up to which eager work prefers the host rule
    host_limit = 1 << 17
    declines: frozenset = frozenset()  # the dtypes of results for which the host rule may decline
    # whether the host rule can never meet a floating-point exception
    silent = False
    # whether it loops or calls a library, so that it is worth leaving out
    costly = False
    # how long an elementwise function takes: "simple", "periodic" or "long"
    formula: str | None = None
    values = ValueTraits()
    # whether each element of a result is one of an operand's, whatever elements are
    rearranges = False

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args, **params):
        """Apply the primitive to arrays or tracers in the current trace."""
        return _trace.bind(self, [as_array(a) for a in args], params)

    # -- rules that every primitive has, be it as an error -----------------------------------------

    def abstract(self, *avals, **params) -> Any:
        raise self.missing("abstract", "tracing", "give the primitive its result types")

    def jvp(self, primals, tangents, **params) -> Any:
        raise self.missing("jvp", "differentiation", "wrap the call in custom_jvp or custom_vjp")

    def linearize(self, primals, tangents, **params) -> Any:
        return self.jvp(primals, tangents, **params)

    def transpose(self, ct, *args, **params) -> Any:
        raise self.missing(
            "transpose", "reverse-mode differentiation", "wrap the call in custom_vjp"
        )

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
        """The shardings that the parameters ask of the results; empty where they ask for none."""
        return ()

    def needs_varying(self, params) -> frozenset:
        """The mesh axes over which operands must vary."""
        return no_effects

    def varying(self, vma: frozenset, params, tracked: frozenset) -> frozenset:
        """The mesh axes among those `tracked` over which the results vary, of operands that vary over `vma`."""
        return vma

    def divide(self, mesh, avals, outs, params) -> list:
        """The division of each result, of operands some of which are divided over explicit axes of `mesh`.

        A tuple for each: for each axis None, a mesh axis, or a tuple of them.

        Raises:
            ShardingTypeError: it does not follow from the operands'.
        """
        raise ShardingTypeError(
            f"how the result of '{self.name}' is divided does not follow from its operands' types: "
            f"{', '.join([a.str_short() for a in avals])}. Bring them together with gradix.sharding.reshard(x, "
            "PartitionSpec()), or let the compiler divide: gradix.sharding.auto_axes(f, out_sharding=...)."
        )

    def sums(self, mesh, avals, params) -> Sums:
        """Over which explicit mesh axes the results are still to be summed, and their cotangents will be."""
        if not any(a.division is not None and sums(a) != NO_SUMS for a in avals):
            return NO_SUMS
        return sums_kept(self, mesh, avals)

    # -- what libraries that read programs ask -----------------------------------------------------

    def impl(self, *args, **params) -> Any:
        """Evaluate on concrete arrays, outside of every trace."""
        return _trace.evaluate(self, [as_array(a) for a in args], params)

    def abstract_eval(self, *avals, **params) -> tuple[Any, frozenset]:
        """The types of the results, and the effects."""
        return self.abstract(*avals, **params), self.effects(params)

    def get_bind_params(self, params) -> dict:
        """The parameters of an equation, to `bind` with again."""
        return dict(params)

    def bind_with_trace(self, trace, args, avals, params) -> Any:
        """Apply the primitive with `trace` in charge, as a library's own interpreter hands on what it met."""
        return bind_with_trace(trace, self, [as_array(a) for a in args], params)

    def missing(self, rule: str, transform: str, instead: str) -> NotImplementedError:
        return NotImplementedError(
            f"{transform} of primitive '{self.name}' is not possible: it has no `{rule}` rule.\n"
            f"Instead, {instead}; or add a method `{rule}` to class {type(self).__name__}."
        )

    def __repr__(self) -> str:
        return self.name

    def __deepcopy__(self, memo) -> Primitive:
        return self

    def __copy__(self) -> Primitive:
        return self
