"""What the compiler computes of constants in advance is what operations give when they run."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export, lax

INTEGERS = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]


def _pairs(dtype):
    least, most = int(jnp.iinfo(dtype).min), int(jnp.iinfo(dtype).max)
    values = sorted({least, least + 1, 0, 1, 3, most} | ({-1} if least else set()))
    return np.repeat(values, len(values)).astype(dtype), np.tile(values, len(values)).astype(dtype)


def _divided(x: int, y: int, least: int, most: int) -> tuple[int, int]:
    """Quotient towards zero and remainder, as XLA's operations have them where there are none."""
    if y == 0:
        return -1 if least else most, x
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return (quotient if quotient <= most else least), x - quotient * y


def _forms(f, *args):
    """The results by every way in which constants and arguments meet; small parts of them are written as constants."""
    some = [a[:8] for a in args]
    yield "host", f(*map(jnp.asarray, args))
    yield "arguments", gradix.jit(f)(*args)
    for start in range(0, len(args[0]), 8):
        part = [a[start : start + 8] for a in args]
        yield (
            f"constants from {start}",
            np.concatenate(
                [f(*[a[:start] for a in args]), gradix.jit(lambda: f(*part))(), f(*[a[start + 8 :] for a in args])]
            ),  # noqa: B023, E501
        )
    if len(args) == 2:
        yield "divisor known", np.concatenate([gradix.jit(lambda x: f(x, some[1]))(some[0]), f(*[a[8:] for a in args])])
    exported = export.export(gradix.jit(lambda: f(*map(jnp.asarray, args))))()
    yield "exported", exported.call()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["div", "rem"])
def test_division_by_nothing_and_of_the_least_number(name, dtype):
    x, y = _pairs(dtype)
    info = jnp.iinfo(dtype)
    wanted = [_divided(int(a), int(b), int(info.min), int(info.max))[name == "rem"] for a, b in zip(x, y)]
    for form, found in _forms(getattr(lax, name), x, y):
        np.testing.assert_array_equal(np.asarray(found).astype(int), wanted, err_msg=form)


@pytest.mark.parametrize("divisor", [0, -1, 3])
@pytest.mark.parametrize("name", ["div", "rem"])
def test_division_of_literals(name, divisor):
    least = -(2**31)
    wanted = _divided(least, divisor, least, 2**31 - 1)[name == "rem"]
    assert gradix.jit(lambda: getattr(lax, name)(jnp.int32(least), jnp.int32(divisor)))() == wanted
    assert gradix.jit(lambda x: getattr(lax, name)(x, jnp.int32(divisor)))(jnp.int32(least)) == wanted
    assert gradix.jit(lambda y: getattr(lax, name)(jnp.int32(least), y))(jnp.int32(divisor)) == wanted


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["clz", "population_count", "bitwise_not"])
def test_bits_of_constants(name, dtype):
    x = np.unique(_pairs(dtype)[0])
    bits = jnp.iinfo(dtype).bits
    plain = [int(v) % 2**bits for v in x]
    wanted = {
        "clz": [bits - p.bit_length() for p in plain],
        "population_count": [p.bit_count() for p in plain],
        "bitwise_not": np.invert(x).astype(int),
    }[name]
    for form, found in _forms(getattr(lax, name), x):
        np.testing.assert_array_equal(np.asarray(found).astype(int), wanted, err_msg=form)
