"""Traces, which interpret primitives; `bind` finds the trace that interprets an application."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from gradix._base import config as _config, errors, leaks, source
from gradix._base.name_stack import begin_program, set_names
from gradix._core import seams
from gradix._core.aval import joined, located, seen, unreduced_axes
from gradix._core.divisions import alike_with_summands, cotangent_aval, division, mesh_of, of_cotangent
from gradix._core.mesh import Mesh
from gradix._core.operators import Array

_options = _config.state
# a finished trace gets this level, so `bind` always picks it and the leak is reported
LEAKED = 1 << 40


class Tracer(Array):
    """Stands for an array while a transformation runs the user's function.

    Example:
        >>> import gradix
        >>> from gradix import core
        >>> seen = []
        >>> _ = gradix.jit(lambda x: seen.append(isinstance(x, core.Tracer)))(1.0)
        >>> seen, isinstance(1.0, core.Tracer)
        ([True], False)
    """

    __slots__ = ("_trace", "aval")  # the underscore is needed: arrays have a method `trace`
    # whether Python may read the value, as under jit(f, specialize=True)
    _decides = False
    _trace: Trace
    aval: Any

    def __init__(self, trace, aval):
        self._trace, self.aval = trace, aval

    def _origin(self) -> str:
        """The origin of this value, for error messages."""
        return self._trace.describe(self)

    def _made(self) -> str:
        """The place where this value was made, and the operation, for error messages."""
        return self._trace.place_of(self)

    def __repr__(self) -> str:
        if state.is_silent:
            raise LookedAt
        return self._numbers() if state.shows_values else self._described()

    def _described(self) -> str:
        """What is known of the value without its numbers."""
        return f"JitTracer({self.aval.str_short()})"

    def _numbers(self) -> str:
        """The value's numbers, where the trace has them."""
        return self._described()

    @property
    def mat(self):
        """The mesh axes over which the value varies in `shard_map`, and over which it is still to be summed."""
        return self.aval.mat

    @property
    def _inner(self):
        """What the trace computes with in place of the tracer: an array, or an outer tracer."""
        return self

    def __format__(self, spec: str) -> str:
        array = concrete(self) if state.shows_values and spec else None
        if array is None:
            try:
                return format(repr(self), spec)
            except ValueError:
                raise TypeError(
                    f"unsupported format string {spec!r} for the traced value {self!r}: its numbers "
                    "are not known while the function is traced. Print them when it runs, with "
                    f'gradix.debug.print("{{x:{spec}}}", x=x), or trace it inside of `with '
                    "gradix.debug.values():`."
                ) from None
        numbers = np.asarray(array)
        return np.array2string(numbers, formatter={"all": lambda n: format(n, spec)})

    def __array__(self, dtype=None, copy=None):
        raise errors.TracerArrayConversionError(self)

    def __bool__(self):
        size = self.aval.size
        if type(size) is int and size != 1:
            few = "an empty array" if not size else "an array with more than one element"
            raise ValueError(
                f"The truth value of {few} is ambiguous. Use x.any() or x.all(), or compare x.size. Got a traced array "
                f"of shape {self.aval.shape}."
            )
        raise errors.TracerBoolConversionError(self)

    def __index__(self):
        raise errors.TracerIntegerConversionError(self)

    def __int__(self):
        raise errors.ConcretizationTypeError(
            self, "The problem arose with the `int` function. To convert an array's dtype use x.astype(int)."
        )

    def __float__(self):
        raise errors.ConcretizationTypeError(
            self, "The problem arose with the `float` function. To convert an array's dtype use x.astype(float)."
        )

    def __complex__(self):
        raise errors.ConcretizationTypeError(
            self, "The problem arose with the `complex` function. To convert an array's dtype use x.astype(complex)."
        )

    def item(self, *args):
        raise errors.ConcretizationTypeError(self, "The problem arose with the `item` method.")

    def tolist(self):
        raise errors.ConcretizationTypeError(self, "The problem arose with the `tolist` method.")

    def tobytes(self, order="C"):
        raise errors.ConcretizationTypeError(self, "The problem arose with the `tobytes` method.")

    def __reduce__(self):
        raise errors.ConcretizationTypeError(self, "A traced array cannot be pickled or copied to another process.")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def block_until_ready(self):
        return self

    def copy_to_host_async(self):
        return None


