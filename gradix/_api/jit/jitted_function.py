"""`JitFunction`, which `jit` returns: it has a trace and a compiled program for each signature."""

from __future__ import annotations

import functools
import inspect
import threading
import time
import types
import weakref
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import numpy as np

from gradix._api.arguments import Names, found_by_name, name_of, stand_in
from gradix._api.boundary import Flat, around, has_values, results, stand_in_of, stand_ins, values, with_nodes
from gradix._api.jit import (
    donation,
    inner,  # noqa: F401  (installs what runs jitted functions inside of others)
    stages,
)
from gradix._api.jit.checked import with_checks
from gradix._api.jit.fastcall import LATER, MISS, write_call
from gradix._api.jit.fingerprint import holds_objects
from gradix._api.jit.options import Options
from gradix._api.jit.placed import Placing, WithoutPlace, constrained_layouts
from gradix._api.jit.sharing import SharedTraces, forget, shared_traces
from gradix._api.jit.specialize_paths import NO_PATHS
from gradix._api.jit.static_errors import incomparable
from gradix._api.jit.stats import Signature, Stats, TraceLog, reached
from gradix._api.jit.traced import Owner, Staged, Traced
from gradix._api.structs import typed
from gradix._base import config as _config
from gradix._base.bounded import BoundedCache, clear_all
from gradix._base.config import guards_transfers
from gradix._base.lazy import lazy_module
from gradix._base.tracebacks import boundary, filter_frames
from gradix._base.tree import tree_flatten as flatten, tree_structure
from gradix._core.array import ArrayImpl, as_array, check_number
from gradix._core.aval import auto_mesh_reads, make_aval
from gradix._core.dtypes import canonicalize_dtype
from gradix._core.effects import MeshEffect
from gradix._core.jaxpr import DebugInfo
from gradix._core.mesh import AxisType, BaseMesh
from gradix._core.operators import Array
from gradix._core.refs import Ref
from gradix._core.trace import Tracer, state
from gradix._runtime import xla
from gradix._runtime.program import Program
from gradix._transforms.staging import hoist

if TYPE_CHECKING:
    from gradix._api.costs.memory import Memory

_abstracted = lazy_module("gradix._api.jit.abstracted")
_budget = lazy_module("gradix._api.costs.budget")
_memory = lazy_module("gradix._api.costs.memory")
_instances = lazy_module("gradix._transforms.instantiate")
_showing = lazy_module("gradix._api.showing")
_specialize = lazy_module("gradix._api.jit.specialize")
_symbolic = lazy_module("gradix._api.jit.symbolic")
_unwatched = lazy_module("gradix._api.unwatched")
_with_refs = lazy_module("gradix._api.jit.with_refs")
_options = _config.state


_functions: weakref.WeakSet[JitFunction] = weakref.WeakSet()
# lists in which profiles keep the functions that are made while they record
kept: list[list[JitFunction]] = []


def clear_caches() -> None:
    """Drop all traces and compiled programs of this process; later calls trace and compile again.

    Example:
        >>> import gradix
        >>> f = gradix.jit(lambda x: x + 1)
        >>> _ = f(1.0)
        >>> gradix.clear_caches()
        >>> _ = f(1.0)
        >>> f.stats().traces
        2
    """
    for function in list(_functions):
        function.clear_cache()
    clear_all()


xla.on_renewal(clear_caches)


_PATIENCE = 60.0  # seconds to wait for another thread's trace; it may wait for this thread
_WARM = 3  # code is generated for a signature after this many calls
_FAST_LIMIT = 4  # how many signatures of one function have generated code


def _no_code(args: tuple, kwargs: dict) -> Any:
    """Stands for generated code where there is none: it misses for all arguments."""
    return MISS


def _remade(fun: Callable, options: Options) -> JitFunction:
    """Make the jitted function again when it is unpickled."""
    return JitFunction(fun, options)


def jitted_functions() -> list[JitFunction]:
    """All functions made by `jit` that are alive."""
    return list(_functions)


P = ParamSpec("P")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")


