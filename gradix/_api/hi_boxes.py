"""Values of libraries' mutable types above arrays, as transformations see them: boxes of refs.

A program that is traced has no such values. Each array of a value is a `Ref` (mutable array), so
that reads and writes are those of refs in every transformation. The state of a value includes the
types of its arrays, which a write may change; a jitted function does that to its arguments again
at each call.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from gradix._api.boundary import REF, Holder, holders
from gradix._base.tree import register_pytree_node
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.refs import AbstractRef, Ref
from gradix._core.trace import state

# the class of a value -> a function from a value to its type
kinds: dict[type, Any] = {}
# the boxes of values outside of all traces, by the id of the value, which the box keeps alive
_boxes: WeakValueDictionary[int, Box] = WeakValueDictionary()


class _Working(threading.local):
    """The ids of the values on which an operation is being evaluated."""

    def __init__(self):
        self.ids: frozenset = frozenset()


_working = _Working()


class working_on:
    """Context manager within which operations on `values` are evaluated on the objects themselves."""

    __slots__ = ("ids", "before")

    def __init__(self, values: Iterable):
        self.ids = [id(v) for v in values]

    def __enter__(self) -> None:
        self.before = _working.ids
        _working.ids = self.before.union(self.ids)

    def __exit__(self, *_) -> None:
        _working.ids = self.before


class Box:
    """A mutable value inside of transformations; its type defines its attributes and operators.

    Attributes:
        aval: its type.
        qdd: its state, as the library describes it, with types that are not weak.
        refs: the mutable arrays that it is made of.
        cls: the class of the library's values of this type.
        handle: the ref that stands for the box among the leaves of arguments.
        pending: whether a function being traced gave it a state that it does not have outside.
    """

    __slots__ = ("aval", "qdd", "refs", "cls", "handle", "pending", "__weakref__")

    def __init__(self, aval: Any, qdd: Any, refs: Sequence[Ref], cls: type, handle: Ref | None):
        for name, value in zip(Box.__slots__, (aval, qdd, list(refs), cls, handle, False)):
            object.__setattr__(self, name, value)

    # the library's `isinstance(x, Value)` holds for boxes too
    __class__ = property(lambda self: self.cls)  # type: ignore[assignment]

    def level(self) -> int:
        """Traces of this level and deeper ones are inside the scope of the box."""
        handle: Any = self.handle
        if state.depth < handle._level:  # the function it was made in has returned
            handle._level = state.depth
        return handle._level

    def is_outside(self) -> bool:
        """Whether the box is from outside of the program being traced."""
        stage: Any = state.stage
        return stage is not None and stage.level >= self.level()

    def values(self) -> list:
        """The arrays that it is made of now."""
        return [r.read() for r in self.refs]

    def object(self) -> Any:
        """The value as an object of its library, made of arrays that may be traced."""
        return self.aval.new_from_loval(self.qdd, *self.values())

    def take(self, given: Any) -> None:
        """Change to the state of an object that `object` returned."""
        with working_on([given]):
            qdd = _plain(given.cur_qdd())
            arrays = [_strong(a) for a in self.aval.read_loval(qdd, given)]
        if qdd != self.qdd:
            self.restructure(qdd, arrays)
            return
        for ref, array in zip(self.refs, arrays):
            if array is not ref.read():
                ref.write(array)

    def restructure(self, qdd: Any, arrays: Sequence) -> None:
        """Take a state of other arrays.

        Raises:
            TypeError: the box is from outside of a loop or a branch being traced.
        """
        if self.is_outside():
            self._note_before()
        refs: list = []
        for i, a in enumerate(arrays):
            ref = self.refs[i] if i < len(self.refs) else None
            if ref is None or (ref.shape, ref.dtype) != (a.shape, a.dtype):
                ref = Part(_type_of_ref(a), self.level())
            ref.write(a)
            refs.append(ref)
        self._set(qdd, refs)

    def _note_before(self) -> None:
        before: dict | None = getattr(state.stage, "restructured", None)
        if before is None:
            raise TypeError(
                f"a value of type {self.aval} takes a state of other types inside of a loop, a "
                "branch or a rule, which has one program for all states: set the value before to "
                f"arrays of the final shapes and dtypes. It has {self.qdd}."
            )
        before.setdefault(self, (self.qdd, self.refs, self.pending))
        object.__setattr__(self, "pending", True)

    def _set(self, qdd: Any, refs: list, pending: bool | None = None) -> None:
        object.__setattr__(self, "qdd", qdd)
        object.__setattr__(self, "refs", refs)
        if pending is not None:
            object.__setattr__(self, "pending", pending)

    # -- what users and libraries see ---------------------------------------------------------------

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return _bound(self, getattr(self.aval, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setter = getattr(getattr(self.cls, name, None), "fset", None)
        if setter is None:
            raise AttributeError(
                f"a traced value of type {self.aval} has no attribute {name!r} to set: use the "
                "operations of its library."
            )
        setter(self, value)

    def __jax_array__(self):
        convert = getattr(self.aval, "__jax_array__", None)
        if convert is None:
            raise TypeError(f"a value of type {self.aval} is no array: read the arrays it holds.")
        return _bound(self, convert)()

    def __repr__(self) -> str:
        return f"Traced<{self.aval}>"


def _bound(box: Box, given: Any) -> Any:
    """An attribute of a type, as its values have it."""
    kind = type(given).__name__
    if kind == "aval_property":
        return given.fget(box)
    if kind == "aval_method":
        return functools.partial(given.fun, box)
    return given


class OuterBox(Box):
    """The box of a value that is outside of all traces."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        object.__setattr__(self, "value", value)
        super().__init__(kinds[type(value)](value), None, (), type(value), None)
        object.__setattr__(self, "handle", Handle(self))
        self.renew()

    def renew(self) -> None:
        """Make refs for the state that the value has."""
        with working_on([self.value]):
            qdd = _plain(self.value.cur_qdd())
        if qdd != self.qdd:
            types = self.aval.lo_ty_qdd(qdd)
            alone = len(types) == 1
            self._set(qdd, [Slot(self, i, alone, qdd, t) for i, t in enumerate(types)])

    def has_state(self, qdd: Any) -> bool:
        """Whether the value, outside of all traces, has this state."""
        with working_on([self.value]):
            return _plain(self.value.cur_qdd()) == qdd

    def restructure(self, qdd: Any, arrays: Sequence) -> None:
        if self.is_outside():
            super().restructure(qdd, arrays)
        else:
            self.store(qdd, arrays)
            self.renew()

    def store(self, qdd: Any, arrays: Sequence) -> None:
        """Put arrays into the value."""
        with working_on([self.value]):
            self.aval.update_from_loval(qdd, self.value, *arrays)


