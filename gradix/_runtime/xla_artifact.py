"""StableHLO's portable artifacts, and modules with symbolic shapes refined to fixed shapes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, NamedTuple

from gradix._base.bounded import BoundedCache
from gradix._base.lazy import lazy_module
from gradix._runtime import xla_parts
from gradix._runtime.xla_mlir import context, ir
from gradix._stablehlo.dimensions import SIZES
from gradix._stablehlo.types import tensor_type

stablehlo = lazy_module("jaxlib.mlir.dialects.stablehlo")
_jax = lazy_module("jaxlib._jax")

MAIN = "main"
_RENAMED = "_exported_main"
_UNUSED = "_unused_main"


def serialize(text: str) -> bytes:
    """A module as a portable artifact, in a version that jaxlibs of four weeks ago can read.

    Raises:
        ValueError: the text is not a module, or has operations that are not portable.
    """
    version = stablehlo.get_version_from_compatibility_requirement(stablehlo.StablehloCompatibilityRequirement.WEEK_4)
    with context():
        # Operations of the dialect sdy are written unchanged, which is called mixed serialization.
        has_shardings = "sdy.mesh" in text
        artifact = bytes(
            _jax.mlir.serialize_portable_artifact(ir.Module.parse(text), version, use_mixed_serialization=has_shardings)
        )
    trust(digest(artifact))
    return artifact


# -- artifacts of unknown origin -------------------------------------------------------------------

# The digests of artifacts that may be read in this process.
_trusted: BoundedCache[bytes, bool] = BoundedCache(4096)
_SECONDS = 120  # Reading an artifact in another process may take so long.
_READ = (
    "import sys; from jaxlib import _jax; from jaxlib.mlir import ir; from jaxlib.mlir._mlir_libs import "
    "_jax_mlir_ext as ext; from jaxlib.mlir.dialects import chlo, sdy, stablehlo; registry = "
    "ir.DialectRegistry(); ext.register_dialects(registry); context = ir.Context(); "
    "context.append_dialect_registry(registry); context.load_all_available_dialects(); "
    "[d.register_dialect(context) for d in (stablehlo, chlo, sdy)]; "
    "str(_jax.mlir.deserialize_portable_artifact(sys.stdin.buffer.read(), context)); print('whole')"
)


def digest(artifact: bytes) -> bytes:
    """A digest by which an altered artifact is recognised."""
    return hashlib.sha256(artifact).digest()


def trust(known: bytes) -> None:
    """Let an artifact be read in this process: this library wrote one with this digest."""
    _trusted.keep(known, True)


def _check(artifact: bytes) -> None:
    """Read an artifact of unknown origin in another process first.

    jaxlib ends the process that reads a damaged artifact.

    Raises:
        ValueError: the artifact is damaged.
    """
    known = digest(artifact)
    if known in _trusted or not sys.executable:
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([p for p in sys.path if p])}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _READ],
            input=artifact,
            capture_output=True,
            timeout=_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"the program in the file could not be read within {_SECONDS} seconds. Export it again."
        ) from None
    if done.returncode or b"whole" not in done.stdout:
        raise ValueError(
            "the program in the file is damaged, or of a later version than this library reads. Export "
            "it again, or update gradix and jaxlib."
        )
    trust(known)


def _bytecode(text: str) -> bytes:
    buffer = BytesIO()
    ir.Module.parse(text).operation.write_bytecode(buffer)
    return buffer.getvalue()


def choice(texts: Sequence[str], name: str) -> str:
    """A module made of several modules of the same types, of which it runs one.

    The first argument of its `main` is the number of the module to run.
    """
    first, *others = [_Part(k, text) for k, text in enumerate(texts)]
    ins, outs, n = first.ins, first.outs, len(first.outs)
    args = ", ".join([f"%a{i}" for i in range(len(ins))])
    params = ", ".join(
        [
            '%p: tensor<i32> {jax.global_constant = "_platform_index"}',
            *[f"%a{i}: {t}{extra}" for i, (t, extra) in enumerate(zip(ins, first.in_attributes))],
        ]
    )
    results = ", ".join([t + extra for t, extra in zip(outs, first.out_attributes)])
    branches = []
    for part in (first, *others):
        call = f"%x{f':{n}' if n > 1 else ''} = " if outs else ""
        inner = [f"%x#{i}" if n > 1 else "%x" for i in range(n)]
        branches.append(
            f"{{\n{call}func.call @{part.main}({args}) : ({', '.join(ins)}) -> ({', '.join(outs)})\n"
            f'"stablehlo.return"({", ".join(inner)}) : ({", ".join(outs)}) -> ()\n}}'
        )
    result = f"%r{f':{n}' if n > 1 else ''} = " if outs else ""
    body = f'{result}"stablehlo.case"(%p) ({", ".join(branches)}) : (tensor<i32>) -> ({", ".join(outs)})'
    names = [f"%r#{i}" if n > 1 else "%r" for i in range(n)]
    returned = f"func.return {', '.join(names)} : {', '.join(outs)}" if outs else "func.return"
    attributes = ", ".join(["jax.uses_shape_polymorphism = true", *first.partitions])
    head = f"module @{name} attributes {{{attributes}}} {{"
    whole = [f"func.func public @main({params}) -> ({results}) {{", body, returned, "}"]
    return "\n".join([head, *[t for part in (first, *others) for t in part.texts], *whole, "}"])


class _Part:
    """A module as part of a larger one: its functions, renamed, and the types of its `main`."""

    def __init__(self, number: int, text: str):
        with context():
            module = ir.Module.parse(text)
            operations = {op.attributes["sym_name"].value: op for op in module.body.operations}
            names = {n: f"platform{number}_{n}" for n in operations}
            texts = [op.operation.get_asm(assume_verified=True) for op in operations.values()]
            main, held = operations[MAIN], module.operation.attributes
            kind = main.attributes["function_type"].value
            self.ins, self.outs = [str(t) for t in kind.inputs], [str(t) for t in kind.results]
            self.in_attributes = _attributes(main, "arg_attrs", len(self.ins), names)
            self.out_attributes = _attributes(main, "res_attrs", len(self.outs), names)
            self.partitions = [f"{n} = {held[n]}" for n in ("mhlo.num_partitions", "mhlo.num_replicas") if n in held]
        self.texts = [_renamed(t, names).replace("func.func public", "func.func private", 1) for t in texts]
        self.main = names[MAIN]


def _attributes(main, kind: str, count: int, names: dict[str, str]) -> list[str]:
    """The attributes of each argument or result of a function, as the texts after their types."""
    found = [str(a) for a in main.attributes[kind]] if kind in main.attributes else [""] * count
    return ["" if a in ("", "{}") else f" {_renamed(a, names)}" for a in found]


def module_text(artifact: bytes) -> str:
    """The module of a portable artifact as text.

    Raises:
        ValueError: the bytes are not a portable artifact, or one of a later version.
    """
    return str(module(artifact))


def module(artifact: bytes):
    """The module of a portable artifact, as an object of MLIR's Python bindings.

    Raises:
        ValueError: the bytes are not a portable artifact, or one of a later version.
    """
    _check(artifact)
    try:
        with context():
            return _jax.mlir.deserialize_portable_artifact(artifact, context())
    except Exception as e:
        raise ValueError(
            "the program in the file is not a StableHLO artifact that this version can read: "
            f"{str(e).splitlines()[0][:200]} Export it again, or update gradix and jaxlib."
        ) from None


class CustomCall(NamedTuple):
    """A call of a function of the runtime in a module.

    Attributes:
        target: the name of the function; of operations that exchange data with the host, their own.
        operands, results: the shapes, None if they have no ranks; symbolic sizes are None.
        config: the options, as numbers and texts.
    """

    target: str
    operands: tuple
    results: tuple
    config: dict[str, Any]


_Check = Callable[[list[CustomCall]], None] | None
_FOREIGN = ("custom_call", "infeed", "outfeed", "stablehlo.send", "stablehlo.recv")


def custom_calls(module) -> list[CustomCall]:
    """The calls of functions of the runtime anywhere in a module, in regions too."""
    found = []

    def visit(op):
        if op.name == "stablehlo.custom_call":
            found.append(_custom_call(op))
        elif op.name.endswith(_FOREIGN):
            found.append(CustomCall(op.name, (), (), {}))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _custom_call(op) -> CustomCall:
    attributes = op.attributes
    config: dict[str, Any] = {}
    for name in ("backend_config", "mhlo.backend_config"):  # JAX writes the second one.
        if name in attributes and isinstance(attributes[name], ir.DictAttr):
            for a in attributes[name]:
                value = getattr(a.attr, "value", None)
                config[a.name] = value if config.get(a.name, value) == value else None
    return CustomCall(
        ir.StringAttr(attributes["call_target_name"]).value,
        tuple([_shape(v.type) for v in op.operands]),
        tuple([_shape(v.type) for v in op.results]),
        config,
    )


def _shape(kind) -> tuple | None:
    if not isinstance(kind, ir.RankedTensorType):
        return None
    sizes = range(kind.rank)
    return tuple([None if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in sizes])


def static_functions(
    text: str,
    given: Sequence[int],
    in_avals,
    out_avals,
    unused: Callable[[str], str],
    *,
    check: _Check = None,
    values: dict[str, int] | None = None,
) -> tuple[str, list[str]]:
    """The functions of a module for arguments of fixed shapes.

    Args:
        text: a module whose `main` may have symbolic shapes.
        given: the values of its first arguments, which are int32 scalars.
        in_avals, out_avals: the types of the other arguments and of the results, of fixed shapes.
        unused: a function that makes the name of a function unique.
        check: a function that raises an error if the module may not make its custom calls.
        values: the values of the dimension variables, by name.

    Returns:
        The name of the function that computes the results, and the texts of all functions.

    Raises:
        ValueError: the shapes violate an assertion of the module, which the message quotes.
    """
    ins, outs = [tensor_type(a) for a in in_avals], [tensor_type(a) for a in out_avals]
    whole = xla_parts.Part(MAIN, list(given), ins, outs, {})
    return _static(text, whole, unused, check=check, values=values or {})


def _static(text: str, entry: xla_parts.Part, unused, *, check: _Check, values: dict[str, int]):
    """As `static_functions`, of the function `entry`."""
    parts: list[xla_parts.Part] = []
    with context():
        inner = ir.Module.parse(text)
        if SIZES in text:
            parts = xla_parts.outlined(inner, values, f"{entry.name}_part_")
            text = str(inner)
        if _OPEN_PARTS.search(text):
            _check_parts(inner)
        main = next(op for op in inner.body.operations if op.attributes["sym_name"].value == entry.name)
        kind = main.attributes["function_type"].value
        types = [str(t) for t in kind.inputs], [str(t) for t in kind.results]
    made = [_static(text, part, unused, check=check, values=values) for part in parts]
    known = dict(zip([m[0] for m in made], parts))
    symbol, texts = _functions(_refined(text, entry, types), unused, check, known)
    return symbol, [t for m in made for t in m[1]] + texts


def _refined(text: str, entry: xla_parts.Part, types: tuple) -> bytes:
    """The module for the arguments of fixed types to `entry`, which is its `main` then."""
    names = {entry.name: _RENAMED, **({} if entry.name == MAIN else {MAIN: _UNUSED})}
    whole = _renamed(text, names)
    for name in names.values():
        whole = whole.replace(f"func.func public @{name}", f"func.func private @{name}", 1)
    wrapper = _wrapper(entry.given, entry.ins, entry.outs, *types)
    end = whole.rindex("}")
    whole = whole[:end] + wrapper + whole[end:]
    try:
        with context():
            return _jax.mlir.refine_polymorphic_shapes(
                _bytecode(whole),
                enable_shape_assertions=True,
                validate_static_shapes=True,
                enable_shardy="sdy.mesh" in text,
            )
    except Exception as e:
        raise ValueError(_first_message(str(e))) from None


def _check_parts(module) -> None:
    """Raise for a `shard_map` that uses sizes which are symbolic: at these, XLA's refinement ends the process."""
    functions = {op.attributes["sym_name"].value: op.operation for op in module.body.operations}
    waiting = [
        op for op in xla_parts.within(module.operation) if op.name == xla_parts.MANUAL and SIZES not in op.attributes
    ]
    known: set = set()
    while waiting:
        for op in xla_parts.within(waiting.pop()):
            if op.name in _SIZED:
                raise ValueError(
                    "the program has a shard_map that uses sizes which are symbolic, and XLA cannot find these "
                    f"within it ({op.name}). Export it with fixed sizes for its arrays."
                )
            called = op.attributes["callee"].value if op.name == "func.call" else None
            if called is not None and called not in known:
                known.add(called)
                waiting.append(functions[called])