class Trace:
    """An interpreter of primitives at one level of nesting.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> from gradix.core import Trace
        >>> from gradix.extend.core import set_current_trace, take_current_trace
        >>> class CosForSin(Trace):
        ...     def __init__(self, parent):
        ...         self.parent = parent
        ...     def process_primitive(self, primitive, tracers, params):
        ...         primitive = lax.cos_p if primitive is lax.sin_p else primitive
        ...         return primitive.bind_with_trace(self.parent, tracers, None, params)
        >>> with take_current_trace() as parent, set_current_trace(CosForSin(parent)):
        ...     y = jnp.sin(0.0)
        >>> y
        Array(1., dtype=float32, weak_type=True)
    """

    level: int
    # the operations it has applied, where equal operations are to be applied once
    done: Any = None

    def process(self, prim, args, params):
        """Apply a primitive; `bind` calls this on the trace that it found."""
        return self.interpret(prim, args, params)

    def interpret(self, prim, args, params):
        """Interpret a primitive; traces that libraries define have `process_primitive`."""
        return prim.hand_to(self, args, params)

    def process_primitive(self, primitive, tracers, params):
        """Apply a primitive; a trace that a library defines overrides this method.

        Args:
            tracers: the operands: arrays, and tracers of this trace or of a trace around it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say what applying '{primitive.name}' means: write "
            "its method process_primitive(primitive, tracers, params)."
        )

    def full_raise(self, x):
        """The value `x` as this trace takes it: itself."""
        return x

    @property
    def main(self) -> Trace:
        """This trace: libraries compare `x._trace.main is y._trace.main` to find a common trace."""
        return self

    def remember(self, done) -> None:
        """Apply equal operations once from now on, by `done.once(do, prim, args, params)`."""
        self.done, self.interpret = done, functools.partial(done.once, self.interpret)  # type: ignore[method-assign]

    def describe(self, tracer) -> str:
        return ""

    def place_of(self, tracer) -> str:
        """The place in the user's program where the tracer was made, if it is known."""
        return ""

    def finish(self) -> None:
        """End the trace: every later use of one of its tracers is a leak and raises."""
        if _options.jax_check_tracer_leaks:
            leaks.note(self)
        self.__dict__.pop("interpret", None)  # it refers to the trace
        self.level, self.was = LEAKED, type(self)
        self.__class__ = FinishedTrace


class NeedsProgram(Exception):
    """Raised by a batch rule: the mapped function has to be traced as a whole before it is batched."""


class FinishedTrace(Trace):
    """The class of a trace whose function has returned or raised."""

    was: type[Trace]

    def describe(self, tracer) -> str:
        return self.was.describe(self, tracer)

    def place_of(self, tracer) -> str:
        return self.was.place_of(self, tracer)

    def process(self, prim, args, params):
        leaked = next(a for a in args if isinstance(a, Tracer) and a._trace is self)
        raise errors.UnexpectedTracerError(leaked, f"it is used by '{prim.name}'")


class Interpreter(Trace):
    """A trace that applies rules; all operations of a rule get the source line of its primitive."""

    function: Any = None  # the function that is transformed, for messages
    doing = "transforming"

    def describe(self, tracer) -> str:
        function = _user_function(getattr(self, "function", None))
        if function is None:
            return ""
        doing = getattr(self, "was", type(self)).doing
        return f"This value became traced while {doing} the function {_named(function)}."

    def process(self, prim, args, params):
        s = state
        if s.stage is None or s.place is not None:
            return self.interpret(prim, args, params)
        s.place = source.current(3)
        try:
            return self.interpret(prim, args, params)
        finally:
            s.place = None


def _user_function(function):
    """The user's function that a wrapper of this package holds; None if it holds none."""
    for _ in range(12):
        code = getattr(function, "__code__", None)
        if code is not None and not source.is_inside(code.co_filename):
            return function
        inner = (
            getattr(function, "function", None)
            or getattr(function, "fun", None)
            or getattr(function, "__wrapped__", None)
        )
        if inner is None and code is not None:
            cells = dict(zip(code.co_freevars, function.__closure__ or ()))
            inner = next((cells[n].cell_contents for n in ("fun", "function", "f") if n in cells), None)
        if inner is None:
            return None
        function = inner
    return None


