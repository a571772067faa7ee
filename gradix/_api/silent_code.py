"""Functions of which nobody can tell whether Python runs them: their code computes with arrays, and does nothing else.

`silence_of` reads the code of a function and of all functions that it uses. It is sure of a yes: whatever it does not
know (another class, a call of `print`, a change of something that was there before) is a no. The argument is one of
induction. What a function begins with is an array, a number, or a built-in container of these; globals and captured
variables are such values too, or functions that compute; and what such functions make of such values is such a value.
So an operation of Python, or an attribute of any value that there is, has no effect that lasts, but for those that
change containers, which count as `changes`.
"""

from __future__ import annotations

import builtins
import dis
import functools
import math
import operator
import os
import sys
import types
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradix._api.jit.jitted_function import JitFunction
from gradix._base.bounded import BoundedCache, on_clear
from gradix._core.array import ArrayImpl

# Operations of Python's virtual machine, of all versions, that compute or say what comes next. Absent are those that
# write to globals, attributes, items and outer variables, import, enter contexts, and handle exceptions.
_OPERATIONS = frozenset(
    """
    RESUME NOP NOT_TAKEN CACHE EXTENDED_ARG PRECALL PUSH_NULL POP_TOP COPY SWAP LOAD_CONST LOAD_SMALL_INT LOAD_FAST
    LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW
    STORE_FAST STORE_FAST_STORE_FAST STORE_FAST_LOAD_FAST DELETE_FAST LOAD_CLOSURE MAKE_CELL COPY_FREE_VARS
    MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE CALL CALL_FUNCTION_EX CALL_KW KW_NAMES BINARY_OP BINARY_SUBSCR BINARY_SLICE
    BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP BUILD_SLICE BUILD_STRING FORMAT_VALUE
    FORMAT_SIMPLE FORMAT_WITH_SPEC CONVERT_VALUE LIST_EXTEND LIST_APPEND SET_ADD SET_UPDATE MAP_ADD DICT_MERGE
    DICT_UPDATE LIST_TO_TUPLE UNPACK_SEQUENCE UNPACK_EX UNARY_NEGATIVE UNARY_POSITIVE UNARY_NOT UNARY_INVERT
    COMPARE_OP CONTAINS_OP TO_BOOL RETURN_VALUE RETURN_CONST RETURN_GENERATOR YIELD_VALUE GET_ITER FOR_ITER END_FOR
    POP_ITER JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP
    POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE
    POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE
    POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE GET_LEN LOAD_ASSERTION_ERROR
    RAISE_VARARGS RERAISE LOAD_COMMON_CONSTANT
    """.split()
)
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_ITEMS = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"})
_NAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "STORE_DEREF"})
# the functions of the interpreter for generators, `+x` and `(*x,)`; others print and import
_INTRINSICS = frozenset({3, 5, 6})

# Attributes whose use can be seen from outside, or that tell traced values from others; names with an underscore too.
_TELLING = frozenset(
    "addressable_data addressable_shards block_until_ready clear_cache committed copy_to_host_async delete device "
    "devices format global_shards is_deleted is_fully_addressable is_fully_replicated is_ready sharding to "
    "to_device type format_map on_device_size_in_bytes unsafe_buffer_pointer backward requires_grad_".split()
)
# attributes that change containers
_CHANGING = frozenset(
    "add append clear discard extend insert pop popitem remove reverse setdefault sort update".split()
)

# modules whose functions compute, except for those of the names below
_MODULES = tuple(
    f"{root}.{name}"
    for root in ("gradix", "jax")
    for name in """
    numpy numpy.fft numpy.linalg lax lax.linalg nn nn.initializers random scipy scipy.cluster scipy.cluster.vq scipy.fft
    scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal scipy.sparse
    scipy.sparse.linalg scipy.spatial scipy.spatial.transform scipy.special scipy.stats tree tree_util flatten_util
    image ops
    """.split()
)
_NOT_COMPUTING = frozenset(
    "load save savez fromfile from_dlpack frompyfunc set_printoptions printoptions create_token after_all".split()
)
# what the package itself has of such functions
_TRANSFORMATIONS = frozenset(
    "checkpoint eval_shape grad hessian jacfwd jacobian jacrev jit jvp laplacian linear_transpose linearize remat "
    "value_and_grad vjp vmap".split()
)
_BUILTINS = frozenset(
    id(f)
    for f in (abs, all, any, bool, complex, dict, divmod, enumerate, float, int, len, list, max, min, pow, range)
    + (reversed, round, slice, sorted, sum, tuple, zip, map, filter, AssertionError, TypeError, ValueError)
)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# where what transformations return is written
_WRAPPERS = tuple(
    os.path.join(_PACKAGE, *p)
    for p in (("_api", "derivatives", ""), ("_api", "mapping", ""), ("_base", "tracebacks.py"))
)
_ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None), type(Ellipsis), slice, range, np.dtype})


