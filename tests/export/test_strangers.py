"""Files that were forged: too much memory, functions of the runtime that files may not call, and LAPACK called with wrong shapes."""

import collections
import dataclasses
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export
from gradix._core.aval import make_aval
from gradix._runtime import xla_artifact
from gradix.export import lapack_calls, serialization, wire

X = np.arange(4, dtype="f4")
CALL = '"stablehlo.custom_call"(%a) {call_target_name = "TARGET", api_version = API : i32 MORE} : (tensor<4xf32>) -> tensor<4xf32>'
PLAIN = "module @m { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n %0 = CALL\n return %0 : tensor<4xf32> } }"
IN_FUNCTION = (
    "module @m { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n %0 = func.call @g(%a) : (tensor<4xf32>) -> "
    "tensor<4xf32>\n return %0 : tensor<4xf32> }\n func.func private @g(%a: tensor<4xf32>) -> tensor<4xf32> {\n %0 = CALL\n "
    "return %0 : tensor<4xf32> } }"
)
IN_REGION = (
    "module @m { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n %p = stablehlo.constant dense<0> : tensor<i32>\n"
    '%0 = "stablehlo.case"(%p) ({ %1 = CALL\n "stablehlo.return"(%1) : (tensor<4xf32>) -> () }, { %1 = CALL\n '
    '"stablehlo.return"(%1) : (tensor<4xf32>) -> () }) : (tensor<i32>) -> tensor<4xf32>\n return %0 : tensor<4xf32> } }'
)
IN_COMPOSITE = (
    'module @m { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n %0 = stablehlo.composite "my.op" %a '
    "{decomposition = @g} : (tensor<4xf32>) -> tensor<4xf32>\n return %0 : tensor<4xf32> }\n "
    "func.func private @g(%a: tensor<4xf32>) -> tensor<4xf32> {\n %0 = CALL\n return %0 : tensor<4xf32> } }"
)
PLACES = {"main": PLAIN, "function": IN_FUNCTION, "region": IN_REGION, "composite": IN_COMPOSITE}


def forged(text: str, out=None, checks=()):
    """A program read from a file whose module is this text."""
    e = export.export(gradix.jit(lambda x: x * 2))(X)
    e = dataclasses.replace(
        e,
        mlir_module_serialized=xla_artifact.serialize(text),
        disabled_safety_checks=list(checks),
        **({} if out is None else {"out_avals": (out,)}),
    )
    return export.deserialize(e.serialize())


def calling(target: str, place: str = "main", api: int = 4, more: str = "") -> str:
    return PLACES[place].replace("CALL", CALL).replace("TARGET", target).replace("API", str(api)).replace("MORE", more)


CALLBACKS = [
    "xla_python_cpu_callback",
    "xla_ffi_python_cpu_callback",
    "xla_buffer_python_cpu_callback",
    "xla_python_gpu_callback",
    "xla_ffi_python_gpu_callback",
    "xla_ffi_partitioned_python_cpu_callback",
    "CustomSPMDPartitioning",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "target",
    CALLBACKS[1:2]
    + [
        "evil",
        "gradix_host_sort_numbers",
        "mhlo.custom_call",
        "mhlo.outfeed",
        "Sharding_",
        "lapack_sfoo_ffi",
        "x\\22lapack_sgetrf_ffi",
    ],
)
def test_targets_are_found_wherever_they_hide(place, target):
    words = "address in the memory" if target in CALLBACKS else "read from a file, and its call of"
    f = forged(calling(target, place, more=", backend_config = {index = 7 : ui64}"))
    for run, x in ((f.call, X), (gradix.jit(f.call), X), (gradix.vmap(f.call), X[None])):
        with pytest.raises(ValueError, match=words):
            run(x)
    with pytest.raises(ValueError, match=words):  # also inside of a program that is exported
        export.export(gradix.jit(lambda x: f.call(x) + 1))(X)