def _named(function) -> str:
    code = function.__code__
    return f"{function.__name__} at {source.located(code.co_filename, code.co_firstlineno)}"


class LookedAt(Exception):
    """Raised where Python prints a value of a function that was taken for one that looks at none."""


class _State(threading.local):
    # the innermost trace that records every operation, even one without traced operands
    stage: Trace | None = None
    depth: int = 0
    mapped: Any = None  # the innermost trace that maps over a batch axis
    axes: dict = {}  # named axis -> its trace
    # the mesh axes that are manual here: types say whether values vary over them
    manual: frozenset = frozenset()
    # the source line of the operation being staged; None if it must be found on the stack
    place: source.SourcePlace | None = None
    # whether tracers are printed with their numbers, as in `debug.values()`
    shows_values: bool = False
    # whether a function is traced that looks at no value, or else runs in Python
    is_silent: bool = False
    # pairs of a ref of the program being called, and the ref given for it
    stand_ins: tuple = ()


state = _State()


def concrete(x):
    """The array that a tracer holds, below all transformations; None if it stands for no numbers."""
    while isinstance(x, Tracer):
        inner = x._inner
        if inner is x:
            return None
        x = inner
    return x


def bind_equation(eqn, operands) -> list:
    """The results of an equation's operation, applied to these operands."""
    out = bind(eqn.primitive, operands, eqn.params)
    return out if eqn.primitive.multiple_results else [out]


def bind(prim, args, params):
    """Apply `prim` in the innermost trace among those of its operands and the staging trace."""
    top = state.stage
    # the most frequent case: only concrete arrays, and no staging trace
    if top is None and not prim.named:
        for a in args:
            if isinstance(a, Tracer):
                break
        else:
            return seams.evaluate(prim, args, params)
    level = -1 if top is None else top.level
    for a in args:
        if isinstance(a, Tracer):
            t = a._trace
            if t.level > level:
                top, level = t, t.level
    if prim.named:
        for name in prim.names(params):
            t = state.axes.get(name)
            if t is not None and t.level > level:
                top, level = t, t.level
    if top is None:
        return seams.evaluate(prim, args, params)
    if seen.meshes and state.manual:
        args = _varying_alike(prim, args, params)
    return top.process(prim, args, params)


def divided_like(x, aval):
    """A traced cotangent, resharded as cotangents of values of type `aval` are."""
    have, want = x.aval.division, of_cotangent(aval.division)
    if have == want or not isinstance(x, Tracer) and (want is None or not _has_mesh(x)):
        return x
    return seams.reshard(x, want)


def cotangent_like(x, aval):
    """A cotangent of zeros, of the type that cotangents of values of type `aval` have among mesh axes."""
    x = divided_like(x, aval)
    return varying_over(x, cotangent_aval(aval).vma) if aval.vma and state.manual else x


def varying_over(x, vma: frozenset):
    """`x`, made to vary over these mesh axes too, or to be reduced over those marked."""
    missing = vma - x.aval.vma
    return seams.vary(x, missing) if missing else x


def _has_mesh(x) -> bool:
    """Whether an array lies on a mesh, or a mesh is in force, over which it can be divided."""
    place = x.aval.place
    mesh = getattr(place.sharding, "mesh", None) if place is not None else _options.gradix_mesh
    return isinstance(mesh, Mesh)


def _varying_alike(prim, args, params):
    """The operands, made to vary over the same mesh axes, as `shard_map` requires."""
    if prim.mesh.mixes:
        return args
    vmas = [a.aval.vma for a in args]
    needed = prim.needs_varying(params) & state.manual
    whole = joined((needed, *vmas))
    wanted = [whole] * len(vmas)
    if unreduced_axes(whole):
        wanted = alike_with_summands(prim, [a.aval for a in args], needed)
    if vmas == wanted:
        return args
    if not _options.jax_auto_pcast:
        shown = ", ".join([a.aval.str_short() for a in args])
        raise ValueError(
            f"Primitive {prim.name} requires varying manual axes to match, as jax_auto_pcast is off, but got {shown}. "
            "Apply lax.pcast(x, axes, to='varying') to the operands that are equal along mesh axes."
        )
    return [a if v == w else seams.vary(a, w - v) for a, v, w in zip(args, vmas, wanted)]


