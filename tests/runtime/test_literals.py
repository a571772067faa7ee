"""Constants keep every bit on the way through text, XLA and back."""

import ml_dtypes
import numpy as np
import pytest

from gradix._core.aval import make_aval
from gradix._core.dtypes import KEY, float0
from gradix._stablehlo.attributes import Raw, attribute, i64_array, i64_tensor, layout
from gradix._stablehlo.literals import dense
from gradix._stablehlo.types import element_type, tensor_type

FLOATS = [
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
]
INTS = [f"{u}int{n}" for u in ("", "u") for n in (2, 4, 8, 16, 32, 64)]
DTYPES = ["bool", *INTS, *FLOATS, "complex64", "complex128"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def edge_values(dtype):
    """Values whose bits are easily lost."""
    if dtype.kind == "b":
        return np.array([True, False, True])
    if "int" in dtype.name:
        info = ml_dtypes.iinfo(dtype)
        return (
            np.array([int(info.min), int(info.max), 0, 1]).astype(dtype)
            if info.bits < 64
            else np.array([info.min, info.max, 0, 1], dtype)
        )
    if dtype.kind == "c":
        return np.array([complex(np.nan, 1), complex(-0.0, np.inf), complex(0.1, -1e-30), 1 + 2j], dtype)
    bits = 4 if dtype.name.startswith("float4") else 8 * dtype.itemsize
    codes = np.arange(1 << min(bits, 8)) if bits <= 8 else np.random.default_rng(0).integers(0, 1 << 16, 64)
    if bits <= 16:
        return codes.astype(f"u{dtype.itemsize}").view(dtype)
    special = [
        0.0,
        -0.0,
        0.1,
        1e-5,
        1e22,
        np.inf,
        -np.inf,
        np.nan,
        np.finfo(dtype).tiny,
        np.finfo(dtype).max,
        np.finfo(dtype).smallest_subnormal,
    ]
    payload = np.array([0x7FC00001 if bits == 32 else 0x7FF8000000000001], f"u{dtype.itemsize}").view(dtype)
    return np.concatenate([np.array(special, dtype), payload])


def same_bits(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("name", DTYPES)
def test_array_constants_are_bit_exact(name, spell):
    x = edge_values(dtype_of(name))
    (got,) = spell(lambda em, outs: [em.constant(x, outs[0])], [], [make_aval(x.shape, x.dtype)])
    assert same_bits(got, x)


@pytest.mark.parametrize("name", DTYPES)
def test_scalar_constants_are_bit_exact(name, spell):
    xs = edge_values(dtype_of(name))[:16]
    aval = make_aval((), xs.dtype)
    got = spell(lambda em, outs: [em.constant(x, a) for x, a in zip(xs, outs)], [], [aval] * len(xs))
    assert all(same_bits(g, np.asarray(x, xs.dtype)) for g, x in zip(got, xs))


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), (1,), (1, 1), (5,), (2, 3, 4), (40,)])
def test_shapes_of_constants(shape, spell):
    x = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape)
    (got,) = spell(lambda em, outs: [em.constant(x, outs[0])], [], [make_aval(shape, x.dtype)])
    assert same_bits(got, x)


def test_strided_and_big_endian_constants(spell):
    base = np.arange(24, dtype="f4").reshape(4, 6)
    for x in (base.T, base[::-1, ::2], base.astype(">f4")):
        aval = make_aval(x.shape, np.dtype("f4"))
        (got,) = spell(lambda em, outs, x=x: [em.constant(x, outs[0])], [], [aval])
        np.testing.assert_array_equal(got, x)


def test_a_scalar_fills_a_larger_type(spell):
    (got,) = spell(lambda em, outs: [em.splat(2.5, outs[0])], [], [make_aval((2, 3), np.dtype("f4"))])
    np.testing.assert_array_equal(got, np.full((2, 3), 2.5, "f4"))


def test_repeated_values_become_splats():
    assert dense(np.broadcast_to(np.float32(3), (1000, 1000))) == "dense<3.0>"
    assert dense(np.full((1000,), 7)) == "dense<7>"
    assert dense(np.array([0.0, -0.0] * 20)).startswith('dense<"0x')
    assert dense(np.array([[True, False]])) == "dense<[[true, false]]>"


def test_constants_are_written_once(lower):
    f = make_aval((), np.dtype("f4"))
    m = lower(lambda em, outs: [em.op("add", f, em.constant(1.0, f), em.constant(np.float32(1), f))], [], [f])
    assert m.text.count("stablehlo.constant") == 1


def test_zeros_of_both_signs_stay_apart(spell):
    f = make_aval((), np.dtype("f4"))
    got = spell(lambda em, outs: [em.constant(0.0, f), em.constant(-0.0, f)], [], [f, f])
    assert [bool(np.signbit(x)) for x in got] == [False, True]


def test_a_misfit_constant_is_refused(lower):
    with pytest.raises(ValueError, match=r"shape \(2,\) does not fit"):
        lower(lambda em, outs: [em.constant(np.zeros(2), outs[0])], [], [make_aval((3,), np.dtype("f8"))])


def test_types():
    assert tensor_type(make_aval((3, 4), np.dtype("f4"))) == "tensor<3x4xf32>"
    assert tensor_type(make_aval((), np.dtype(bool))) == "tensor<i1>"
    assert tensor_type(make_aval((2,), np.dtype("c16"))) == "tensor<2xcomplex<f64>>"
    assert element_type(np.dtype([("float0", "V")])) == "i1"


def test_types_xla_lacks_are_named():
    with pytest.raises(TypeError, match="no XLA type"):
        element_type(np.dtype("M8[s]"))


@pytest.mark.parametrize("shape", [(1 << 62,), (1 << 40, 1 << 40), (1 << 63, 0)])
def test_sizes_that_overflow_are_refused_before_xla_sees_them(shape):
    with pytest.raises(ValueError, match="array is too big"):
        tensor_type(make_aval(shape, np.dtype("f4")))


def test_attributes():
    assert i64_array((1, 2)) == "array<i64: 1, 2>" and i64_array(()) == "array<i64>"
    assert layout((1, 0)) == "dense<[1, 0]> : tensor<2xindex>"
    assert layout(()) == "dense<> : tensor<0xindex>"
    assert i64_tensor([[0, 1], [2, 3]], (2, 2)) == "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
    assert i64_tensor([], (0, 2)) == "dense<> : tensor<0x2xi64>"
    entries = {"a": np.uint8(76), "b": True, "c": 'q"\n', "d": [1, 2.0], "e-f": Raw("unit"), "g": {"h": np.int32(-1)}}
    assert attribute(entries) == (
        '{a = 76 : ui8, b = true, c = "q\\22\\0A", d = [1 : i64, 2.0 : f64], "e-f" = unit, g = {h = -1 : i32}}'
    )
    with pytest.raises(TypeError, match="no MLIR attribute"):
        attribute(object())


def test_constants_of_keys_and_float0(spell):
    key, nothing = make_aval((2,), KEY), make_aval((2,), float0)
    got = spell(
        lambda em, outs: [em.constant(np.array([1, 1 << 63], np.uint64), key), em.constant(0, nothing)],
        [],
        [key, nothing],
    )
    assert got[0].tolist() == [1, 1 << 63] and got[1].tolist() == [False, False]