@pytest.mark.parametrize("target", CALLBACKS)
def test_addresses_are_never_called(target):
    text = calling(target, more=", called_computations = [], backend_config = {index = 7 : ui64}")
    checks = [export.DisabledSafetyCheck.custom_call(target)]
    blob = forged(text, checks=checks).serialize()
    for given in ([], checks):
        with pytest.raises(ValueError, match="Do not use the file"):
            export.deserialize(blob, disabled_checks=given).call(X)


def test_a_target_may_be_allowed_by_the_reader_but_not_by_the_file():
    checks = [export.DisabledSafetyCheck.custom_call("gradix_test_unknown")]
    blob = forged(calling("gradix_test_unknown"), checks=checks).serialize()
    with pytest.raises(
        ValueError, match=r"disabled_checks=\[export.DisabledSafetyCheck.custom_call\('gradix_test_unknown'\)\]"
    ):
        export.deserialize(blob).call(X)
    with pytest.raises(Exception, match="register_ffi_target"):  # it is XLA that says so: the check is off
        export.deserialize(blob, disabled_checks=checks).call(X)
    with pytest.raises(TypeError, match="list of DisabledSafetyCheck"):
        export.deserialize(blob, disabled_checks=["gradix_test_unknown"])


def test_operations_that_wait_for_the_host_are_refused():
    text = (
        "module @m { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n %t = stablehlo.create_token : !stablehlo.token\n"
        '%0:2 = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)\n'
        "return %0#0 : tensor<4xf32> } }"
    )
    with pytest.raises(ValueError, match=r"stablehlo.infeed"):
        forged(text).call(X)


# -- LAPACK ----------------------------------------------------------------------------------------

M = np.array([[4.0, 1, 2], [1, 5, 3], [2, 3, 6]], "f4")
R = np.arange(15, dtype="f4").reshape(5, 3) % 7 + 1
tri = np.array([1.0, 2, 3, 4], "f4")
ROUTINES = {
    "getrf": (lambda x: gradix.lax.linalg.lu(x)[0], R),
    "geqrf": (lambda x: jnp.linalg.qr(x)[0], R),
    "geqp3": (lambda x: gradix.lax.linalg.qr(x, pivoting=True, full_matrices=False)[1], R),
    "potrf": (jnp.linalg.cholesky, M),
    "syevd": (lambda x: jnp.linalg.eigh(x)[1], M),
    "gesdd": (lambda x: jnp.linalg.svd(x, full_matrices=True)[0], R),
    "gesdd-thin": (lambda x: jnp.linalg.svd(x, full_matrices=False)[2], R.T),
    "gesdd-values": (lambda x: jnp.linalg.svdvals(x), R),
    "geev": (lambda x: jnp.linalg.eig(x)[1], R[:3]),
    "gees": (lambda x: gradix.lax.linalg.schur(x)[1], R[:3]),
    "gehrd": (lambda x: gradix.lax.linalg.hessenberg(x)[0], M),
    "sytrd": (lambda x: gradix.lax.linalg.tridiagonal(x)[0], M),
    "trsm": (lambda x: gradix.lax.linalg.triangular_solve(x, R.astype(x.dtype), left_side=False), M),
    "gtsv": (lambda x: gradix.lax.linalg.tridiagonal_solve(x, 9 + x, x, x[:, None]), tri),
    "ormqr": (lambda x: gradix.lax.linalg.ormqr(x, x[0], x), M),
    "solve": (lambda x: jnp.linalg.solve(x, x), M),
    "batched": (lambda x: jnp.linalg.qr(x)[1], np.stack([R, R + 1])),
    "expm": (gradix.scipy.linalg.expm, M / 9),
}


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", ROUTINES)
def test_calls_of_lapack_that_are_written_are_read(name, dtype):
    f, x = ROUTINES[name]
    with gradix.enable_x64(True):
        x = x.astype(dtype)
        e = export.export(gradix.jit(f))(x)
        np.testing.assert_array_equal(export.deserialize(e.serialize()).call(x), gradix.jit(f)(x))