class JitFunction(Generic[P, Result]):
    """A function compiled by XLA for each signature it is called with; made by `jit`."""

    # every call reads these, and slots are read fastest
    __slots__ = ("_calls", "_first", "__dict__", "__weakref__")
    # libraries recognise jitted functions by this name of their type
    __qualname__ = "PjitFunction"

    def __init__(self, fun: Callable, options: Options):
        stand_in(self, fun)
        self._fun, self._name, self._asked = fun, name_of(fun), options
        self._roles = options.roles(fun)
        self._has_static, self._split = self._roles.has_static, self._roles.split
        options.check_forms()
        self._shardings, self._checks = options.shardings(), options.checks()
        self._budget = options.budget()
        self._symbolic = None if options.symbolic is None else _symbolic.SymbolicSizes(options.symbolic, self._name)
        self._cache: BoundedCache[tuple, Traced] = BoundedCache(4096, drop=1)
        # traces that are good while captured values above arrays keep their states
        self._with_values: BoundedCache[tuple, Any] = BoundedCache(64)
        self._shared: SharedTraces | None = None  # set when the first signature is met
        self._tracing: dict[tuple, tuple[threading.Event, int]] = {}  # being traced, and by whom
        self._calls, self._log = count(), TraceLog(fun)
        self._owner = Owner(
            self._name, options.keep_unused, options.compiler_options, options.donate_strict, self._log, options.inline
        )
        # generated code for the most frequent signatures
        self._fast: tuple[Callable, ...] = ()
        self._first: Callable = _no_code  # the first of `_fast`
        # the number of calls by kinds of leaves, for arguments that are not all gradix arrays
        self._mixed: BoundedCache[tuple, int] = BoundedCache(4096)
        self.unwatched: Any = None  # what is known of the function in `debug.values()`
        _functions.add(self)
        for functions in kept:
            functions.append(self)

    def __del__(self) -> None:
        # `__init__` raises before there is a cache where options are wrong
        for traced in getattr(self, "_cache", {}).values():
            if type(traced) is Traced and not traced.is_shared:
                traced.take_apart()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        try:
            next(self._calls)
            result = self._first(args, kwargs)
            return result if result is not MISS else self._call(args, kwargs)
        except Exception as error:
            if isinstance(error, RuntimeError):
                if "RESOURCE_EXHAUSTED" in str(error):
                    _memory.explain(error, self, args, kwargs)
                elif "donate" in str(error):
                    donation.explain(error, self._name, args, kwargs)
            filter_frames(error)
            raise

    def _call(self, args, kwargs):
        for call in self._fast[1:]:
            result = call(args, kwargs)
            if result is not MISS:
                return result
        if _options.jax_disable_jit:
            result = _unwatched.call(self, args, kwargs) if state.shows_values else MISS
            return result if result is not MISS else self._fun(*args, **kwargs)
        parts = self._split(args, kwargs) if self._has_static else (args, kwargs, ())
        leaves, tree = flatten(parts[:2])
        key = [_options.context, tree]
        for x in leaves:
            if type(x) is not ArrayImpl:
                return self._call_general(leaves, tree, parts[2], args, kwargs)
            key.append(x.aval)
        if state.stage is not None or state.axes:
            return self._call_general(leaves, tree, parts[2], args, kwargs)
        try:
            traced = self._cache.get((*key, *parts[2]))
        except Exception:  # the __eq__ of a static argument raised; the error follows when tracing
            traced = None
        if traced is None:
            return self._call_general(leaves, tree, parts[2], args, kwargs)
        if traced.warm < _WARM:
            traced.warm += 1
            if traced.warm == _WARM and not self._quicken(traced, leaves, args, kwargs):
                traced.warm -= 1
        return traced.call(leaves)

    def _opened(self, args, kwargs) -> tuple:
        """The arguments, with pytree nodes for values that are made of further leaves."""
        if not values:
            return args, kwargs
        dynamic, named = with_nodes(self._split(args, kwargs)[:2])
        return self._roles.join(dynamic, named, args, kwargs)

    def _call_general(self, leaves, tree, static, args, kwargs):
        if values and has_values(leaves):
            given, named = self._opened(args, kwargs)
            return self(*given, **named)
        given = leaves
        leaves = [x if isinstance(x, (Array, Ref)) else self._leaf(x, i, args, kwargs) for i, x in enumerate(leaves)]
        traced = self._traced(leaves, tree, static, args, kwargs)
        auto_mesh_reads.count += getattr(traced, "reads_mesh", False)  # what is traced around it does so, too
        result = traced.call_any(leaves)
        # a trace may depend on named axes in scope, which quick calls do not look at
        if traced.is_direct and state.stage is None and not state.axes:
            self._count(traced, given, args, kwargs)
        return result

    def _count(self, traced: Traced, given, args, kwargs) -> None:
        """Count a call by the types of its leaves, such as NumPy arrays, numbers and arrays."""
        kinds = traced, *map(type, given)
        seen = self._mixed.keep(kinds, self._mixed.get(kinds, 0) + 1)
        if seen == _WARM and not self._quicken(traced, given, args, kwargs):
            self._mixed.keep(kinds, _WARM - 1)

    def _quicken(self, traced: Traced, leaves, args, kwargs) -> bool:
        """Generate code for calls of a frequent signature; False if it is to be tried again."""
        positions, names = self._roles.static_positions(len(args)), self._roles.static_names
        call = write_call(traced, leaves, args, kwargs, lambda place: place in positions or place in names)
        if call is LATER:
            return False
        if call is not None:
            self._fast = (call, *self._fast[: _FAST_LIMIT - 1])
            self._first = call
        return True

    def _key(self, leaves, tree, static) -> tuple:
        return (_options.context, tree, *[x.aval for x in leaves], *static, *(_bound_axes() if state.axes else ()))

    def _traced(self, leaves, tree, static, args, kwargs) -> Traced:
        key = self._key(leaves, tree, static)
        try:
            found = self._cache.get(key)
        except Exception as e:
            raise incomparable(self._name, static, e) or e from None
        if found is None and self._with_values:
            found = self._with_values.get(key)
            if found is not None and found.refs.is_stale():
                found = None
        if found is not None:
            return found
        mine = threading.Event(), threading.get_ident()
        first = self._tracing.setdefault(key, mine)
        # Another thread may be tracing this signature. Whoever traces something himself does not
        # wait, so that no two threads wait for each other.
        if first[1] != mine[1] and state.stage is None and first[0].wait(_PATIENCE):
            found = self._cache.get(key)
        try:
            return found or self._made(key, leaves, tree, static, args, kwargs)
        finally:
            if self._tracing.get(key) is mine:
                del self._tracing[key]
                mine[0].set()

    def _made(self, key, leaves, tree, static, args, kwargs) -> Traced:
        """The trace of a new signature, which is kept if it is good for later calls."""
        if not self._cache:
            self._shared = shared_traces(self._fun, self._asked)
        # an object among the static arguments may hold the function, which would live with its traces
        has_objects = any(holds_objects(kind) for _, (kind, _) in static)
        shared = None if has_objects else self._shared
        found: Any = None if shared is None else shared.get(key)
        if found is not None:
            return self._cache.keep(key, found)
        if _have_place(leaves):
            found = self._placed(self._traced_anywhere(leaves, tree, static, args, kwargs), leaves, tree)
            self._cache.keep(key, found)
            if shared is not None:
                shared.keep(key, found)
        if found is None:
            opens = self._symbolic is not None and not _symbolic.is_open(leaves)
            found = (self._of_open_sizes if opens else self._trace)(leaves, tree, static, args, kwargs)
            found = self._placed(found, leaves, tree)
            if found.refs is not None and found.refs.captures_values():
                self._with_values.keep(key, found)
            elif not any(isinstance(c, Tracer) for c in found.consts):
                self._cache.keep(key, found)
                if shared is not None:
                    shared.keep(key, found)
                if has_objects:
                    # The trace may have changed an object, such as one that counts calls. Its new
                    # content finds this trace as well.
                    self._cache.keep((*key[: 2 + len(leaves)], *self._split(args, kwargs)[2], *_bound_axes()), found)
        return found

    def _traced_anywhere(self, leaves, tree, static, args, kwargs) -> Any:
        """The trace for arguments on any devices; for those on this mesh, if the function asks types for it."""
        free = [x if isinstance(x, Ref) else WithoutPlace(x) for x in leaves]
        mesh = _auto_mesh(leaves) if _options.gradix_mesh is None else None
        key = self._key(free, tree, static)
        known = mesh and self._cache.get(key)
        if mesh is None or known is not None and not getattr(known, "reads_mesh", False):
            return self._traced(free, tree, static, args, kwargs)
        before = _config.enter_local("gradix_auto_mesh", mesh.abstract_mesh)
        try:
            found = self._traced(free, tree, static, args, kwargs)
            is_kept = self._cache.get(self._key(free, tree, static)) is found
        finally:
            _config.leave_local("gradix_auto_mesh", before)
        return self._cache.keep(key, found) if is_kept and not getattr(found, "reads_mesh", False) else found

    def _placed(self, traced: Any, leaves, tree) -> Any:
        """The signature for arguments on any devices, if these may matter."""
        if (
            type(traced) is Traced
            and traced.placing is None
            and (
                self._shardings is not None
                or _options.gradix_mesh is not None
                or _options.jax_default_device is not None
                or traced.refs is not None
                or _have_place(leaves)
                or _have_place([c for c in traced.consts if type(c) is ArrayImpl])
                or MeshEffect in map(type, traced.jaxpr.effects)
                or any(constrained_layouts(traced.jaxpr))
            )
        ):
            budget = self._budget if self._is_placed(leaves) else None
            return traced.placed(lambda new: Placing(new, self._shardings, tree, budget))
        return traced

    def _is_placed(self, leaves) -> bool:
        """Whether the arguments or options say on which devices a program runs."""
        return self._shardings is not None or any(type(x) is WithoutPlace or x.aval.place is not None for x in leaves)

    def _of_open_sizes(self, leaves, tree, static, args, kwargs) -> Traced:
        """The trace for these arguments, made from the one for all sizes of `symbolic`."""
        assert self._symbolic is not None
        dynamic, named, _ = self._split(args, kwargs)
        opened = self._symbolic.open(leaves, dynamic, named)
        if not _symbolic.is_open(opened):
            return self._trace(leaves, tree, static, args, kwargs)
        whole: Any = self._traced(opened, tree, static, args, kwargs)
        sizes = self._symbolic.sizes(whole, leaves)
        if self._asked.specialize:
            return _specialize.Sized(whole, sizes)
        staged = whole.staged._replace(jaxpr=_instances.instantiate(whole.jaxpr, sizes), avals=[x.aval for x in leaves])
        return Traced(self._owner, self._finished(staged), is_quick=True)

    def _finished(self, staged: Staged, is_placed: bool = False) -> Staged:
        """The trace with what options change in its program, the sizes of which are numbers."""
        if self._budget is not None and not is_placed:  # else where it is known on which devices
            make = functools.partial(Program, name=self._name, compiler_options=self._asked.compiler_options)
            staged = staged._replace(jaxpr=_budget.within(staged.jaxpr, self._budget, self._name, make))
        is_checked = self._checks is not None or staged.jaxpr.effects
        return with_checks(staged, self._checks) if is_checked else staged

    def _trace(self, leaves, tree, static, args, kwargs, whole: bool = False) -> Any:
        asked = self._asked
        if asked.abstracted_axes is not None:
            _abstracted.check_sizes(asked.abstracted_axes, args, self._name)
        avals = [x.aval for x in leaves]
        names = self._names(tree, args)
        shown = self._roles.shown(static, args, kwargs) if static else ()
        seen = Signature(_options.context, _bound_axes(), tree, names, avals, shown)
        reason = self._log.add(seen, self._name, asked.max_traces)
        if asked.specialize and not whole:
            return self._tree(leaves, tree, names, args, kwargs)
        start, reads = time.perf_counter(), auto_mesh_reads.count
        inside = stand_ins(leaves)
        flat = self._flat(around(inside, len(leaves), tree), names, args, kwargs)
        types = [a for i, a in enumerate(avals) if i not in inside] if inside else avals
        jaxpr, consts, refs, changes = flat.stage_call(types, inside)
        flat.close = None  # it refers to `flat`
        closed, consts = hoist(jaxpr, consts)
        staged = Staged(
            closed,
            consts,
            flat.out_tree,
            names,
            avals,
            self._roles.donated(args, kwargs),
            refs=_with_refs.Refs(refs, inside, len(avals), changes) if refs or inside else None,
        )
        self._log.traced(self._name, time.perf_counter() - start, reason)
        if self._symbolic is None or not _symbolic.is_open(leaves):  # else its instances do
            staged = self._finished(staged, self._is_placed(leaves))
        made = Traced(self._owner, staged)
        made.reads_mesh = auto_mesh_reads.count > reads
        return made

    def _names(self, tree, args) -> Names:
        left_out = self._roles.static_positions(len(args)) if self._has_static else ()
        return Names(self._fun, tree, left_out)

    def _flat(self, fill: Callable, names: Names, args, kwargs) -> Flat:
        """The Python function of operands, which `fill` puts into the dynamic arguments."""
        given = fill
        if self._has_static:

            def given(operands):
                return self._roles.join(*fill(operands), args, kwargs)

        return Flat(self._fun, self._name, given, close=functools.partial(results, names), is_program=True, names=names)

    def _tree(self, leaves, tree, names: Names, args, kwargs) -> Any:
        """The `specialize.Tree` of this signature, which follows the function's decisions."""
        avals, donated = [x.aval for x in leaves], self._roles.donated(args, kwargs)
        is_open = self._symbolic is not None and _symbolic.is_open(leaves)
        args, kwargs = self._roles.static_only(args, kwargs)

        def function(inside, tracers):
            flat = self._flat(around(inside, len(avals), tree), names, args, kwargs)
            return flat(*tracers), flat.out_tree

        def make(closed, donated, names, sizes=None):
            if sizes is not None:
                closed = _instances.instantiate(closed, sizes)
            debug = DebugInfo.of(self._name, names)
            staged = Staged(closed, [], None, debug, closed.in_avals, donated)
            if sizes is not None or not is_open:
                staged = self._finished(staged)
            return Traced(self._owner, staged, lambda new: Placing(new, None, None), sizes is not None)

        put = None
        if self._shardings is not None:
            put = self._shardings.putting(self._name, tree, avals, names.arg_names)
        limit = self._asked.max_paths
        return _specialize.Tree(function, avals, names, make, self._log, limit=limit, donated=donated, put=put)

    def _leaf(self, x, index: int, args, kwargs) -> Array:
        t = type(x)
        if t is np.ndarray and x.dtype.kind in "biufc" and x.dtype.isnative:
            dtype = canonicalize_dtype(x.dtype)
            if dtype is x.dtype and state.stage is None and not guards_transfers():
                aval = make_aval(x.shape, dtype, False)
                return ArrayImpl(None, aval, xla.put(x, aval))
        known = stand_in_of(x) if state.stage is not None else None
        if known is not None:  # the enclosing program is only inspected, not run
            return known
        if _options.jax_transfer_guard_host_to_device is not None:
            check_number(x)
        try:
            return as_array(x)
        except (TypeError, OverflowError) as e:
            dynamic = tree_structure(self._split(args, kwargs)[:2])
            path = self._names(dynamic, args).arg_names[index]
            raise type(e)(
                f"Cannot interpret the argument {path} of {self._name} as an abstract array. {e} If it is a "
                "Python value the function only reads or branches on, name it in static_argnums or "
                "static_argnames."
            ) from None

    # -- the rest of the public face ---------------------------------------------------------------

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(
        self: JitFunction[Concatenate[Any, Rest], Result], instance: Any, owner: type | None = None
    ) -> Callable[Rest, Result]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        """Pickle by name if the module holds it, else as the function and its options."""
        return self.__qualname__ if found_by_name(self) else (_remade, (self._fun, self._asked))

    def __repr__(self) -> str:
        try:
            return f"<jit of {self._fun!r}>"
        except Exception:  # that of the function is not ours
            return f"<jit of {self._name}>"

    def _repr_html_(self) -> str:
        return _showing.jitted(self)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._fun)

    def clear_cache(self) -> None:
        """Drop all traces and compiled programs of this function."""
        forget(self._fun)
        self._shared = None
        self._cache.clear()
        self._fast, self._first = (), _no_code
        self._mixed.clear()
        self._with_values.clear()
        self._log.forget()

    def stats(self) -> Stats:
        """How often the function was called, traced and compiled, and the reason of each retrace.

        Example:
            >>> import gradix, gradix.numpy as jnp
            >>> f = gradix.jit(lambda x: x + 1)
            >>> _ = f(jnp.ones(3)), f(jnp.ones(4))
            >>> f.stats().reasons
            ('argument x: float32[3] -> float32[4]',)
        """
        decides = self._asked.specialize
        paths = _specialize.paths_of(list(self._cache.values())) if decides else NO_PATHS
        return self._log.stats(reached(self._calls), paths)

    def _cache_size(self) -> int:
        return len(self._cache)

    @boundary
    def eval_shape(self, *args, **kwargs):
        """The types of the results, as `eval_shape` gives them."""
        return self.trace(*args, **kwargs).out_info

    @boundary
    def trace(self, *args, **kwargs) -> stages.Traced:
        """The traced function for arguments of these types, which may be `ShapeDtypeStruct`s."""
        args, kwargs = self._opened(args, kwargs)
        dynamic, named, _ = self._split(args, kwargs)
        leaves, tree = flatten((dynamic, named))
        types = [x.aval if hasattr(x, "aval") else typed(x).aval for x in leaves]
        return stages.Traced(self._trace_for(args, kwargs), tree, types)

    @boundary
    def lower(self, *args, **kwargs) -> stages.Lowered:
        """Trace and lower the function to StableHLO; `f.lower(x).compile()` compiles it."""
        return self.trace(*args, **kwargs).lower()

    @boundary
    def memory(self, *args, **kwargs) -> Memory:
        """The memory of the compiled program for arguments of these types, by line.

        It has the bytes of the moment at which most is in use (`peak`), and which lines made what
        is in use then (`rows`); `print` shows a table. The program is compiled once more, with
        lines, and is not run.

        Example:
            >>> import gradix, gradix.numpy as jnp
            >>> products = gradix.jit(lambda x: jnp.outer(x, x) @ x)
            >>> products.memory(jnp.ones(1024)).results
            4096
        """
        stage = self.trace(*args, **kwargs)
        return _memory.memory_of(stage._traced, tuple(stage._operand_places() or ()))

    def _trace_for(self, args, kwargs) -> Traced:
        dynamic, named, static = self._split(args, kwargs)
        leaves, tree = flatten((dynamic, named))
        leaves = [x if hasattr(x, "aval") else typed(x) for x in leaves]
        # types have no values for Python to branch on, so the function is traced as a whole
        if self._asked.specialize:
            return self._trace(leaves, tree, static, args, kwargs, whole=True)
        return self._traced(leaves, tree, static, args, kwargs)


def _auto_mesh(arrays) -> BaseMesh | None:
    """The mesh over whose `Auto` axes an array lies; None if none does."""
    meshes = [getattr(x.aval.place.sharding, "mesh", None) for x in arrays if x.aval.place is not None]
    return next((m for m in meshes if m is not None and AxisType.Auto in m.axis_types), None)


def _have_place(arrays) -> bool:
    """Whether any of the arrays lies on devices that were chosen."""
    return any(x.aval.place is not None for x in arrays)


def _bound_axes() -> list:
    """The named axes in scope and their sizes, on which a trace may depend."""
    return [(name, t.size) for name, t in state.axes.items()]
