"""Operations with regions or outside functions: loops, branches, reductions, custom calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gradix._base import config
from gradix._core.aval import AbstractToken, make_aval
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.sharding import UNCONSTRAINED, PartitionSpec
from gradix._stablehlo.attributes import dictionary, i64_array, i64_tensor, layout, string
from gradix._stablehlo.sharding_rules import batch_rule
from gradix._stablehlo.shardings import Manual, Meshes, communication, coordinates, pairs
from gradix._stablehlo.types import element_type
from gradix._stablehlo.writer import Value, Writer

_options = config.state

TOKEN = AbstractToken()
_INDEX, _PARTITION = make_aval((), np.dtype("int32")), make_aval((), np.dtype("uint32"))
# The prefix of the custom call targets that run loops of NumPy.
HOST_KERNEL = "gradix_host_"
_CARRIERS = {"i2": "int8", "i4": "int8", "ui2": "uint8", "ui4": "uint8", "f4E2M1FN": "float32"}


class HostCallback(NamedTuple):
    """A Python function that the program calls, from NumPy arrays to a sequence of them."""

    function: Callable
    in_avals: tuple
    out_avals: tuple
    ordered: bool = False
    # whether it gets and returns arrays, in place of buffers of which it fills the last
    by_value: bool = False


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


class Structured(Writer):
    """Adds regions, custom calls and the ordering token to the writer."""

    def __init__(self, platform: str = "cpu"):
        super().__init__()
        self.platform = platform
        # whether operations are written in the forms that XLA:CPU compiles best
        self.tunes = platform == "cpu"
        self.host_callbacks: list[HostCallback] = []
        self.partitioners: list[Any] = []
        self.token: Value | None = None
        # calls the routines of another library in place of LAPACK
        self.solver: Callable | None = None
        self.loops = 0  # how many loops are open
        # the operand types of the reduction whose body is being written
        self.reduced: tuple = ()
        self.placed_on(Meshes(None))
        self.manual: Manual | None = None  # set inside a region for one device's part

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

    # -- communication, inside of a region for one device's part -----------------------------------

    def groups_along(self, names, axis_index_groups=None) -> str:
        """The attributes for the device groups of a collective over named mesh axes."""
        return communication(self, names, axis_index_groups)

    def pairs_along(self, names, perm) -> str:
        """The attributes for the pairs of sender and receiver along named mesh axes."""
        return pairs(self, names, perm)

    def manual_part(self, mesh, axes: frozenset, indices: dict) -> Manual:
        """The value of `manual` inside a region for one device's part."""
        return Manual(mesh, axes, indices)

    def index_along(self, name) -> Value:
        """The index of this device along a mesh axis, an int32."""
        manual = self.manual
        assert manual is not None
        if name in manual.indices:
            return manual.indices[name]
        table = coordinates(self.meshes.positions(manual.mesh), manual.mesh.axis_names.index(name))
        place = self.op("convert", _INDEX, self.op("partition_id", _PARTITION))
        rows = self.constant(table, make_aval(table.shape, table.dtype))
        row = self.op(
            "dynamic_slice",
            make_aval((1,), table.dtype),
            rows,
            place,
            attrs="slice_sizes = array<i64: 1>",
        )
        return self.op("reshape", _INDEX, row)

    # -- names -------------------------------------------------------------------------------------

    # the prefix of the names of operations; None where operations have no names
    scope: str | None = None

    def named(self, name: str) -> _Naming:
        """Context manager: the names of operations written inside are prefixed with `name`."""
        around = self.scope
        if around is None or not name:
            return _Naming(self, around, self.ending)
        return _Naming(self, f"{around}/{name}" if around else name, self.ending)

    def called(self, name: str) -> _Naming:
        """Context manager: unnamed operations written inside get this name."""
        scope = self.scope
        if scope is None:
            return _Naming(self, scope, self.ending)
        return _Naming(self, scope, f" loc({string(f'{scope}/{name}' if scope else name)})")

    # -- regions -----------------------------------------------------------------------------------

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
        return self.ops(
            "reduce",
            out_avals,
            *xs,
            *inits,
            attrs=f"dimensions = {i64_array(axes)}",
            regions=(region,),
        )

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

    def while_loop(
        self, init, cond: Callable, body: Callable, ordered: bool = False
    ) -> list[Value]:
        """Loop while `cond(*carry)` gives true; both functions may use outer values.

        `ordered` carries the ordering token through, for bodies with ordered effects.
        """
        carry = [*init, self.ordering_token()] if ordered else list(init)
        avals = [v.aval for v in carry]
        kept: list[bool] = []
        if any(map(_summed, avals)) and self.is_divided:
            kept = [self.is_zero(v) for v in carry]
            carry, cond, body = self._with_sums(avals, kept, carry, cond, body)
        cond_ = (lambda *xs: cond(*xs[:-1])) if ordered else cond
        turn = self._with_token(body) if ordered else body
        self.loops += 1
        with self.named("while/cond"):
            test = self.region(avals, cond_)
        with self.named("while/body"):
            regions = test, self.region(avals, turn)
        self.loops -= 1
        found = self._take_token(self.ops("while", avals, *carry, regions=regions), ordered)
        return self._as_parts(found, avals, kept) if kept else found

    def _with_sums(self, avals, kept, carry, cond, body) -> tuple:
        """A loop that carries summands.

        XLA adds up summands where a loop begins, but not after its steps. So those that begin as
        zeros are `kept`, and others are added up after each step.
        """

        def parts(fn):
            return lambda *xs: fn(*self._as_parts(xs, avals, kept))

        return (
            self._as_whole(carry, avals, kept),
            parts(cond),
            lambda *xs: self._as_whole(parts(body)(*xs), avals, kept),
        )

    def is_zero(self, x: Value) -> bool:
        """Whether a value is known to be zeros."""
        while x.definition is not None and x.definition[0] in ("broadcast_in_dim", "constraint"):
            x = x.definition[1]
        found = [self._constants.get((f"dense<{zero}>", x.type)) for zero in ("0.0", "0")]
        return any(v is not None and v.name == x.name for v in found)

    def optimization_barrier(self, values) -> list[Value]:
        """The values, which the compiler computes before their uses and does not merge."""
        avals = [v.aval for v in values]
        if not self.is_divided:
            return self.ops("optimization_barrier", avals, *values)
        kept = [True] * len(avals)
        given = self._as_whole(values, avals, kept)
        return self._as_parts(self.ops("optimization_barrier", avals, *given), avals, kept)

    def compare(self, x: Value, y: Value, direction: str, kind: str | None = None) -> Value:
        raise NotImplementedError

    def select(self, pred: Value, x: Value, y: Value) -> Value:
        raise NotImplementedError

    def as_summands(self, x: Value, mesh, names) -> Value:
        """`x` as a sum along mesh axes: the first device of each row has it, the others have zeros.

        It is written as a sum over a leading axis that is divided over these mesh axes, which XLA
        leaves to be finished.
        """
        plain = make_aval(x.aval.shape, x.aval.dtype, False)
        lead = prod([mesh.shape[a] for a in names])
        wide = make_aval((lead, *plain.shape), plain.dtype, False)
        place = make_aval(wide.shape, _INDEX.dtype)
        number = self.op("iota", place, attrs="iota_dimension = 0 : i64")
        first = self.compare(number, self.constant(0, place), "EQ")
        rows = self.broadcast_in_dim(x, wide, range(1, wide.ndim))
        rows = self.select(first, rows, self.constant(0, wide))
        spec = PartitionSpec(tuple(names), *[UNCONSTRAINED] * plain.ndim)
        rows = self.constrained(rows, mesh, spec)
        zero = self.constant(0, make_aval((), plain.dtype, False))
        return self.reduce([rows], [zero], (0,), [plain], "add")[0]

    def constrained(self, x: Value, mesh, spec: PartitionSpec) -> Value:
        """`x`, divided as a spec says."""
        sharding = f"sharding = #sdy.sharding{self.meshes.text(mesh, spec, x.aval.ndim)}"
        found = self.op("sdy.sharding_constraint", x.aval, x, attrs=sharding)
        found.definition = "constraint", x, ()
        return found

    def added_up(self, x: Value, aval) -> Value:
        """`x`, added up if values of the type `aval` are summands."""
        return self._as_whole([x], [aval], [False])[0] if self.is_divided else x

    def in_parts(self, x: Value, aval) -> Value:
        """`x`, made a summand if values of the type `aval` are."""
        return self._as_parts([x], [aval], [False])[0] if self.is_divided else x

    def _as_whole(self, values, avals, kept) -> list[Value]:
        """The values, added up where their types say that they are summands, unless `kept`."""
        return [
            v if s is None else self.constrained(v, s.mesh, s.spec if k else PartitionSpec(*s.spec))
            for v, s, k in zip(values, map(_summed, avals), kept)
        ]

    def _as_parts(self, values, avals, kept) -> list[Value]:
        """The values, made summands again where their types say so, unless `kept`."""
        out = []
        for v, s, k in zip(values, map(_summed, avals), kept):
            if s is not None:
                names = [a for a in s.mesh.axis_names if a in s.spec.unreduced]
                v = self.constrained(v if k else self.as_summands(v, s.mesh, names), s.mesh, s.spec)
            out.append(v)
        return out

    def case(self, index: Value, branches, out_avals, ordered: bool = False) -> list[Value]:
        """Run the branch numbered `index` (an int32 scalar; out of range runs the last).

        Branches have no arguments.
        """
        outs = [*out_avals, TOKEN] if ordered else list(out_avals)
        before = self.ordering_token() if ordered else None
        regions = []
        for i, branch in enumerate(branches):
            self.token = before if ordered else self.token
            with self.named(f"cond/branch_{i}_fun"):
                if any(map(_summed, out_avals)) and self.is_divided:
                    branch = partial(self._ending_in_sums, branch, out_avals)
                regions.append(
                    self.region((), self._returning_token(branch) if ordered else branch)
                )
        found = self._take_token(self.ops("case", outs, index, regions=regions), ordered)
        return self._as_parts(found, out_avals, [True] * len(found)) if self.is_divided else found

    def _ending_in_sums(self, branch: Callable, out_avals) -> list[Value]:
        return self._as_whole(branch(), out_avals, [True] * len(out_avals))

    def shape_operands(self, outs) -> list[Value]:
        raise NotImplementedError

    def ordering_token(self) -> Value:
        """The token that the next ordered effect must wait for."""
        if self.token is None:
            self.token = self.op("create_token", TOKEN)
        return self.token

    @contextlib.contextmanager
    def solved_by(self, solver: Callable):
        """Context manager: factorizations inside call another library in place of LAPACK."""
        before, self.solver = self.solver, solver
        try:
            yield
        finally:
            self.solver = before

    def join_tokens(self, tokens) -> None:
        """Let the next ordered effect wait for all of these tokens."""
        if tokens:
            one = len(tokens) == 1
            self.token = tokens[0] if one else self.op("after_all", TOKEN, *tokens)

    def _with_token(self, fn):
        def body(*xs):
            self.token = xs[-1]
            return [*fn(*xs[:-1]), self.token]

        return body

    def _returning_token(self, fn):
        return lambda: [*fn(), self.token]

    def _take_token(self, results: list[Value], ordered: bool) -> list[Value]:
        if ordered:
            self.token = results.pop()
        return results

    def custom_call(
        self,
        target: str,
        out_avals,
        *values: Value,
        backend_config: dict | str | None = None,
        api_version: int = 4,
        operand_layouts=None,
        result_layouts=None,
        aliases=None,
        has_side_effect: bool = False,
        attrs: str = "",
        is_refined: bool = False,
        batch: int = 0,
    ) -> list[Value]:
        """Call a function registered with XLA under `target`.

        Args:
            backend_config: attributes by name (`np.uint8(76)` gives `76 : ui8`), or a string for
                old targets.
            operand_layouts: dimensions from minor to major, one sequence per operand; likewise
                `result_layouts`.
            aliases: `{result index: operand index}` of buffers the call may reuse.
            is_refined: whether XLA infers the shapes of symbolic results. Otherwise the call takes
                these shapes as operands.
            batch: over how many leading axes of all operands and results the compiler may divide the
                call. The function must be registered as one that it can divide so.
        """
        self.facts.custom_calls.add(target)
        parts = [
            f"call_target_name = {string(target)}, api_version = {api_version} : i32, "
            f"has_side_effect = {str(has_side_effect).lower()}"
        ]
        if backend_config is not None:
            text = (
                dictionary(backend_config)
                if isinstance(backend_config, dict)
                else string(backend_config)
            )
            parts.append(f"backend_config = {text}")
        if not is_refined and any(
            type(a) is not AbstractToken and SymbolicDim in map(type, a.shape) for a in out_avals
        ):
            n = len(values)
            values = (*values, *self.shape_operands(out_avals))
            parts.append(
                f"indices_of_shape_operands = {i64_tensor(range(n, n + len(out_avals)), (len(out_avals),))}"
            )
            if operand_layouts is not None:
                operand_layouts = [*operand_layouts, *[(0,)] * len(out_avals)]
        if operand_layouts is not None:
            parts.append(f"operand_layouts = [{', '.join(map(layout, operand_layouts))}]")
        if result_layouts is not None:
            parts.append(f"result_layouts = [{', '.join(map(layout, result_layouts))}]")
        if aliases:
            parts.append(
                f"output_operand_aliases = [{', '.join(_aliases(aliases, len(out_avals)))}]"
            )
        if attrs:
            parts.append(attrs)
        if batch and self.is_divided:
            rule = batch_rule([v.shape for v in values], [a.shape for a in out_avals], batch)
            parts.append(f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}')
            parts.append(f"sdy.sharding_rule = {rule.text()}")
        return self.ops("custom_call", out_avals, *values, attrs=", ".join(parts))

    def has_host_kernels(self, *avals) -> bool:
        """Whether a program may call NumPy on these types: on the CPU, unless switched off."""
        return (
            self.tunes
            and _options.gradix_host_kernels
            and all(type(n) is int for a in avals for n in a.shape)
        )

    def host_kernel(
        self, name: str, outs: list, *values: Value, aliases: dict | None = None, batch: int = 1
    ) -> list[Value]:
        """Call a loop of NumPy (`_runtime/host_kernels.py`).

        `aliases` lets results reuse operand buffers. The compiler may divide the call over `batch`
        leading axes.
        """
        return self.custom_call(
            HOST_KERNEL + name,
            outs,
            *values,
            backend_config={},
            operand_layouts=[_row_major(v.aval) for v in values],
            result_layouts=list(map(_row_major, outs)),
            aliases=aliases,
            batch=batch,
        )

    def callback(
        self,
        function: Callable,
        out_avals,
        *values: Value,
        has_side_effect: bool = False,
        ordered: bool = False,
    ) -> list[Value]:
        """Call a Python function on the host with the operands as NumPy arrays.

        Without a side effect the call may be dropped, repeated or merged; `ordered` calls run in
        program order.
        """
        has_side_effect = has_side_effect or ordered
        # on several devices it happens on the first, and XLA keeps that for this target only
        is_once = has_side_effect and self.is_divided
        # buffers on a GPU are not in the host's memory
        by_value = is_once or self.platform != "cpu"
        record = HostCallback(
            function, tuple(v.aval for v in values), tuple(out_avals), ordered, by_value
        )
        self.host_callbacks.append(record)
        platform = "cpu" if self.platform == "cpu" else "gpu"
        target = f"xla_{'ffi' if by_value else 'buffer'}_python_{platform}_callback"
        config: dict[str, Any] = {"index": np.uint64(len(self.host_callbacks) - 1)}
        carried = [_carrier(a) for a in out_avals]
        operands = [self._converted(v, _carrier(v.aval)) for v in values]
        if ordered:
            operands, carried = [self.ordering_token(), *operands], [TOKEN, *carried]
        attrs = ""
        if is_once:
            places = ", ".join([self.meshes.on_first_device()] * max(len(carried), 1))
            attrs = f"sdy.sharding = #sdy.sharding_per_value<[{places}]>"
        results = self.custom_call(
            target,
            carried,
            *operands,
            backend_config=config,
            operand_layouts=[_row_major(v.aval) for v in operands],
            result_layouts=list(map(_row_major, carried)),
            has_side_effect=has_side_effect,
            attrs=attrs,
        )
        if ordered:
            self.token = results.pop(0)
        return [self._converted(r, a) for r, a in zip(results, out_avals)]

    def _converted(self, x: Value, aval) -> Value:
        return x if x.aval is aval else self.op("convert", aval, x)


def _row_major(aval) -> tuple:
    """The layout of NumPy's arrays; tokens have no axes."""
    return () if type(aval) is AbstractToken else tuple(range(aval.ndim - 1, -1, -1))


def _summed(aval):
    """The division of a type that says its values are summands; else None."""
    division = getattr(aval, "division", None)
    return division if division is not None and division.spec.unreduced else None


def _is_combined(body, dtype) -> bool:
    """Whether XLA can combine the results of a reduction on several devices."""
    return (
        body in ("add", "multiply", "maximum", "minimum")
        or body in ("and", "or")
        and dtype.kind == "b"
    )


def _carrier(aval):
    """The type in which a callback gets an array: NumPy has no packed narrow types, as XLA does."""
    element = element_type(aval.dtype)
    wide = _CARRIERS.get(element)
    return aval if wide is None else make_aval(aval.shape, np.dtype(wide), False)


def _aliases(aliases: dict, results: int) -> list[str]:
    return [
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{out if results > 1 else ''}], "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for out, operand in aliases.items()
    ]