@pytest.mark.parametrize("name", ["geqrf", "potrf", "gesdd", "solve"])
def test_calls_of_lapack_of_symbolic_sizes_are_read(name):
    f, x = ROUTINES[name]
    shape = export.symbolic_shape("n, n" if x.shape[0] == x.shape[1] else "n, m")
    e = export.deserialize(export.export(gradix.jit(f))(gradix.ShapeDtypeStruct(shape, x.dtype)).serialize())
    np.testing.assert_allclose(e.call(x), gradix.jit(f)(x), rtol=1e-5)
    np.testing.assert_allclose(gradix.jit(e.call)(x), gradix.jit(f)(x), rtol=1e-5)


def calls_of(name) -> list[xla_artifact.CustomCall]:
    f, x = ROUTINES[name]
    e = export.export(gradix.jit(f))(x)
    return [c for c in xla_artifact.custom_calls(e.mlir_module(serialized=False)) if lapack_calls.fault(c) == ""]


@pytest.mark.parametrize("name", ROUTINES)
def test_other_shapes_than_lapack_counts_on_are_refused(name):
    calls = calls_of(name)
    assert calls
    for call in calls:
        for which in ("operands", "results"):
            shapes = getattr(call, which)
            for i, shape in enumerate(shapes):
                if which == "operands" and i == 1 and re.search("orgqr|ormqr", call.target):
                    continue  # there may be fewer reflections
                for axis in range(len(shape)):
                    for size in (0, shape[axis] + 1, 1000, None):
                        other = (*shape[:axis], size, *shape[axis + 1 :])
                        assert lapack_calls.fault(call._replace(**{which: (*shapes[:i], other, *shapes[i + 1 :])})), (
                            call,
                            other,
                        )
                assert lapack_calls.fault(call._replace(**{which: (*shapes[:i], (2, *shape), *shapes[i + 1 :])}))
                assert lapack_calls.fault(call._replace(**{which: (*shapes[:i], None, *shapes[i + 1 :])}))
            assert lapack_calls.fault(call._replace(**{which: shapes[:-1]})) and lapack_calls.fault(
                call._replace(**{which: (*shapes, ())})
            )
        for option in set(call.config) - {"transpose", "left"}:
            for value in (None, 0, 79, "V"):
                assert lapack_calls.fault(call._replace(config={**call.config, option: value})), (call, option)


def test_a_forged_call_of_lapack_does_not_reach_it():
    shape = "tensor<300x300xf32>"
    text = (
        f"module @m {{ func.func public @main(%a: tensor<4xf32>) -> tensor<1x1xf32> {{\n %x = stablehlo.constant dense<1.> : {shape}\n"
        f'%0:3 = "stablehlo.custom_call"(%x) {{call_target_name = "lapack_sgetrf_ffi", api_version = 4 : i32, backend_config = {{}}}} : '
        f"({shape}) -> (tensor<1x1xf32>, tensor<300xi32>, tensor<i32>)\n return %0#0 : tensor<1x1xf32> }} }}"
    )
    with pytest.raises(ValueError, match="lapack_sgetrf_ffi' has the shapes"):
        forged(text, make_aval((1, 1), np.dtype("f4"))).call(X)


