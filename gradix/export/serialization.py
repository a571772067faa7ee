"""Files of exported programs: FlatBuffers tables in JAX's layout, which both libraries can read.

The slots of the table are

    0 version   1 name   2 tree of (args, kwargs)   3 types of arguments   4 tree of results
    5 types of results   7, 8 shardings of arguments and results   9 platforms
    10, 11 ordered and unordered effects   12 disabled checks   13 module   14 calling convention
    15 arguments that the module takes   16 whether it takes dimension variables or the platform
    17 gradient, a table like this one   18 number of devices   19 distinct types
    20, 21 distinct meshes and shardings   22, 23 types of arguments and results as indices into 19
    24, 25 shardings of arguments and results as indices into 21, counted from 1; 0 for none
    26 version of the library that wrote it, in the files of JAX 0.11 and later

Readers of FlatBuffers ignore slots that they do not know. This library adds slots: the constraints of
the dimension variables, a digest that detects damage but is not a signature, and the names, bounds and
shapes of results whose sizes values decide, which other readers get as buffers and sizes. The module of
a file without a digest is first read in a separate process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._base.tree import PyTreeDef
from gradix._base.tree.native import leaf_definition, make_node
from gradix._core import dtypes
from gradix._core.aval import ShapedArray, make_aval
from gradix._core.dimensions import parsing
from gradix._core.dimensions.scope import SymbolicScope
from gradix._runtime import xla_artifact, xla_partitioning
from gradix.export import registration, shardings
from gradix.export.effects import effect_of, name_of
from gradix.export.wire import BOOL, I8, I16, U16, U32, Malformed, Numbers, Table, encode

_counted_results = lazy_module("gradix.export.counted")

VERSION = 3  # that is written
# Those that are read: JAX 0.11 and later write 12, with the slots of 3 and one more.
OLDEST_VERSION, NEWEST_VERSION = 2, 12
CONSTRAINTS = 40  # the slot of the constraints
DIGEST = 41  # the slot of the digest
COUNTED = (42, 43, 44)  # the slots of the names, bounds and shapes of results whose sizes values decide
MAX_BYTES = 1 << 34

_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)
_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 "
    "bfloat16 int4 uint4 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float0 "
    "float8_e4m3 float8_e3m4 float8_e8m0fnu float4_e2m1fn key<fry> key<rbg> key<urbg>"
).split()
_DEVICE = 1  # the number of device memory


# -- writing ---------------------------------------------------------------------------------------


def serialize(exported, vjp_order: int) -> bytearray:
    """An exported function as bytes, with its gradients up to order `vjp_order`."""
    if exported.bound_dims:
        raise ValueError(
            f"the exported function '{exported.fun_name}' has the bound dimension variables "
            f"{dict(exported.bound_dims)}, which files cannot hold. Serialize it without bind_dims, and call "
            "bind_dims after reading it."
        )
    if vjp_order < 0:
        raise ValueError(f"serialize: vjp_order must be 0 or more, got {vjp_order}.")
    return encode(_table(exported, vjp_order))


def _table(e, vjp_order: int) -> dict:
    in_avals, out_avals = [a.plain for a in e.in_avals], [a.plain for a in e.out_avals]
    avals = list(dict.fromkeys([*in_avals, *out_avals]))
    number = {a: i for i, a in enumerate(avals)}
    meshes, divided, places = shardings.tables([*e._in_named_shardings, *e._out_named_shardings])
    out: dict[int, Any] = {
        0: (U16, VERSION),
        1: e.fun_name,
        2: _tree(e.in_tree),
        3: [_aval(a) for a in in_avals],
        4: _tree(e.out_tree),
        5: [_aval(a) for a in out_avals],
        7: [{} for _ in in_avals],
        8: [{} for _ in out_avals],
        9: list(e.platforms),
        10: [{0: name_of(x)} for x in e.ordered_effects],
        11: [{0: name_of(x)} for x in e.unordered_effects],
        12: [_check(c) for c in e.disabled_safety_checks],
        13: e.mlir_module_serialized,
        14: (U16, e.calling_convention_version),
        15: Numbers(U16, e.module_kept_var_idx),
        16: (BOOL, e.uses_global_constants),
        18: (U32, e.nr_devices),
        19: [_aval(a) for a in avals],
        20: meshes,
        21: divided,
        22: Numbers(U32, [number[a] for a in in_avals]),
        23: Numbers(U32, [number[a] for a in out_avals]),
        24: Numbers(U32, places[: len(in_avals)]),
        25: Numbers(U32, places[len(in_avals) :]),
    }
    if vjp_order:
        out[17] = _table(e.vjp(), vjp_order - 1)
    constraints = list(e.constraints)
    if constraints:
        out[CONSTRAINTS] = constraints
    if e._counted is not None:
        out.update(zip(COUNTED, map(list, e._counted)))
    checks = [(int(c.is_custom_call() is not None), c.is_custom_call() or "") for c in e.disabled_safety_checks]
    out[DIGEST] = _digest(vars(e), checks, constraints)
    return out


def _digest(fields: dict, checks: list, constraints: list) -> bytes:
    """A digest that shows whether anything in a file was altered."""
    kinds = [[(a.shape, str(a.dtype)) for a in fields[name]] for name in ("in_avals", "out_avals")]
    names = (
        "fun_name",
        "in_tree",
        "out_tree",
        "platforms",
        "ordered_effects",
        "unordered_effects",
        "calling_convention_version",
        "module_kept_var_idx",
        "uses_global_constants",
        "nr_devices",
        "_in_named_shardings",
        "_out_named_shardings",
    )
    held = {n: fields[n] for n in names}
    for n in ("ordered_effects", "unordered_effects"):
        held[n] = tuple(map(name_of, held[n]))
    counted = () if fields["_counted"] is None else (tuple(fields["_counted"]),)
    text = repr((kinds, [str(x) for x in held.values()], checks, constraints, *counted)).encode()
    return xla_artifact.digest(text + fields["mlir_module_serialized"])


def _tree(tree: PyTreeDef) -> dict:
    data, children = tree.node_data(), [_tree(c) for c in tree.children()]
    if data is None:
        return {}
    kind, aux = data
    if kind is type(None):
        return {0: (I8, _NONE)}
    if kind is dict:
        if not all(isinstance(k, str) for k in aux):
            raise TypeError(
                f"Serialization is supported only for dictionaries with string keys, got the keys {aux}. "
                "Convert them to strings first."
            )
        return {0: (I8, _DICT), 1: children, 2: list(aux)}
    if kind in (tuple, list):
        return {0: (I8, _TUPLE if kind is tuple else _LIST), 1: children}
    entry = registration.by_type(
        aux
        if kind is not None
        and isinstance(aux, type)
        and aux is not kind
        and issubclass(aux, tuple)
        and hasattr(aux, "_fields")
        else kind
    )
    written = entry.write(aux)
    if not isinstance(written, (bytes, bytearray)):
        raise ValueError(f"serialize_auxdata of {entry.name!r} must return bytes, got a {type(written).__name__}.")
    return {0: (I8, _CUSTOM), 1: children, 3: entry.name, 4: bytes(written)}


def _aval(aval: ShapedArray) -> dict:
    name = (
        str(aval.dtype)
        if dtypes.is_extended(aval.dtype)
        else "float0"
        if aval.dtype == dtypes.float0
        else aval.dtype.name
    )
    if name not in _DTYPES:
        raise ValueError(
            f"files of exported functions cannot hold the dtype {name}. Convert the arrays to one of "
            f"{', '.join(_DTYPES)}."
        )
    return {1: [str(d) for d in aval.shape], 2: (I8, _DTYPES.index(name)), 3: (I8, _DEVICE)}


def _check(check) -> dict:
    target = check.is_custom_call()
    return {} if target is None else {0: (I8, 1), 1: target}


# -- reading ---------------------------------------------------------------------------------------


def read_fields(data: bytes, is_trusted: bool) -> tuple[dict, Any]:
    """The fields of an exported function in a file, and those of its gradient or None.

    Args:
        data: the file.
        is_trusted: whether a digest that fits shows that the module may be read in this process.

    Raises:
        ValueError: the bytes are not such a file, or of a version that this library cannot read.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"the file of an exported function must have at most {MAX_BYTES} bytes, got {len(data)}.")
    try:
        return _fields(Table.root(data), is_trusted)
    except Malformed as e:
        raise ValueError(f"the bytes are not a file of an exported function, or are damaged: {e}.") from None


