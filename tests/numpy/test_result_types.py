"""Dtypes and weak types of results, in both widths, against what was measured on JAX."""

import contextlib
import json
import warnings
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import errors, lax, nn

FACTS = json.loads((Path(__file__).parents[1] / "data" / "result_types.json").read_text(encoding="utf-8"))
WEAK = {"weak_int": 1, "weak_float": 1.0, "weak_complex": 1j}
SCALARS = {"py_bool": True, "py_int": 2, "py_float": 2.0, "py_complex": 2j}
ROOTS = {"nn": nn, "lax": lax}
PARTIAL = (
    errors.ConcretizationTypeError,
    errors.TracerArrayConversionError,
    errors.TracerBoolConversionError,
    errors.TracerIntegerConversionError,
    errors.NonConcreteBooleanIndexError,
)

# Names of the table that are no function of one array.
WRITTEN = {
    "trace_1d": lambda x: jnp.trace(x[:, None]),
    "digitize_self": lambda x: jnp.digitize(x, x),
    "quantile_half": lambda x: jnp.quantile(x, 0.5),
    "percentile_50": lambda x: jnp.percentile(x, 50),
    "convolve_self": lambda x: jnp.convolve(x, x),
    "correlate_self": lambda x: jnp.correlate(x, x),
    "outer_self": lambda x: jnp.outer(x, x),
    "inner_self": lambda x: jnp.inner(x, x),
    "scipy.special.xlogy(x,x)": lambda x: gradix.scipy.special.xlogy(x, x),
    "lax.reduce_sum": lambda x: lax.reduce_sum(x, (0,)),
    "lax.top_k": lambda x: lax.top_k(x, 2),
    "lax.argmax": lambda x: lax.argmax(x, 0, jnp.int32),
    "linalg.solve(x,x)": lambda x: jnp.linalg.solve(x, x),
    "matmul(x,x)": lambda x: jnp.matmul(x, x),
    "einsum(ij,jk)": lambda x: jnp.einsum("ij,jk", x, x),
    "linalg.matrix_power(x,3)": lambda x: jnp.linalg.matrix_power(x, 3),
    "where(bool,x,y)": lambda x, y: jnp.where(jnp.ones(4, bool), x, y),
    "concatenate": lambda x, y: jnp.concatenate([x, y]),
    "stack": lambda x, y: jnp.stack([x, y]),
    "clip(x,y,y)": lambda x, y: jnp.clip(x, y, y),
    "at_set": lambda x, y: x.at[0].set(y[0]),
    "at_add": lambda x, y: x.at[0].add(y[0]),
    "nn.logsumexp": lambda x: nn.logsumexp(x),
}
# Where the types differ from JAX's on purpose, by function: the columns, and why.
HALVES = ("float8_e4m3fn", "bfloat16", "float16")
NO_KERNEL = (
    "linalg.inv linalg.svd linalg.eigh linalg.cholesky linalg.solve(x,x) linalg.qr linalg.eig "
    "linalg.matrix_rank linalg.pinv"
)
DIFFERENT = {
    # JAX tells these types when it traces, and raises when it runs, for want of a kernel: said while tracing here.
    **dict.fromkeys(NO_KERNEL.split(), HALVES),
    **dict.fromkeys(("argmax", "argmin", "nanargmax", "lax.argmax"), ("complex64", "complex128", "weak_complex")),
    # JAX raises; here they have the meaning they have for the other dtypes.
    "fft.rfft": HALVES,
    "nn.softmax": ("bool",),
    "vander": ("bool",),
    "signbit": ("float8_e4m3fn",),
    "copysign": ("float8_e4m3fn,float8_e4m3fn",),
}
DIFFERENT_X64 = dict.fromkeys(("matmul", "dot", "vdot", "inner"), ("float16,weak_complex",))
# Positions are default integers, as NumPy's and the standard's; JAX's stay int32, wherever it gives any.
POSITIONS = ("digitize_self", "searchsorted", "jnp.digitize(", "jnp.searchsorted(")


def expected(name: str, recorded: str) -> str:
    """The types that a recorded answer stands for here."""
    is_position = name.startswith(POSITIONS) and recorded == "i32"
    return "i64" if is_position and gradix.config.jax_enable_x64 else recorded


def function(name: str):
    """The function a row is about; None where there is no such function yet."""
    if name in WRITTEN:
        return WRITTEN[name]
    root, _, rest = name.partition(".")
    try:
        if root in ROOTS:
            return reduce(getattr, rest.split("."), ROOTS[root])
        return reduce(getattr, name.split("."), gradix if root == "scipy" else jnp)
    except AttributeError:
        return None


def argument(column: str, square: bool):
    shape = (2, 2) if square else (4,)
    if column in WEAK:
        x = jnp.full(shape, WEAK[column])
        assert x.weak_type
        return x
    return jnp.ones(shape, column)


