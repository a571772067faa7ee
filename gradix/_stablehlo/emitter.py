"""The emitter, which every `lower` rule gets: programs, private functions, calls, regions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from gradix._base.bounded import BoundedCache
from gradix._base.name_stack import EMPTY
from gradix._core.aval import make_aval, seen
from gradix._core.keys import exact_items
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec
from gradix._stablehlo import calls, control_flow, shardings
from gradix._stablehlo.attributes import i64_array, string, with_attributes
from gradix._stablehlo.dimensions import SIZE
from gradix._stablehlo.facts import Product
from gradix._stablehlo.shardings import Manual, Meshes
from gradix._stablehlo.types import TOKEN
from gradix._stablehlo.uses import Site, Users
from gradix._stablehlo.writer import Value, Writer

# XLA:CPU emits a function called with this attribute as one native kernel, loops and all. It
# refuses programs that have a sort, top_k, scatter, fft, custom call or large product inside.
SMALL_CALL = 'mhlo.frontend_attributes = {xla_cpu_small_call = "true"}'

# With this XLA:CPU emits the whole function as one kernel, and does not split it into loops first.
WHOLE_CALL = 'mhlo.frontend_attributes = {xla_cpu_small_call = "true", inlineable = "false"}'


def unmarked(text: str) -> str:
    """A module without the marks of native kernels, where XLA cannot make one of a marked call."""
    return text.replace(f", {WHOLE_CALL}", "").replace(f", {SMALL_CALL}", "")


# Primitives whose operations are named differently in the metadata.
_WRITTEN_AS = {"scan": "while", "remat2": "checkpoint"}


class _NoRewrites(dict):
    """A table without rewrites for any primitive."""

    def __missing__(self, primitive) -> tuple:
        return ()


_NONE: dict = {}

# Calls nested deeper are inlined, as the passes of XLA descend into calls by recursion.
_MAX_DEPTH = 60


class _Naming:
    """A context manager in which operations have another prefix of their names, or location."""

    __slots__ = ("em", "held")

    def __init__(self, em, scope: str | None, ending: str):
        self.em, self.held = em, (scope, ending)

    def __enter__(self):
        em = self.em
        self.held, (em.scope, em.ending) = (em.scope, em.ending), self.held

    def __exit__(self, *_):
        self.em.scope, self.em.ending = self.held


class Emitter(Writer):
    """Writes one module.

    Args:
        trace_expand: `(fn, avals, params) -> ClosedJaxpr`, which traces a primitive's `expand`.
        platform: "cpu", "cuda", ...: the target.
        places: whether operations get the user's file and line, as MLIR locations.
        scope: the prefix of the names of operations, which compiled programs keep; None omits
            names.
        rewrites: for every primitive, the records to try in order before its own `lower` rule.
            Each has `applies(site)` (or None) and `emit(em, site, *values)`, which may decline
            with NotImplemented. None stands for no rewrites.
    """

    def __init__(
        self,
        trace_expand: Callable | None = None,
        platform: str = "cpu",
        places: bool = False,
        rewrites: Mapping[Any, tuple] | None = None,
        scope: str | None = None,
    ):
        super().__init__()
        self.platform = platform
        # the prefix of the names of operations; None where operations have no names
        self.scope = scope
        # by scope around and stack of names: scope, attributes, locations by primitive, and the
        # stack, which is kept so that its id is not reused
        self._names_of: dict[tuple, tuple] = {}
        self.places, self.rewrites = places, _NoRewrites() if rewrites is None else rewrites
        # whether operations are written in the forms that XLA:CPU compiles best
        self.tunes = platform == "cpu" and rewrites is not None
        self.trace_expand = trace_expand
        self.functions: list[str] = []
        self._symbols: dict[Any, str] = {}  # by jaxpr and all else that decides the text
        self._texts: dict[str, str] = {}  # by text
        self._names: set[str] = {"main"}
        # symbols of functions that take the dimension variables too
        self._takes_variables: set[str] = set()
        # Jaxprs that `_symbols` knows by id are kept, so that their ids are not reused.
        self._kept: list = []
        self._expansions: dict = {}
        self._depth = 0  # of nested functions being written
        self._products: dict[str, dict] = {}  # the products in each function, by symbol
        self.host_callbacks: list[calls.HostCallback] = []
        self.partitioners: list[Any] = []
        self.token: Value | None = None
        # calls the routines of another library in place of LAPACK
        self.solver: Callable | None = None
        self.loops = 0  # how many loops are open
        self._loops_around: int | None = None  # how many were where the program being written begins
        # the operand types of the reduction whose body is being written
        self.reduced: tuple = ()
        self.placed_on(Meshes(None))
        self.manual: Manual | None = None  # set inside a region for one device's part

    # -- programs ----------------------------------------------------------------------------------

    def inline(self, jaxpr, consts, args, scope: str = "") -> list[Value]:
        """Write the equations of a jaxpr here, named within `scope`.

        `consts` are values or arrays.
        """
        if not scope:
            return self._inline(jaxpr, consts, args)
        with self.named(scope):
            return self._inline(jaxpr, consts, args)

    def _inline(self, jaxpr, consts, args, placed: bool = True) -> list[Value]:
        env: dict = dict(zip(jaxpr.invars, args))
        for v, c in zip(jaxpr.constvars, consts):
            env[v] = c if type(c) is Value else self.constant(c, v.aval)
        get, rewrites, users = env.get, self.rewrites, Users(jaxpr, self._loops_around == self.loops)
        loops_around, self._loops_around = self._loops_around, self.loops
        self.facts.programs.append(jaxpr)
        around, ending, places = self.scope, self.ending, self.places
        names, locations, tags = None, _NONE, _NONE
        divides = seen.divisions and self.meshes.devices is not None
        for eqn in jaxpr.eqns:
            p, outvars = eqn.primitive, eqn.outvars
            if placed:
                source = eqn.source
                stack = EMPTY if source is None else source.name_stack
                if stack is not names:
                    names = stack
                    self.scope, tags, locations = self._names_within(around, stack)
                location = locations.get(p)
                self.ending = self._locate(eqn, locations) if location is None else location
                if places and source is not None:
                    self.ending = _with_place(self.ending, source)
                if tags:
                    start = len(self._lines)
            ins = [get(v) or self.constant(v.val, v.aval) for v in eqn.invars]
            outs = [v.aval for v in outvars] if p.multiple_results else outvars[0].aval
            found, known = NotImplemented, rewrites[p]
            if known:
                found = self._rewritten(known, Site(p, outs, ins, eqn.params, eqn, users))
            if found is NotImplemented:
                found = (
                    p.lower(self, outs, *ins, **eqn.params) if p.lower is not None else self._expand(p, ins, eqn.params)
                )
            if divides:
                found = self._divided(found, outvars, eqn)
            if type(found) is Value:
                env[outvars[0]] = found
            else:
                env.update(zip(outvars, found))
            if tags:
                lines = self._lines
                lines[start:] = [with_attributes(line, tags) for line in lines[start:]]
        self.scope, self.ending, self._loops_around = around, ending, loops_around
        return [get(v) or self.constant(v.val, v.aval) for v in jaxpr.outvars]

    def lower(self, primitive, out, *values: Value, **params):
        """Lower a primitive as a part of another one, by a rewrite or by its own rule.

        `primitive.lower(em, ...)` is its rule alone, without rewrites.
        """
        known = self.rewrites[primitive]
        found = self._rewritten(known, Site(primitive, out, values, params)) if known else NotImplemented
        if found is not NotImplemented:
            return found
        if primitive.lower is not None:
            return primitive.lower(self, out, *values, **params)
        found = self._expand(primitive, list(values), params)
        return found if primitive.multiple_results else found[0]

    def _rewritten(self, rewrites: tuple, site: Site):
        """The result of the first rewrite that does not decline, or NotImplemented."""
        several = self.has_several_devices
        for rewrite in rewrites:
            if several and (rewrite.native or rewrite.alone and self.is_divided):
                continue
            if rewrite.applies is None or rewrite.applies(site):
                found = rewrite.emit(self, site, *site.values)
                if found is not NotImplemented:
                    taken = self.facts.rewrites
                    taken[rewrite.name] = taken.get(rewrite.name, 0) + 1
                    return found
        return NotImplemented

    def _divided(self, found, outvars, eqn):
        """The results, with sharding constraints for the divisions in their types.

        So are results that are whole on each device, of operands that are divided.
        """
        values = [found] if type(found) is Value else found
        traits, whole = eqn.primitive.mesh, None
        if not (traits.divides or traits.types_inside):
            whole = next((d for v in eqn.invars if (d := v.aval.division) is not None), None)
            whole = None if whole is None else whole.update(spec=PartitionSpec())
        out = []
        for value, var in zip(values, outvars):
            division = var.aval.division or whole
            if division is not None:
                mesh = division.mesh
                is_open = not mesh.are_all_axes_explicit
                value = self.constrained(value, mesh, division.spec, var.aval, is_open=is_open)
            out.append(value)
        return out[0] if type(found) is Value else out

    def _names_within(self, around: str | None, stack) -> tuple:
        """The scope and frontend attributes of equations with these names, and known locations."""
        found = self._names_of.get((around, id(stack)))
        if found is None:
            text = str(stack) if around is not None and stack.stack else ""
            scope = f"{around}/{text}" if around and text else around or text or around
            found = self._names_of[around, id(stack)] = scope, stack.tags, {}, stack
        return found[:3]

    def _locate(self, eqn, known: dict) -> str:
        """The location of an equation's operations, which is added to the `known` ones."""
        p, scope = eqn.primitive, self.scope
        if scope is not None and p.name == "jit":  # The name of a jit depends on its equation.
            return f" loc({string(_name_of_jit(scope, eqn))})"
        found = known[p] = location(scope, _WRITTEN_AS.get(p.name, p.name))
        return found

    def tag(self, value: Value, attributes: dict[str, str]) -> None:
        """Add attributes for the compiler to the operation that made a value."""
        made = value.name.partition("#")[0]
        for i in range(len(self._lines) - 1, -1, -1):
            if self._lines[i].startswith((f"{made} = ", f"{made}:")):
                self._lines[i] = with_attributes(self._lines[i], attributes)
                return

    def _expand(self, primitive, ins, params) -> list[Value]:
        """Lower a primitive by its `expand`, which is traced once per types and parameters."""
        if primitive.expand is None or self.trace_expand is None:
            raise NotImplementedError(
                f"primitive '{primitive.name}' cannot be compiled: it has neither a `lower` nor an `expand` rule. "
                f"Add a method `lower(em, out, *values, **params)` to class {type(primitive).__name__}."
            )
        avals = tuple([v.aval if v.aval.division is None else v.aval.plain for v in ins])
        try:
            key = primitive, avals, exact_items(params)
            closed = self._expansions.get(key)
        except TypeError:  # a parameter is not hashable
            key = closed = None
        if closed is None:
            closed = self.trace_expand(primitive.expand, avals, params)
            if key is not None:
                self._expansions[key] = closed
        return self._inline(closed.jaxpr, closed.consts, ins, False)

    def expand(self, fn: Callable, *values: Value, **params) -> list[Value]:
        """Write a Python function of arrays, made of primitives, applied to values."""
        if self.trace_expand is None:
            raise NotImplementedError("this emitter was given no trace_expand")
        avals = tuple([v.aval if v.aval.division is None else v.aval.plain for v in values])
        closed = self.trace_expand(fn, avals, params)
        return self._inline(closed.jaxpr, closed.consts, values, False)

    # -- private functions -------------------------------------------------------------------------

    def function(self, name: str, jaxpr, ordered: bool = False) -> str:
        """The symbol of a private function of `constvars + invars`; equal programs share one.

        An `ordered` function takes and returns the ordering token last.
        """
        key = id(jaxpr), ordered, self.manual, self.reduced
        symbol = self._symbols.get(key)
        if symbol is None:
            n = len(jaxpr.constvars)
            avals = [v.aval for v in (*jaxpr.constvars, *jaxpr.invars)]
            symbol = self.define(name, avals, lambda *xs: self.inline(jaxpr, xs[:n], xs[n:]), ordered)
            self._symbols[key] = symbol
            self._kept.append(jaxpr)
        return symbol

    def define(self, name: str, in_avals, fn: Callable, ordered: bool = False, is_closed: bool = False) -> str:
        """The symbol of a private function whose body `fn` writes from its argument values.

        A function that `is_closed` does not take the dimension variables.
        """
        outer = self.token, self.facts.products, self.variables, self.scope
        variables: dict = {} if is_closed else self.variables
        avals = [*[SIZE] * len(variables), *in_avals, *[TOKEN] * ordered]
        body = self.with_token(fn) if ordered else fn
        try:
            self._depth += 1
            self.token, self.facts.products, self.variables = None, {}, variables
            # The compiler prefixes the names of the caller.
            self.scope = None if self.scope is None else ""
            args, outs, text = self.body(avals, self._with_variables(body) if variables else body)
            held = self.facts.products
        finally:
            self._depth -= 1
            self.token, self.facts.products, self.variables, self.scope = outer
        signature = ", ".join([f"{v.name}: {v.type}" for v in args])
        types = ", ".join([v.type for v in outs])
        returned = f'"func.return"({", ".join([v.name for v in outs])}) : ({types}) -> ()'
        rest = f"({signature}) -> ({types}) {{\n{text}{text and chr(10)}{returned}\n}}"
        symbol = self._texts.get(rest)
        if symbol is None:
            symbol = self._texts[rest] = self.unused_symbol(identifier(name))
            if variables:
                self._takes_variables.add(symbol)
            self.functions.append(f"func.func private @{symbol}{rest}")
            if held:
                self._products[symbol] = held
        return symbol

    def _with_variables(self, fn: Callable) -> Callable:
        """The body of a function that takes the dimension variables before its arguments."""
        names = list(self.variables)

        def body(*args):
            self.variables = dict(zip(names, args))
            return fn(*args[len(names) :])

        return body

    def unused_symbol(self, name: str) -> str:
        """A name for a function, with a number behind it if another one has it."""
        symbol, n = name, 0
        while symbol in self._names:
            n += 1
            symbol = f"{name}_{n}"
        self._names.add(symbol)
        return symbol

    def call(self, symbol: str, out_avals, *values: Value, attrs: str = "", ordered: bool = False) -> list[Value]:
        """Call a private function; `attrs=SMALL_CALL` asks XLA:CPU for one native kernel."""
        # The runtime removes SMALL_CALL from the text where XLA refuses the kernel.
        attrs = f"callee = @{symbol}{', ' if attrs else ''}{attrs}"
        for product, count in self._products.get(symbol, _NONE).items():
            self._note(product, count)
        if symbol in self._takes_variables:
            values = (*self.variables.values(), *values)
        if ordered:
            values, out_avals = (*values, self.ordering_token()), [*out_avals, TOKEN]
        return self.take_token(self.ops("func.call", out_avals, *values, attrs=attrs), ordered)

    def call_jaxpr(self, name: str, jaxpr, consts, args, attrs: str = "", ordered: bool = False) -> list[Value]:
        """Call a jaxpr as a private function, written once however often it is called."""
        if self._depth >= _MAX_DEPTH or (self.manual is not None and self.manual.indices):
            # A region for one device's part reads outer values, which a function cannot.
            return self.inline(jaxpr, consts, args, f"jit({name})")
        consts = [c if type(c) is Value else self.constant(c, v.aval) for v, c in zip(jaxpr.constvars, consts)]
        symbol = self.function(name, jaxpr, ordered)
        return self.call(symbol, [v.aval for v in jaxpr.outvars], *consts, *args, attrs=attrs, ordered=ordered)

    def kernel(self, name: str, out_avals, fn: Callable, *values: Value, whole: bool = False) -> list[Value]:
        """Write `fn(*values)` as a native function of the CPU, for loops with very short steps.

        It may hold no sort, scatter, product of matrices or custom call. XLA makes a function of
        each loop, and divides large operations between the loops among threads. With `whole` it
        makes one function of everything, which compiles in less time.
        """
        if not whole:
            symbol = self.define(name, [v.aval for v in values], fn)
            return self.call(symbol, out_avals, *values, attrs=SMALL_CALL)
        # XLA does not split a function over threads if its result is a tuple.
        mark = make_aval((), np.dtype("int32"))
        symbol = self.define(name, [v.aval for v in values], lambda *xs: [*fn(*xs), self.constant(0, mark)])
        return self.call(symbol, [*out_avals, mark], *values, attrs=WHOLE_CALL)[:-1]

    # -- names --------------------------------------------------------------------------------------

    def named(self, name: str) -> _Naming:
        """Context manager: the names of operations written inside are prefixed with `name`."""
        around = self.scope
        if around is None or not name:
            return _Naming(self, around, self.ending)
        return _Naming(self, f"{around}/{name}" if around else name, self.ending)

    def called(self, name: str, write: Callable, *args):
        """The result of `write(*args)`; operations that it writes without a name get this one."""
        before, self.ending = self.ending, location(self.scope, name)
        found = write(*args)
        self.ending = before
        return found

    # -- reductions, loops, branches ----------------------------------------------------------------

    while_loop, case = control_flow.while_loop, control_flow.case
    optimization_barrier = control_flow.optimization_barrier

    def reduce(self, xs, inits, axes, out_avals, body) -> list[Value]:
        """Reduce `xs` together over `axes`.

        Args:
            inits: scalar values, one per operand.
            body: a StableHLO name such as "add" (one operand), or a function of the scalars
                `*accumulated, *elements` that returns the new accumulated ones.
        """
        if self.is_divided and len(xs) == 1 and not _is_combined(body, xs[0].aval.dtype):
            xs = [self.gathered(xs[0], axes)]
        region = self.reducer([x.aval.dtype for x in xs], body, [x.aval for x in xs])
        return self.ops("reduce", out_avals, *xs, *inits, attrs=f"dimensions = {i64_array(axes)}", regions=(region,))

    def reducer(self, dtypes, body, reduced=()) -> str:
        """The region of a reduction, window, scatter or all-reduce over operands of these dtypes.

        Args:
            reduced: the types of the operands. A platform may lower the body differently where they
                are large.
        """
        scalars = [make_aval((), d, False) for d in dtypes]
        if isinstance(body, str):
            name, (scalar,) = body, scalars
            return self.region([scalar, scalar], lambda x, y: self.op(name, scalar, x, y))
        outer, self.reduced = self.reduced, tuple(reduced)
        try:
            return self.region(scalars + scalars, body)
        finally:
            self.reduced = outer

    # -- calls of other libraries, and of the host --------------------------------------------------

    custom_call, callback, register_callback = calls.custom_call, calls.callback, calls.register_callback
    has_host_kernels, host_kernel = calls.has_host_kernels, calls.host_kernel

    @contextlib.contextmanager
    def solved_by(self, solver: Callable):
        """Context manager: factorizations inside call another library in place of LAPACK."""
        before, self.solver = self.solver, solver
        try:
            yield
        finally:
            self.solver = before

    # -- the order of effects -----------------------------------------------------------------------

    def ordering_token(self) -> Value:
        """The token that the next ordered effect must wait for."""
        if self.token is None:
            self.token = self.op("create_token", TOKEN)
        return self.token

    def join_tokens(self, tokens) -> None:
        """Let the next ordered effect wait for all of these tokens."""
        if tokens:
            one = len(tokens) == 1
            self.token = tokens[0] if one else self.op("after_all", TOKEN, *tokens)

    def with_token(self, fn):
        def body(*xs):
            self.token = xs[-1]
            return [*fn(*xs[:-1]), self.token]

        return body

    def returning_token(self, fn):
        return lambda: [*fn(), self.token]

    def take_token(self, results: list[Value], ordered: bool) -> list[Value]:
        if ordered:
            self.token = results.pop()
        return results

    # -- several devices ----------------------------------------------------------------------------

    is_zero, as_summands = control_flow.is_zero, control_flow.as_summands
    added_up, in_parts = control_flow.added_up, control_flow.in_parts

    def placed_on(self, meshes: Meshes) -> None:
        """Say on which devices the program runs, and the mesh for what the user divides."""
        self.meshes, devices = meshes, meshes.devices
        self.has_several_devices = devices is not None and len(devices) > 1

    @property
    def is_divided(self) -> bool:
        """Whether the compiler divides what is being written over several devices."""
        if not self.has_several_devices:
            return False
        manual = self.manual
        return manual is None or len(manual.axes) < len(manual.mesh.axis_names)

    def gathered(self, x: Value, axes) -> Value:
        """`x`, of which each device has all elements along some axes.

        The compiler divides the others as it likes. On one device it is `x` itself.
        """
        mesh = self.meshes.mesh
        if mesh is None or not self.is_divided:
            return x
        spec = PartitionSpec(*[None if i in axes else UNCONSTRAINED for i in range(x.aval.ndim)])
        return self.constrained(x, mesh, spec)

    def in_rows(self, x: Value) -> Value:
        """`x` with its last axis the closest in memory and its first the farthest.

        XLA:CPU transforms nothing else, but where it divides a program it may choose another order.
        Elsewhere it is `x` itself.
        """
        if self.platform != "cpu" or not self.is_divided or x.aval.ndim < 3:
            return x
        return self.laid_out(x, range(x.aval.ndim))

    def laid_out(self, x: Value, order: Sequence[int]) -> Value:
        """`x` with its axes in this order in memory, the slowest first."""
        own = [tuple(reversed(order))]
        return self.custom_call("LayoutConstraint", [x.aval], x, operand_layouts=own, result_layouts=own)[0]

    def constrained(self, x: Value, mesh, spec: PartitionSpec, out=None, is_open: bool = False) -> Value:
        """`x`, divided as a spec says; with `is_open` the compiler may divide it further.

        Args:
            out: the result's type, if it is not that of `x`.
        """
        manual = self.manual.axes if self.manual is not None else frozenset()
        text = self.meshes.text(mesh, spec, x.aval.ndim, is_open, manual)
        out, attrs = x.aval if out is None else out, f"sharding = #sdy.sharding{text}"
        found = self.op("sdy.sharding_constraint", out, x, attrs=attrs)
        found.definition = "constraint", x, ()
        return found

    def divide_alike(self, *values: Value) -> None:
        """Ask that values are divided alike."""
        group = self.meshes.new_group()
        for v in values:
            self.ops("sdy.sharding_group", [], v, attrs=f"group_id = {group} : i64")

    # inside of a region for one device's part
    manual_part = Manual
    groups_along, pairs_along = shardings.groups_along, shardings.pairs_along
    index_along = shardings.index_along

    # -- products --------------------------------------------------------------------------------------

    def precision_text(self, asked) -> str:
        """The attributes for the precision that a product was asked for, after a comma.

        Algorithms are omitted on the CPU, which has none.

        Args:
            asked: names of precisions, one for each operand, or the fields of an algorithm.
        """
        if isinstance(asked, tuple):
            names = ", ".join([f"#stablehlo<precision {name}>" for name in asked])
            return f", precision_config = [{names}]"
        if asked is None or self.platform == "cpu":
            return ""
        fields = ", ".join([f"{k} = {v}" for k, v in asked.items()])
        return f", algorithm = #stablehlo.dot_algorithm<{fields}>"

    def note_product(self, operation: str, out, x: Value, y: Value, attrs: str, terms: int) -> None:
        """Tell the facts of a product or convolution that sums so many terms for each element."""
        types = x.aval, y.aval, out
        work = prod(out.shape) * terms
        self.facts.add(Product(operation, out.dtype, types, attrs, terms, work, self.loops > 0))

    def _note(self, product: Product, count: int = 1) -> None:
        self.facts.add(product._replace(is_in_loop=True) if self.loops else product, count)