class Handle(Ref):
    """Stands for a box among the leaves of arguments; it is neither read nor written.

    One made inside of a function gets its box, and the state this has, when arguments are joined.
    """

    __slots__ = ("box", "state")
    state: tuple

    def __init__(self, box: Any):
        super().__init__(_HANDLE, None, 0 if type(box) is OuterBox else None)
        self.box, self.state = box, ()

    def hold(self, box: Box) -> None:
        self.box, self.state = box, (box.qdd, box.refs)

    def check_state(self) -> None:
        """Raise if a function has given the box a state of other types."""
        if (self.box.qdd, self.box.refs) != self.state:
            raise NotImplementedError(
                f"jvp: the function gives a value of type {self.box.aval} a state of other "
                "types; set it before to arrays of the final shapes and dtypes."
            )

    def _name(self) -> str:
        return f"the value of type {self.box.aval}, which changes in place,"

    def __jax_array__(self):
        raise TypeError(
            f"A value of type {self.box.aval} changes in place, and can be neither a result nor "
            "the carry of a loop: return what it holds, or let the function change a value from "
            "outside."
        )

    def __repr__(self) -> str:
        return f"<{self.box.aval}>"


_HANDLE = AbstractRef(make_aval((), np.dtype("bool"), False))


class Part(Ref):
    """A mutable array that a box got while it was traced."""

    __slots__ = ()

    def __init__(self, aval: AbstractRef, level: int):
        super().__init__(aval, as_array(np.zeros(aval.shape, aval.dtype)), level)