_BYTES = 1 << 14  # a larger NumPy array, which someone may write to, is not compared


class Silence:
    """What was found of a silent function, or of several: it stays silent while `holds()`.

    Attributes:
        changes: whether the function changes containers. They are its own, unless it is given some.
        read: places of variables (a dict and a name, or a cell and None) with what they held.
        held: lists, dicts and NumPy arrays that it captured, with what they held.
    """

    __slots__ = ("changes", "held", "read")

    def __init__(self, changes: bool, read: tuple, held: tuple):
        self.changes, self.read, self.held = changes, read, held

    def joined(self, other: Silence) -> Silence:
        """What is known of the functions of both."""
        return Silence(self.changes or other.changes, self.read + other.read, self.held + other.held)

    def holds(self) -> bool:
        """Whether all that the function reads, from outside of it, is as it was read."""
        try:
            for where, name, value in self.read:
                found = where.get(name, _ABSENT) if name is not None else where.cell_contents
                if found is not value:
                    return False
        except ValueError:  # a variable of an outer function was deleted
            return False
        return all(_is_as_before(x, content) for x, content in self.held)


def _content(x: list | dict | np.ndarray) -> Any:
    """What tells of a container that it was not changed."""
    if isinstance(x, np.ndarray):
        return x.shape, x.dtype, x.tobytes()
    return (*x.keys(), *x.values()) if isinstance(x, dict) else tuple(x)


def _is_as_before(x: list | dict | np.ndarray, content: Any) -> bool:
    now = _content(x)
    if type(x) is np.ndarray:
        return now == content
    return len(now) == len(content) and all(map(operator.is_, now, content))


def silence_of(function: Any) -> Silence | None:
    """What is known of a function that computes and does nothing else; None where that is not known.

    Example:
        >>> import gradix.numpy as jnp
        >>> silence_of(lambda x: jnp.sin(x) ** 2) is None, silence_of(lambda x: print(x)) is None
        (False, True)
    """
    reading = _Reading()
    try:
        found = reading.takes(function)
    except RecursionError:
        return None
    if not found or (reading.changes and reading.held):
        return None
    return Silence(reading.changes, tuple(reading.read), tuple(reading.held))