def outcome(call, *args) -> str:
    """The types of a call's results in the spelling of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = gradix.eval_shape(call, *args)
        except PARTIAL:
            with contextlib.suppress(TypeError, ValueError, NotImplementedError):
                return spelled(call(*args))
            return "!"
        except (TypeError, ValueError, NotImplementedError):
            return "!"
    return spelled(out)


def spelled(out) -> str:
    if type(out) in (int, float, bool):
        return type(out).__name__
    if isinstance(out, (tuple, list)) or hasattr(out, "_fields"):
        return "+".join(map(spelled, out))
    name = str(out.dtype)
    code = next(k for k, v in FACTS["codes"].items() if v == name) if name != "bool" else "b"
    return code + "*" * bool(getattr(out, "weak_type", False))


def differing(name: str, call, rows, columns, arguments) -> list[str]:
    """What a row says and the function does not do, and differences that have gone."""
    wants, bad = rows[name].split(), []
    different = {**DIFFERENT, **DIFFERENT_X64} if gradix.config.jax_enable_x64 else DIFFERENT
    assert len(wants) == len(columns)
    for column, want in zip(columns, wants):
        if want != ".":
            got = outcome(call, *arguments(column))
            want = expected(name, want)
            if (got != want) != (column in different.get(name, ())):
                bad.append(f"{name}({column}) gives {got}; JAX: {want}")
    return bad


def is_square(name: str) -> bool:
    return (name.startswith("linalg.") and name != "linalg.norm") or name in ("matmul(x,x)", "einsum(ij,jk)")


def facts(x64: bool) -> dict:
    return FACTS["x64_true" if x64 else "x64_false"]


def test_no_function_is_missing():
    assert not [name for name in FACTS["x64_true"]["unary"] if function(name) is None]


@pytest.mark.promotes
@pytest.mark.parametrize("name", FACTS["x64_true"]["unary"])
def test_of_one_array(name, x64):
    call, table = function(name), facts(x64)
    columns = table["unary_columns"].split()
    assert not differing(name, call, table["unary"], columns, lambda c: [argument(c, is_square(name))])


@pytest.mark.promotes
@pytest.mark.parametrize("name", FACTS["x64_true"]["binary"])
def test_of_two_arrays(name, x64):
    call, table = function(name), facts(x64)
    columns = table["binary_columns"].split()
    assert not differing(
        name, call, table["binary"], columns, lambda c: [argument(part, False) for part in c.split(",")]
    )


@pytest.mark.promotes
@pytest.mark.parametrize("scalar", SCALARS)
def test_of_an_array_and_a_python_number(scalar, x64):
    table, bad = facts(x64), []
    columns = table["scalar_columns"].split()
    for name, call in [(n, function(n)) for n in table["scalar"][scalar]]:
        bad += differing(
            name,
            lambda x, call=call: call(x, SCALARS[scalar]),
            table["scalar"][scalar],
            columns,
            lambda c: [argument(c, False)],
        )
    assert not bad


@pytest.mark.promotes
def test_of_expressions(x64):
    names, bad = {"jnp": jnp, "np": np, "jax": gradix, "lax": lax}, []
    for text, want in facts(x64)["expressions"].items():
        if not resolves(text):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # jnp.float_ is float64 in name
                out = eval(text, names)
            got = spelled(out) if not isinstance(out, np.dtype) else spelled(np.empty(0, out))
        except (TypeError, ValueError):
            got = "!"
        if got != expected(text, want):
            bad.append(f"{text} gives {got}, not {want}")
    assert not bad


def resolves(text: str) -> bool:
    """Whether the function an expression calls is there: the table is wider than what there is yet."""
    root, *path = text.partition("(")[0].partition("[")[0].split(".")
    try:
        reduce(getattr, path, {"jnp": jnp, "lax": lax}.get(root.lstrip("-"), gradix))
    except AttributeError:
        return False
    return True


def test_most_functions_of_the_table_are_here():
    names = FACTS["x64_true"]["unary"]
    assert sum(function(n) is not None for n in names) >= 125


@pytest.mark.x32
@pytest.mark.parametrize("exponent", [np.ones(3, "uint8"), np.ones((2, 1), "int32"), np.True_, np.ones((), bool)])
@pytest.mark.parametrize("base", [2, 2.0, 2j, True, np.uint8(2), np.float32(2), np.ones(3, "int16")])
def test_powers_have_the_type_that_they_have_compiled(base, exponent):
    found, compiled = jnp.power(base, exponent), gradix.jit(jnp.power)(base, exponent)
    assert (found.dtype, found.weak_type, found.shape) == (compiled.dtype, compiled.weak_type, compiled.shape)
    np.testing.assert_allclose(found, compiled, rtol=1e-6)