class Slot(Ref):
    """One of the arrays of a library's value, as a mutable array."""

    __slots__ = ("box", "index", "is_alone", "qdd")
    has_one_type = False

    def __init__(self, box: OuterBox, index: int, is_alone: bool, qdd: Any, aval: Any):
        self.box, self.index, self.is_alone, self.qdd = box, index, is_alone, qdd
        super().__init__(AbstractRef(make_aval(aval.shape, aval.dtype, False)), None, 0)

    def is_current(self) -> bool:
        """Whether the value has arrays of the types that this ref was made for."""
        return self.box.has_state(self.qdd)

    def _arrays(self) -> list:
        box = self.box
        if not self.is_current():
            raise ValueError(
                f"{self._name()} got arrays of other types while a function that uses it ran: set "
                "it to arrays of the final shapes and dtypes before."
            )
        with working_on([box.value]):
            return [_strong(a) for a in box.aval.read_loval(self.qdd, box.value)]

    @property
    def _value(self):
        return self._arrays()[self.index]

    @_value.setter
    def _value(self, value) -> None:
        if value is not None:
            arrays = [value] if self.is_alone else self._arrays()
            arrays[self.index] = value
            self.box.store(self.qdd, arrays)

    def _local(self):
        # a value outside of all traces is outside of each
        stage: Any = state.stage
        return None if stage is None else stage.local(self)

    def _name(self) -> str:
        return f"the value of type {self.box.aval}, of {self.qdd},"


def _plain(qdd: Any) -> Any:
    normalize = getattr(qdd, "normalize", None)
    return qdd if normalize is None else normalize()


def _strong(x: Any):
    array: Any = as_array(x)
    return array.astype(array.dtype) if array.aval.weak_type else array


def _type_of_ref(array) -> AbstractRef:
    return AbstractRef(make_aval(array.shape, array.dtype, False))


_BOXES = frozenset([Box, OuterBox])


def _last_of_handle(handle: Handle) -> list:
    handle.check_state()
    return []


holders[Handle] = Holder(
    holds=0,
    open=lambda handle: [],
    inside=lambda handle, arrays: Handle(None),
    last=_last_of_handle,
    close=lambda handle, arrays: None,
)
holders[Part] = holders[Slot] = REF

# -- which values are mutable ----------------------------------------------------------------------


def is_mutable(x: Any) -> bool:
    """Whether `x` is a value of a mutable type above arrays."""
    kind = type(x)
    return kind in _BOXES or (kind in kinds and getattr(kinds[kind](x), "has_qdd", False))


def box_of(x: Any) -> Box:
    """The box of a mutable value."""
    if type(x) in _BOXES:
        return x
    box = _boxes.get(id(x))
    if box is None:
        box = _boxes[id(x)] = OuterBox(x)
    elif not box.pending:
        box.renew()  # type: ignore[attr-defined]
    return box


def _is_apart(x: Any) -> bool:
    """Whether operations on a mutable value are evaluated on the object itself."""
    return type(x) not in _BOXES and (not state.depth or id(x) in _working.ids)


def state_of(x: Any) -> Any:
    """The state of a mutable value, as its library describes it."""
    return x.cur_qdd() if _is_apart(x) else box_of(x).qdd


# -- boxes among arguments ------------------------------------------------------------------------


class Shape(NamedTuple):
    """The key by which boxes among arguments differ: type, state, and the class of their values."""

    aval: Any
    qdd: Any
    cls: type


class OpenBox:
    """A box as a pytree node, whose children are its handle and its refs."""

    __slots__ = ("shape", "children")

    def __init__(self, shape: Shape, children: Iterable):
        self.shape, self.children = shape, tuple(children)


def node_of(x: Any) -> OpenBox:
    """A mutable value as a pytree node."""
    box = box_of(x)
    return OpenBox(Shape(box.aval, box.qdd, box.cls), (Handle(box), *box.refs))