# operations with a size among their operands or results
_SIZED = frozenset(
    [
        "stablehlo.get_dimension_size",
        *[f"stablehlo.dynamic_{n}" for n in ("broadcast_in_dim", "iota", "reshape", "pad", "gather", "conv")],
        "stablehlo.real_dynamic_slice",
    ]
)


def open_functions(
    text: str, unused: Callable[[str], str], check: _Check = None, values: dict[str, Any] | None = None
) -> tuple[str, list[str], bool]:
    """The functions of a module, whose symbolic shapes are kept.

    Args:
        text, unused, check: as for `static_functions`.
        values: the dimension variables of the module in terms of those of the module around it.

    Returns:
        The name of the function that computes the results, the texts of all functions, and whether
        the first argument of that function is an integer of 64 bits.
    """
    if SIZES in text:
        with context():
            module = ir.Module.parse(text)
            xla_parts.restate(module, values or {})
            text = str(module)
    symbol, texts = _functions(text, unused, check)
    head = next(t for t in texts if re.match(rf"\s*func\.func private @{re.escape(symbol)}\(", t))
    return symbol, texts, re.search(r"@[\w.$]+\(%\w+: tensor<i64>", head) is not None


def _first_message(text: str) -> str:
    found = re.search(r"error: (.*)", text)
    return (found[1] if found else text.splitlines()[0]).strip()