def _fields(t: Table, is_trusted: bool) -> tuple[dict, Any]:
    version = t.number(0, U16)
    if not OLDEST_VERSION <= version <= NEWEST_VERSION:
        raise ValueError(
            f"the file has serialization version {version}, but this library reads the versions "
            f"{OLDEST_VERSION} to {NEWEST_VERSION}. Export the function again."
        )
    convention = t.number(14, U16)
    if not 9 <= convention <= 10:
        raise ValueError(
            f"the file has calling convention {convention}, but this library supports 9 and 10. Export the "
            "function again."
        )
    constraints = t.texts(CONSTRAINTS)
    scope = _scope(constraints)
    in_avals, out_avals = _types(t, 22, 3, scope), _types(t, 23, 5, scope)
    in_tree, out_tree = _read_tree(t.table(2)), _read_tree(t.table(4))
    for what, tree, avals in (("arguments", in_tree, in_avals), ("results", out_tree, out_avals)):
        if tree.num_leaves != len(avals):
            raise Malformed(f"it has {len(avals)} types for {tree.num_leaves} {what}")
    _check_signature(in_tree)
    kept = tuple(t.numbers(15, U16))
    if sorted(set(kept)) != list(kept) or any(i >= len(in_avals) for i in kept):
        raise Malformed("it takes arguments that do not exist")
    ins, outs = [
        shardings.read(t, 21, t.numbers(slot, U32) or [0] * len(avals))
        for slot, avals in ((24, in_avals), (25, out_avals))
    ]
    if (len(ins), len(outs)) != (len(in_avals), len(out_avals)):
        raise Malformed("its shardings are not as many as its arguments and results")
    module = t.bytes(13)
    platforms = tuple(t.texts(9))
    if not platforms:
        raise Malformed("it is for no platform")
    nr_devices = t.number(18, U32) or t.number(6, I16, 1)
    if nr_devices < 1:
        raise Malformed(f"it is for {nr_devices} devices")
    fields = dict(
        fun_name=t.text(1),
        in_tree=in_tree,
        in_avals=shardings.with_divisions(in_avals, ins),
        out_tree=out_tree,
        out_avals=shardings.with_divisions(out_avals, outs),
        _has_named_shardings=True,
        _in_named_shardings=ins,
        _out_named_shardings=outs,
        in_shardings_hlo=_native(t, 7, ins, in_avals, nr_devices),
        out_shardings_hlo=_native(t, 8, outs, out_avals, nr_devices),
        nr_devices=nr_devices,
        platforms=platforms,
        ordered_effects=tuple([effect_of(x.text(0), True) for x in t.tables(10)]),
        unordered_effects=tuple([effect_of(x.text(0), False) for x in t.tables(11)]),
        disabled_safety_checks=tuple([(x.number(0, I8), x.text(1)) for x in t.tables(12)]),
        mlir_module_serialized=module,
        calling_convention_version=convention,
        module_kept_var_idx=kept,
        uses_global_constants=bool(t.number(16, BOOL)),
        constraints=tuple(constraints),
        _counted=_counted(t, out_tree, out_avals),
    )
    if t.has(DIGEST):
        checks = list(fields["disabled_safety_checks"])
        if t.bytes(DIGEST) != _digest(fields, checks, constraints):
            raise Malformed("its digest does not fit its content")
        if is_trusted:
            xla_artifact.trust(xla_artifact.digest(module))
    return fields, _fields(t.table(17), is_trusted) if t.has(17) else None