def test_a_file_that_is_not_trusted_is_read_in_another_process_first(capfd):
    """Whoever forges a file can forge its digest, and jaxlib ends the process that reads a damaged module."""
    e = export.export(gradix.jit(lambda x: jnp.sin(x) * 2))(X)
    module = bytearray(e.mlir_module_serialized)
    module[len(module) // 2 : len(module) // 2 + 40] = b"\xff" * 40
    blob = dataclasses.replace(e, mlir_module_serialized=bytes(module)).serialize()
    with pytest.raises(ValueError, match="damaged"):
        export.deserialize(blob, is_trusted=False).call(X)
    whole = export.deserialize(e.serialize(vjp_order=1), is_trusted=False)
    np.testing.assert_array_equal(whole.call(X), e.call(X))


# -- memory ----------------------------------------------------------------------------------------

SHARED = """
import resource, sys
from gradix import export
blob = open(sys.argv[1], "rb").read()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
try:
    export.deserialize(blob)
except ValueError as e:
    print("refused" if "again and again" in str(e) or "nested" in str(e) else e)
"""


class _Shared:
    """A field that is written once, and referred to as often as it occurs."""

    def __init__(self, field):
        self.field = field


def shared_bytes(monkeypatch, table) -> bytes:
    known, write = {}, wire._write

    def once(builder, x):
        if type(x) is not _Shared:
            return write(builder, x)
        if id(x) not in known:
            known[id(x)] = write(builder, x.field)
        return known[id(x)]

    monkeypatch.setattr(wire, "_write", once)
    return bytes(wire.encode(table))


def _doubling(depth: int):
    tree = _Shared({})
    for _ in range(depth):
        tree = _Shared({0: (wire.I8, serialization._LIST), 1: [tree, tree]})
    return tree


def _gradients(table: dict, depth: int) -> dict:
    inner = table
    for _ in range(depth):
        inner = {**table, 17: inner}
    return inner


def _hostile(what: str, table: dict) -> dict:
    long = _Shared("n" * 400_000)
    aval = {1: ["n"], 2: (wire.I8, 10), 3: (wire.I8, 1)}
    return {
        "strings": {9: [long] * 250_000},
        "constraints": {serialization.CONSTRAINTS: [_Shared("n >= 1")] * 300_000},
        "names of a dict": {2: {0: (wire.I8, serialization._DICT), 1: [_Shared({})] * 50_000, 2: [long] * 50_000}},
        "trees": {4: _doubling(40)},
        "types": {19: [_Shared({**aval, 1: [_Shared("n")] * 60_000})] * 60_000},
        "gradients": _gradients({**table, 13: _Shared(b"0" * 1_000_000)}, 40),
        "checks": {12: [_Shared({0: (wire.I8, 1), 1: long})] * 100_000},
        "meshes": {
            21: [_Shared({0: _Shared({0: wire.Numbers(wire.U32, [1] * 9), 1: [long] * 9}), 1: _Shared({})})] * 10_000
        },
    }[what]


@pytest.mark.parametrize(
    "what", ["strings", "constraints", "names of a dict", "trees", "types", "gradients", "checks", "meshes"]
)
def test_a_file_takes_memory_in_proportion_to_its_size(what, tmp_path, monkeypatch):
    """Small files that refer to one string or table again and again expand to more than can be had."""
    table = serialization._table(export.export(gradix.jit(lambda x: x * 2))(X), 0)
    del table[serialization.DIGEST]
    blob = shared_bytes(monkeypatch, {**table, **_hostile(what, table)})
    assert len(blob) < 2_500_000
    path = tmp_path / "file"
    path.write_bytes(blob)
    done = subprocess.run([sys.executable, "-c", SHARED, str(path)], capture_output=True, text=True)
    assert done.stdout.strip() == "refused", done.stdout[-500:] + done.stderr[-3000:]


Pair = collections.namedtuple("Pair", "x y")
export.register_namedtuple_serialization(Pair, serialized_name="tests.strangers.Pair")


@pytest.mark.parametrize("data", [b"", b"3", b"null", b"[[", b"[" * 100_000, b"\xff", b'{"x": 1}', b'["x"]'])
def test_data_of_registered_nodes_is_checked(data):
    table = serialization._table(export.export(gradix.jit(lambda x: Pair(x, x)))(X), 0)
    del table[serialization.DIGEST]
    table[4][4] = data
    with pytest.raises(ValueError, match="file|fields|JSON|Expecting|decode"):
        export.deserialize(wire.encode(table))


def test_a_large_tree_is_read():
    tree = [(jnp.ones(()), {"a": 1.0, "b": None})] * 500
    e = export.export(gradix.jit(lambda t: t))(tree)
    assert export.deserialize(e.serialize()).in_tree == e.in_tree


# -- fields altered one by one ---------------------------------------------------------------------

MUTATES = Path(__file__).parent / "mutates.py"


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_altered_fields_are_refused_or_read_in_bounded_memory(count):
    done = subprocess.run(
        [sys.executable, "-m", "tests.export.mutates", "3", str(count)],
        capture_output=True,
        text=True,
        cwd=MUTATES.parents[2],
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert re.fullmatch(r"refused \d+ of \d+", done.stdout.strip()), done.stdout
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