class _Reading:
    """One walk through a function and all that it uses."""

    __slots__ = ("read", "held", "changes", "met")

    def __init__(self) -> None:
        self.read: list[tuple[Any, str | None, Any]] = []
        self.held: list[tuple[Any, Any]] = []
        self.changes = False
        self.met: dict[int, Any] = {}

    def takes(self, x: Any) -> bool:
        """Whether nothing happens by way of a value that a function reads."""
        kind = type(x)
        if kind in _ATOMS or kind is ArrayImpl or id(x) in _BUILTINS:
            return True
        if isinstance(x, type):
            return issubclass(x, np.generic) or _computes(x) or is_named_tuple(x)
        if kind is types.FunctionType:
            return self._takes_function(x)
        if _computes(x):
            return True
        if kind is tuple or kind is frozenset:
            return all(self.takes(v) for v in x)
        if isinstance(x, np.generic):
            return True
        if kind is list or kind is dict or (kind is np.ndarray and x.nbytes <= _BYTES and not x.dtype.hasobject):
            return self._takes_container(x)
        if kind is functools.partial:
            self.read += [(x.keywords, name, value) for name, value in x.keywords.items()]
            return all(self.takes(v) for v in (x.func, *x.args, *x.keywords.values()))
        if isinstance(x, JitFunction):
            return self.takes(x._fun)
        return kind is types.BuiltinFunctionType and x.__self__ is math

    def _takes_container(self, x: Any) -> bool:
        if id(x) in self.met:
            return True
        self.met[id(x)] = x
        content = _content(x)
        self.held.append((x, content))
        return type(x) is np.ndarray or all(self.takes(v) for v in content)

    def _takes_function(self, f: types.FunctionType) -> bool:
        if id(f) in self.met:
            return True
        self.met[id(f)] = f
        code, closure = f.__code__, f.__closure__ or ()
        if _is_own(code):
            if _computes(f):
                return True
            is_wrapper = "<locals>" in code.co_qualname and code.co_filename.startswith(_WRAPPERS)
            return is_wrapper and all(self._takes_cell(c) for c in closure)
        if f.__kwdefaults__ or not all(self.takes(v) for v in f.__defaults__ or ()):
            return False
        cells = dict(zip(code.co_freevars, closure))
        return self._takes_code(code, f.__globals__, cells)

    def _takes_cell(self, cell: types.CellType) -> bool:
        try:
            content = cell.cell_contents
        except ValueError:
            return False
        self.read.append((cell, None, content))
        return self.takes(content)

    def _takes_code(self, code: types.CodeType, names: dict, cells: dict[str, Any]) -> bool:
        """Whether code computes; the variables of an outer function are in `cells`, None for those that are its own."""
        if code.co_flags & (0x80 | 0x200):  # a coroutine, or an asynchronous generator
            return False
        before = ""
        for instruction, value in self._named(code, names, cells):
            name, argument = instruction.opname, instruction.argval
            last, before = before, name
            if name in _ITEMS:
                self.changes = True
            elif name == "IS_OP":  # a traced value has an identity of its own
                if last != "LOAD_CONST":
                    return False
            elif name in _OPERATIONS:
                if name == "BINARY_OP" and instruction.argrepr.endswith("="):
                    self.changes = True
                if name == "LOAD_CONST" and isinstance(argument, types.CodeType):
                    own = {n: cells.get(n) for n in argument.co_freevars}
                    if not self._takes_code(argument, names, own):
                        return False
            elif name in _ATTRIBUTES:
                if argument.startswith("_") or argument in _TELLING:
                    return False
                if argument in _CHANGING:
                    self.changes = True
            elif name in ("CALL_INTRINSIC_1", "CALL_INTRINSIC_2"):
                if name.endswith("2") or instruction.arg not in _INTRINSICS:
                    return False
            elif name in _NAMES:
                if value is _ABSENT or (value is not _OWN and not self.takes(value)):
                    return False
            else:
                return False
        return True

    def _named(self, code: types.CodeType, names: dict, cells: dict) -> Iterator[tuple[dis.Instruction, Any]]:
        """The instructions, each of a name with what it stands for; attributes of modules belong to the name."""
        instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
        at = 0
        while at < len(instructions):
            first, value = instructions[at], None
            at += 1
            if first.opname in _NAMES:
                value = self._value(first, names, cells)
                while isinstance(value, types.ModuleType):
                    if at == len(instructions) or instructions[at].opname not in _ATTRIBUTES:
                        value = _ABSENT
                        break
                    value = self._of_module(value, instructions[at].argval)
                    at += 1
            yield first, value

    def _value(self, instruction: dis.Instruction, names: dict, cells: dict) -> Any:
        """What a name stands for."""
        name = instruction.argval
        if instruction.opname == "STORE_DEREF":
            return _ABSENT if name in cells else _OWN
        if instruction.opname == "LOAD_DEREF":
            cell = cells.get(name)
            if cell is None:
                return _OWN
            try:
                content = cell.cell_contents
            except ValueError:
                return _ABSENT
            self.read.append((cell, None, content))
            return content
        found = names.get(name, _ABSENT)
        self.read.append((names, name, found))
        if found is _ABSENT:
            found = vars(builtins).get(name, _ABSENT)
            self.read.append((vars(builtins), name, found))
        return found

    def _of_module(self, module: types.ModuleType, name: str) -> Any:
        """An attribute of a module."""
        if name in vars(module):
            found = vars(module)[name]
            self.read.append((vars(module), name, found))
            return found
        return getattr(module, name, _ABSENT)  # a module of the package has more when it is asked for


class _Absent:
    """The class of what stands for no value."""


_ABSENT, _OWN = _Absent(), _Absent()


def _is_own(code: types.CodeType) -> bool:
    """Whether code is of this package."""
    return code.co_filename.startswith(_PACKAGE)


# the functions that compute, by id, with the number of names in the modules that were looked through
_computing: BoundedCache[str, tuple[int, dict[int, Any]]] = BoundedCache(1)
on_clear(_computing.clear)


def _computes(x: Any) -> bool:
    """Whether a value is one of the package's public functions, classes and numbers that compute."""
    modules = [m for m in map(sys.modules.get, _MODULES) if m is not None]
    found = _computing.get("")
    size = sum(len(vars(m)) for m in modules)  # they load what they have when it is asked for
    if found is None or found[0] != size:
        public = {}
        for module in modules:
            for name in [n for n in vars(module) if not n.startswith(("_", "register")) and n not in _NOT_COMPUTING]:
                value = vars(module)[name]
                if not isinstance(value, types.ModuleType):
                    public[id(value)] = value
        for root in (sys.modules.get("gradix"), sys.modules.get("jax")):
            public |= {
                id(vars(root)[n]): vars(root)[n] for n in _TRANSFORMATIONS if root is not None and n in vars(root)
            }
        found = _computing.keep("", (size, public))
    return id(x) in found[1]


def is_named_tuple(kind: type) -> bool:
    """Whether a class is a named tuple that has nothing but its fields."""
    fields = getattr(kind, "_fields", None)
    if kind.__mro__ != (kind, tuple, object) or fields is None or getattr(kind, "_field_defaults", None):
        return False
    usual = {*vars(_Usual), *fields, "__orig_bases__"}
    return {n for n in vars(kind) if not n.startswith("__annot")} <= usual


_Usual = namedtuple("_Usual", ())