def _counted(t: Table, out_tree: PyTreeDef, out_avals: tuple):
    """The true shapes of results whose sizes values decide; None if there are none."""
    if not t.has(COUNTED[0]):
        return None
    found = _counted_results.CountedResults(*[tuple(t.texts(slot)) for slot in COUNTED])
    try:
        found.check(out_tree, out_avals)
    except (ValueError, RecursionError, ZeroDivisionError, OverflowError) as e:
        raise Malformed(f"the sizes of its results are wrong ({e})") from None
    return found


def _native(t: Table, slot: int, named: tuple, avals: tuple, n: int) -> tuple:
    """The `HloSharding`s of arguments or results; files before version 6 have them and no others."""
    if any(s is not None for s in named):
        return shardings.native(named, avals)
    rows: list[Table | None] = [*t.tables(slot)] or [None] * len(avals)
    if len(rows) != len(avals):
        raise Malformed("its shardings are not as many as its arguments and results")
    try:
        return tuple(
            [
                xla_partitioning.hlo_sharding_from_file(row.bytes(1), a.ndim, n)
                if row is not None and row.number(0, I8)
                else None
                for row, a in zip(rows, avals)
            ]
        )
    except (ValueError, RuntimeError) as e:
        raise Malformed(f"a sharding is wrong ({e})") from None