_locations: BoundedCache[tuple, str] = BoundedCache(1 << 14)


def location(scope: str | None, name: str) -> str:
    """How the text of an operation with a name within a scope ends; empty where none has names."""
    if scope is None:
        return ""
    found = _locations.get((scope, name))
    if found is None:
        text = string(f"{scope}/{name}" if scope else name)
        found = _locations.keep((scope, name), f" loc({text})")
    return found


def _with_place(ending: str, source) -> str:
    """The location with the user's file and line added."""
    at = f"{string(source.file)}:{source.line}:0"
    return f"{ending[:-1]}({at}))" if ending else f" loc({at})"


def _name_of_jit(scope: str, eqn) -> str:
    """The name of a call of a jitted function, within the names around it."""
    name = f"jit({eqn.params['name']})"
    if scope.endswith(")") and scope.rstrip(")").endswith("("):
        # The name of a transformed function goes inside: jvp(jit(f)).
        at = len(scope.rstrip(")"))
        return scope[:at] + name + scope[at:]
    return f"{scope}/{name}" if scope else name


def identifier(name: str) -> str:
    """A name that MLIR and XLA accept as a symbol."""
    text = "".join([c if c.isascii() and (c.isalnum() or c in "_.") else "_" for c in name])
    return text if text and not (text[0].isdigit() or text[0] == ".") else f"_{text}"


def _is_combined(body, dtype) -> bool:
    """Whether XLA can combine the results of a reduction on several devices."""
    return body in ("add", "multiply", "maximum", "minimum") or body in ("and", "or") and dtype.kind == "b"