def _wrapper(given, ins, outs, want_ins, want_outs) -> str:
    """A `main` of fixed types, which calls the module's own `main`."""
    lines, names = [], []
    for i, value in enumerate(given):
        lines.append(f"%g{i} = stablehlo.constant dense<{int(value)}> : {want_ins[i]}")
        names.append(f"%g{i}")
    for i, (have, want) in enumerate(zip(ins, want_ins[len(given) :])):
        names.append(f"%a{i}" if have == want else f"%c{i}")
        if have != want:
            lines.append(f"%c{i} = stablehlo.convert %a{i} : ({have}) -> {want}")
    results = []
    if outs:
        lines.append(
            f"%r:{len(outs)} = func.call @{_RENAMED}({', '.join(names)}) : ({', '.join(want_ins)}) -> "
            f"({', '.join(want_outs)})"
        )
    else:
        lines.append(f"func.call @{_RENAMED}({', '.join(names)}) : ({', '.join(want_ins)}) -> ()")
    for i, (have, want) in enumerate(zip(want_outs, outs)):
        results.append(f"%r#{i}" if have == want else f"%o{i}")
        if have != want:
            lines.append(f"%o{i} = stablehlo.convert %r#{i} : ({have}) -> {want}")
    params = ", ".join([f"%a{i}: {t}" for i, t in enumerate(ins)])
    returned = f"func.return {', '.join(results)} : {', '.join(outs)}" if outs else "func.return"
    return f"func.func public @main({params}) -> ({', '.join(outs)}) {{\n" + "\n".join([*lines, returned]) + "\n}\n"