def _scope(constraints: list[str]) -> SymbolicScope:
    try:
        return SymbolicScope(constraints)
    except (ValueError, RecursionError) as e:
        raise Malformed(f"a constraint on its dimensions is wrong ({e})") from None


def _types(t: Table, indices: int, direct: int, scope) -> tuple:
    """The types listed by indices into the table of types, or directly in older files."""
    if not t.has(indices):
        return tuple([_read_aval(x, scope) for x in t.tables(direct)])
    known = [_read_aval(x, scope) for x in t.tables(19)]
    places = t.numbers(indices, U32)
    if any(i >= len(known) for i in places):
        raise Malformed("it refers to types that do not exist")
    return tuple([known[i] for i in places])


def _read_aval(t: Table, scope) -> ShapedArray:
    number = t.number(2, I8)
    if not 0 <= number < len(_DTYPES):
        raise Malformed(f"dtype number {number} is unknown")
    try:
        shape = tuple(
            [
                d if type(d) is not int else _size(d)
                for d in (
                    int(s) if s.isascii() and s.isdigit() and len(s) < 20 else parsing.dimension(s, scope)
                    for s in t.texts(1)
                )
            ]
        )
    except (ValueError, RecursionError, ZeroDivisionError, OverflowError) as e:
        raise Malformed(f"a dimension is wrong ({e})") from None
    return make_aval(shape, _dtype(_DTYPES[number]))


def _size(n: int) -> int:
    if not 0 <= n < 1 << 62:
        raise ValueError(f"{n} is not a size")
    return n


def _dtype(name: str):
    if name.startswith("key<"):
        return dtypes.KeyType(name[4:-1])
    return dtypes.float0 if name == "float0" else np.dtype(name) if hasattr(np, name) else dtypes.as_dtype(name)


def _read_tree(t: Table) -> PyTreeDef:
    kind = t.number(0, I8)
    children = [_read_tree(c) for c in t.tables(1)]
    if kind == _LEAF:
        return leaf_definition()
    if kind == _NONE:
        return make_node(type(None), None, [])
    if kind in (_TUPLE, _LIST):
        return make_node(tuple if kind == _TUPLE else list, None, children)
    if kind == _DICT:
        names = t.texts(2)
        if len(names) != len(children) or sorted(set(names)) != names:
            raise Malformed("the keys of a dict do not fit its values")
        return make_node(dict, names, children)
    if kind != _CUSTOM:
        raise Malformed(f"a tree has a node of the unknown kind {kind}")
    entry = registration.by_name(t.text(3))
    try:
        aux = entry.read(t.bytes(4))
    except ValueError:
        raise
    except Exception as e:  # what a registered function does with bytes that it did not write
        raise Malformed(f"the data of a node {t.text(3)!r:.60} is wrong ({e})") from None
    if entry.build is not None:
        return _built(entry, aux, children)
    return make_node(
        entry.nodetype, entry.nodetype if issubclass(entry.nodetype, tuple) and aux is None else aux, children
    )


def _built(entry, aux, children: list) -> PyTreeDef:
    leaves = [c.unflatten([0] * c.num_leaves) for c in children]
    return leaf_definition().from_iterable_tree(entry.build(aux, tuple(leaves)))


def _check_signature(tree: PyTreeDef) -> None:
    """Check that a tree is one of positional and keyword arguments.

    Raises:
        Malformed: it is not.
    """
    data, parts = tree.node_data(), tree.children()
    kinds = [None if p.node_data() is None else p.node_data()[0] for p in parts]
    if data is None or data[0] is not tuple or kinds != [tuple, dict]:
        raise Malformed("its first tree is not that of arguments")


def made(cls: type, check_class: Any, fields: dict, gradient, allowed: frozenset[str]):
    """The exported function of the fields that `read_fields` returned.

    Args:
        allowed: the functions of the runtime that the reader allows in addition.
    """
    get_vjp = None if gradient is None else (lambda _: made(cls, check_class, gradient[0], gradient[1], allowed))
    checks = tuple(
        [
            check_class.platform() if kind == 0 else check_class.custom_call(target)
            for kind, target in fields["disabled_safety_checks"]
        ]
    )
    return cls(**{**fields, "disabled_safety_checks": checks}, _get_vjp=get_vjp, _allowed_calls=allowed)