def _joined(shape: Shape, children):
    handle, *refs = children
    if not all(isinstance(c, Ref) for c in children):
        return OpenBox(shape, children)
    if type(handle) is Handle and handle.box is not None:
        return handle.box
    box = Box(shape.aval, shape.qdd, refs, shape.cls, handle)
    if type(handle) is Handle:
        handle.hold(box)
    return box


register_pytree_node(OpenBox, lambda node: (node.children, node.shape), _joined)


# -- what jitted functions do to boxes -------------------------------------------------------------


class Restructured(NamedTuple):
    """How a jitted function changes the types of the arrays of a box.

    Attributes:
        source: the number of the leaf that is the box's handle, or the box.
        before, qdd: the state it has, and the one it gets.
        refs: its refs, each by the number of a leaf or itself.
    """

    source: Any
    before: Any
    qdd: Any
    refs: list


def told(before: dict[Box, tuple], inside: dict[int, Ref]) -> list[Restructured]:
    """What a function that was traced does to boxes, whose states before are given."""
    place = {id(r): i for i, r in inside.items()}
    return [
        Restructured(place.get(id(box.handle), box), old[0], box.qdd, [place.get(id(r), r) for r in box.refs])
        for box, old in before.items()
    ]


def undo(before: dict[Box, tuple]) -> None:
    """Give boxes the states back that they had before a function was traced."""
    for box, old in before.items():
        box._set(*old)


def restructure(changes: list[Restructured], leaves, parts: dict[int, Any]) -> None:
    """Give boxes the new states that a function left them; `parts` are the new arrays."""
    for source, _, qdd, refs in changes:
        box = leaves[source].box if isinstance(source, int) else source
        box.restructure(
            qdd,
            [leaves[r].read() if isinstance(r, int) else parts[id(r)] if id(r) in parts else r.read() for r in refs],
        )


# -- operations ------------------------------------------------------------------------------------


def applied(evaluate: Callable, args: Sequence) -> Any:
    """`evaluate(*args)`, an operation of a library, where some of `args` are mutable values."""
    if not state.depth and not any(type(a) in _BOXES for a in args):
        return evaluate(*args)
    boxes = {i: box_of(a) for i, a in enumerate(args) if is_mutable(a) and not _is_apart(a)}
    objects = {i: box.object() for i, box in boxes.items()}
    with working_on(objects.values()):
        out = evaluate(*[objects.get(i, a) for i, a in enumerate(args)])
        for i, box in boxes.items():
            box.take(objects[i])
    known = {id(objects[i]): box for i, box in boxes.items()}
    if isinstance(out, (list, tuple)):
        return type(out)([_wrapped(x, known) for x in out])
    return _wrapped(out, known)


def _wrapped(x: Any, known: dict) -> Any:
    """A mutable value that an operation returned, as seen inside of transformations."""
    if not state.depth or type(x) not in kinds or not is_mutable(x) or id(x) in _working.ids:
        return x
    box = known.get(id(x))
    return _new_box(x) if box is None else box


def _new_box(value: Any) -> Box:
    aval = kinds[type(value)](value)
    with working_on([value]):
        qdd = _plain(value.cur_qdd())
        arrays = [_strong(a) for a in aval.read_loval(qdd, value)]
    refs = [Ref(_type_of_ref(a), a) for a in arrays]
    return Box(aval, qdd, refs, type(value), Ref(_HANDLE, None))


def _operator(name: str) -> Callable:
    attribute = name.strip("_")

    def apply(self, *args):
        given = getattr(self.aval, f"_{attribute}", None)
        if given is None:
            raise TypeError(f"values of type {self.aval} have no operator {name}.")
        return given(self, *args)

    apply.__name__ = name
    return apply


for _name in (
    "getitem setitem len iter add sub mul matmul truediv floordiv mod divmod pow lshift rshift and "
    "xor or radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand rxor "
    "ror neg pos abs invert complex int float index round trunc floor ceil lt le gt ge"
).split():
    setattr(Box, f"__{_name}__", _operator(f"__{_name}__"))
