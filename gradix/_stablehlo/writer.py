"""Writes operations, constants and regions, one line each, in MLIR's generic form."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._core.aval import make_aval
from gradix._stablehlo.facts import Facts
from gradix._stablehlo.literals import dense, scalar_text
from gradix._stablehlo.types import storage_dtype, tensor_type


class Value:
    """An SSA value: its name in the text, its aval, and its number if it is a known constant.

    For transposes, broadcasts, conversions and iotas, `definition` holds the name of the operation,
    its operand and its axes.
    """

    __slots__ = ("name", "aval", "type", "known", "definition")

    def __init__(self, name: str, aval, type: str, known: int | None = None):
        self.name, self.aval, self.type, self.known = name, aval, type, known
        # (operation, operand, axes), or None for other operations
        self.definition: Any = None

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)

    @property
    def transposed(self) -> tuple[Value, tuple] | None:
        """The value that this one transposes, and the permutation."""
        made = self.definition
        return made[1:] if made is not None and made[0] == "transpose" else None

    @property
    def converted_from(self) -> np.dtype | None:
        """The dtype that the value was converted from; None if it is not a conversion."""
        return self.definition[1].aval.dtype if self._is_made_by("convert") else None

    @property
    def filled_with(self) -> Value | None:
        """The scalar whose broadcast the value is, or None."""
        is_spread = self._is_made_by("broadcast_in_dim") and not self.definition[1].aval.shape
        return self.definition[1] if is_spread else None

    @property
    def counted_axis(self) -> int | None:
        """The axis along which the value is 0, 1, 2, ..., if it is an iota; else None."""
        return self.definition[2][0] if self._is_made_by("iota") else None

    def _is_made_by(self, operation: str) -> bool:
        return self.definition is not None and self.definition[0] == operation

    def __repr__(self) -> str:
        return f"{self.name} : {self.type}"


class Writer:
    """Writes one function body at a time.

    Constants go to the head of the function, so that each is written once and every region sees it.
    XLA accepts regions that read outer values in `while`, `case` and `if`; the regions of `reduce`,
    `reduce_window`, `sort`, `scatter`, `select_and_scatter` and `map` may read constants only.
    """

    def __init__(self):
        self._lines: list[str] = []
        self._head: list[str] = []
        self._count = 0
        self.ending = ""  # the location that is appended to operations
        self._constants: dict = {}
        # scalars already broadcast in this body, by name, type and location
        self._broadcast: dict[tuple[str, str, str], Value] = {}
        self.facts = Facts()

    def value(self, aval) -> Value:
        """A new name."""
        self._count = n = self._count + 1
        return Value(f"%{n}", aval, tensor_type(aval))

    def op(self, opname: str, out, *values: Value, attrs: str = "", regions=()) -> Value:
        """Write an operation with one result of aval `out`.

        Args:
            opname: the name; without a dialect (`chlo.erf`) it is StableHLO's.
            attrs: what stands between the braces of the attribute dictionary.
            regions: texts made by `region`.
        """
        self._count = n = self._count + 1
        if regions:
            self.facts.structured.add(opname)
        t = tensor_type(out)
        if len(values) == 2:
            x, y = values
            names, types = f"{x.name}, {y.name}", f"{x.type}, {y.type}"
        elif len(values) == 1:
            names, types = values[0].name, values[0].type
        else:
            names, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
        if "." not in opname:
            opname = "stablehlo." + opname
        middle = f" ({', '.join(regions)})" if regions else ""
        if attrs:
            self._lines.append(
                f'%{n} = "{opname}"({names}){middle} {{{attrs}}} : ({types}) -> {t}{self.ending}'
            )
        else:
            self._lines.append(
                f'%{n} = "{opname}"({names}){middle} : ({types}) -> {t}{self.ending}'
            )
        return Value(f"%{n}", out, t)

    def ops(self, opname: str, outs, *values: Value, attrs: str = "", regions=()) -> list[Value]:
        """Write an operation with any number of results."""
        if len(outs) == 1:
            return [self.op(opname, outs[0], *values, attrs=attrs, regions=regions)]
        types = [tensor_type(a) for a in outs]
        self._count = n = self._count + 1
        if regions:
            self.facts.structured.add(opname)
        head = f"%{n}:{len(outs)} = " if outs else ""
        name = opname if "." in opname else f"stablehlo.{opname}"
        middle = f" ({', '.join(regions)})" if regions else ""
        tail = f" {{{attrs}}}" if attrs else ""
        self._lines.append(
            f'{head}"{name}"({", ".join([v.name for v in values])}){middle}{tail}'
            f" : ({', '.join([v.type for v in values])}) -> ({', '.join(types)}){self.ending}"
        )
        return [Value(f"%{n}#{i}", a, t) for i, (a, t) in enumerate(zip(outs, types))]

    def constant(self, x, aval) -> Value:
        """A constant with the bits of `x`, a scalar or an array of the aval's shape.

        A scalar given for a larger aval fills it.
        """
        t = type(x)
        if t is int or t is bool or (t is float and x):  # not 0.0, which equals -0.0
            key = t, x, aval
            found = self._constants.get(key)
            if found is None:
                found = self._scalar(x, aval)
                if type(aval.size) is int:
                    self._constants[key] = found
            return found
        host = getattr(x, "host", None)
        if host is not None and not host.ndim:
            # A scalar may occur at many places; it is kept, so that its id is not reused.
            known = id(x), aval
            kept = self._constants.get(known)
            if kept is None:
                kept = self._constants[known] = x, self._scalar(host[()], aval)
            return kept[1]
        x = x if host is None else host
        if not isinstance(x, np.ndarray) or not x.ndim:
            return self._scalar(x[()] if isinstance(x, np.ndarray) else x, aval)
        if x.shape != aval.shape:
            raise ValueError(f"constant of shape {x.shape} does not fit the type {aval}")
        dtype = storage_dtype(aval.dtype)
        return self._constant(dense(x if x.dtype == dtype else x.astype(dtype)), aval)

    splat = constant

    def _scalar(self, x, aval) -> Value:
        if type(aval.size) is not int:
            return self.broadcast_in_dim(
                self._scalar(x, make_aval((), aval.dtype, False)), aval, ()
            )
        literal = (
            f"dense<{scalar_text(x, storage_dtype(aval.dtype))}>" if aval.size != 0 else "dense<>"
        )
        return self._constant(literal, aval)

    def _constant(self, literal: str, aval) -> Value:
        t = tensor_type(aval)
        key = (literal, t)
        found = self._constants.get(key)
        if found is None or found.aval is not aval:
            if found is None:
                self._count = n = self._count + 1
                self._head.append(
                    f'%{n} = "stablehlo.constant"() {{value = {literal} : {t}}} : () -> {t}'
                )
                found = self._constants[key] = Value(f"%{n}", aval, t)
            else:
                found = Value(found.name, aval, t)
        return found

    def broadcast_in_dim(self, x: Value, out, dims) -> Value:
        raise NotImplementedError

    def region(self, arg_avals, fn) -> str:
        """The text of a region; `fn` takes its arguments as values and returns its results."""
        outer = self._lines, self._broadcast, self.ending
        self._lines, self._broadcast = [], {}
        self.ending = ""  # the operation that has the region carries the location
        try:
            args = [self.value(a) for a in arg_avals]
            outs = fn(*args)
            outs = [outs] if isinstance(outs, Value) else list(outs)
            head = f"^bb0({', '.join([f'{v.name}: {v.type}' for v in args])}):\n" if args else ""
            body = "".join([line + "\n" for line in self._lines])
        finally:
            self._lines, self._broadcast, self.ending = outer
        names, types = ", ".join([v.name for v in outs]), ", ".join([v.type for v in outs])
        return f'{{\n{head}{body}"stablehlo.return"({names}) : ({types}) -> ()\n}}'

    def isolated_region(self, arg_avals, fn, end: str) -> str:
        """As `region`, for operations whose regions cannot read outer values, even constants."""
        saved = self._lines, self._broadcast, self._head, self._constants, self.ending
        self._lines, self._broadcast, self._head, self._constants, self.ending = [], {}, [], {}, ""
        try:
            args = [self.value(a) for a in arg_avals]
            outs = list(fn(*args))
            body = "".join([line + "\n" for line in (*self._head, *self._lines)])
        finally:
            self._lines, self._broadcast, self._head, self._constants, self.ending = saved
        head = f"^bb0({', '.join([f'{v.name}: {v.type}' for v in args])}):\n" if args else ""
        names, types = ", ".join([v.name for v in outs]), ", ".join([v.type for v in outs])
        return f'{{\n{head}{body}"{end}"({names}) : ({types}) -> ()\n}}'

    def body(self, arg_avals, fn, prefix: str = "%arg") -> tuple[list[Value], list[Value], str]:
        """The arguments, results and text of a function body, with its own names and constants."""
        saved = self._lines, self._broadcast, self._head, self._constants, self._count, self.ending
        self._lines, self._broadcast, self._head, self._constants = [], {}, [], {}
        self._count, self.ending = 0, ""
        try:
            args = [Value(f"{prefix}{i}", a, tensor_type(a)) for i, a in enumerate(arg_avals)]
            outs = list(fn(*args))
            return args, outs, "\n".join(self._head + self._lines)
        finally:
            (
                self._lines,
                self._broadcast,
                self._head,
                self._constants,
                self._count,
                self.ending,
            ) = saved