def _functions(code, unused: Callable[[str], str], check: _Check, parts=None) -> tuple[str, list[str]]:
    """The new name of a module's `main`, and the texts of its functions under new names.

    Calls in the places of `parts` become regions that call the functions by whose names these are given.
    """
    with context():
        module = ir.Module.parse(code)
        if parts:
            xla_parts.put_back(module, parts)
        old = [op.attributes["sym_name"].value for op in module.body.operations]
        texts = [op.operation.get_asm(assume_verified=True) for op in module.body.operations]
        if check is not None and any(word in t for t in texts for word in _FOREIGN):
            check(custom_calls(module))
    names = {name: unused("exported" if name == MAIN else f"exported_{name}") for name in old}
    texts = [_renamed(t, names).replace("func.func public", "func.func private", 1) for t in texts]
    return names[MAIN], texts


_OPEN_PARTS = re.compile(r"sdy\.manual_computation[^\n]*<[^\n>]*\?")
_SYMBOL = re.compile(r'"(?:[^"\\]|\\.)*"|@([A-Za-z_][\w.$]*)')


def _renamed(text: str, names: dict[str, str]) -> str:
    """A module's text with functions renamed, except in strings."""
    return _SYMBOL.sub(lambda m: f"@{names[m[1]]}" if m[1] in names else m[0], text)