def typed_results(prim, avals, params, out):
    """The types of results, with the mesh axes over which they vary or are divided."""
    if prim.mesh.types_inside:
        return out
    varying = joined([a.vma for a in avals])
    vma = prim.varying(varying, params, state.manual) if state.manual else frozenset()
    outs = out if prim.multiple_results else [out]
    mesh = mesh_of(avals) if seen.divisions else None
    if prim.mesh.divides:
        rows = [a.division for a in outs]
    elif mesh is None:
        rows = [None] * len(outs)
    else:
        left = prim.sums(mesh, avals, params)
        rows = [division(mesh, r, left) for r in prim.divide(mesh, avals, outs, params)]
    typed = [located(a.plain, vma=vma, division=r) for a, r in zip(outs, rows)]
    return typed if prim.multiple_results else typed[0]


class new_level:
    """A context manager for one level of tracing; it finishes the trace on exit.

    With `stage`, the trace records every operation; `axis` binds a named axis to it.
    """

    __slots__ = ("trace", "stage", "axis", "saved", "names")

    def __init__(self, trace: Trace, stage: bool = False, axis=None):
        self.trace, self.stage, self.axis = trace, stage, axis

    def __enter__(self):
        s = state
        if leaks.pending and not s.depth:
            errors.check_leaks()
        self.saved = s.depth, s.stage, s.axes, s.place
        self.trace.level = s.depth
        s.depth += 1
        if self.stage:
            s.stage = self.trace
            s.place = None
            self.names = begin_program()  # an equation's names are relative to its program
        if self.axis is not None:
            s.axes = {**s.axes, self.axis: self.trace}
        return self.trace

    def __exit__(self, *exc):
        state.depth, state.stage, state.axes, state.place = self.saved
        if self.stage:
            set_names(self.names)
        self.trace.finish()
        if leaks.pending and not state.depth and exc[0] is None:
            # checked here, so the error points to the function that leaked
            errors.check_leaks()


class NoExecution(Trace):
    """Stands where a staging trace would, and refuses to apply operations; see `no_execution`."""

    def process(self, prim, args, params):
        raise RuntimeError(
            f"the operation '{prim.name}' would run, but no_execution is set. Leave the context of "
            "gradix.no_execution(), or trace the program with make_jaxpr or lower, which run nothing."
        )

    def local(self, ref):
        raise RuntimeError(f"the mutable array {ref.aval} would be read or written, but no_execution is set.")


def _refuse_execution(on: bool) -> None:
    """Enter or leave the level of `NoExecution`; inside of a staging trace nothing runs anyway."""
    if on and state.stage is None:
        trace = state.stage = NoExecution()
        trace.level = state.depth
        state.depth += 1
    elif not on and type(state.stage) is NoExecution:
        state.depth, state.stage = state.stage.level, None


_config.on_entry("jax_no_execution", _refuse_execution)


class outside:
    """Suspend the staging trace: operations on concrete arrays run at once."""

    __slots__ = ("saved",)

    def __enter__(self):
        self.saved = state.stage
        state.stage = None

    def __exit__(self, *exc):
        state.stage = self.saved


def is_unknown(x) -> bool:
    """Whether `x` is traced and Python cannot read its values."""
    return isinstance(x, Tracer) and not x._decides


def is_staging() -> bool:
    return state.stage is not None


def axis_size_of(name):
    """The size of a named axis; raises NameError if no axis of this name is in scope."""
    t = state.axes.get(name)
    if t is None:
        known = ", ".join([repr(axis) for axis in state.axes if not str(axis).startswith("_")]) or "none"
        raise NameError(
            f"unbound axis name: {name}. Named axes bound here: {known}. "
            f"Bind it with vmap(..., axis_name={name!r}) around the call, or name an axis of the mesh in shard_map."
        )
    return t.size
