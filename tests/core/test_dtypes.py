"""Dtypes: promotion against JAX's measured tables, weak types, canonical widths, hierarchy, limits, keys."""

import copy
import json
import pickle
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import gradix
from gradix import dtypes as public
from gradix._base.config import config, numpy_dtype_promotion
from gradix._core import dtypes

FACTS = json.loads((Path(__file__).parents[1] / "data" / "promotion.json").read_text(encoding="utf-8"))
NAMES = FACTS["dtypes"]
PYTHON = {"int*": int, "float*": float, "complex*": complex}
DTYPES = [n for n in NAMES if n not in PYTHON]


def table(x64: bool, which: str):
    """(row, column, result or None where it raises, weak) of a table of facts."""
    rows = FACTS["x64_true" if x64 else "x64_false"][which]
    for a, row in zip(NAMES, rows, strict=True):
        for b, cell in zip(NAMES, row.split(), strict=True):
            yield a, b, None if cell == "-" else NAMES[int(cell.rstrip("*"))], cell.endswith("*")


def operand(name: str):
    return (dtypes.python_scalar_dtype(PYTHON[name]), True) if name in PYTHON else (dtypes.as_dtype(name), False)


# ---------------------------------------------------------------- promotion
@pytest.mark.parametrize(("which", "mode"), [("promote_types", "standard"), ("strict", "strict")])
def test_promote_types(x64, which, mode):
    with numpy_dtype_promotion(mode):
        for a, b, want, _ in table(x64, which):
            pair = PYTHON.get(a, a), PYTHON.get(b, b)
            if want is None:
                with pytest.raises(dtypes.TypePromotionError):
                    dtypes.promote_types(*pair)
            else:
                assert dtypes.promote_types(*pair) == want, (a, b)


def test_arithmetic_on_arrays(x64):
    absent = FACTS["x64_true" if x64 else "x64_false"]["absent_in_add"]
    for a, b, want, weak in table(x64, "add_arrays"):
        if a in absent or b in absent:
            continue
        pair = *operand(a), *operand(b), dtypes.promotion_mode()
        if want is None:
            with pytest.raises(dtypes.TypePromotionError):
                dtypes.promote_pair(*pair)
        else:
            assert dtypes.promote_pair(*pair) == (want, weak), (a, b)


SAMPLES = {
    "1": 1,
    "1.0": 1.0,
    "1j": 1j,
    "True": True,
    "np.float64(1)": np.float64(1),
    "np.int64(1)": np.int64(1),
    "np.array([1.0])": np.array([1.0]),
    "np.array([1])": np.array([1]),
    "1, 1.0": (1, 1.0),
    "int": int,
    "float": float,
    "complex": complex,
    "bool": bool,
    "int, float": (int, float),
    "'int8', float": ("int8", float),
    "'int8', 1.0": ("int8", 1.0),
    "'float64'": "float64",
    "'int64'": "int64",
    "'bfloat16', 'float16'": ("bfloat16", "float16"),
    "np.float16(1), 1.0": (np.float16(1), 1.0),
}


@pytest.mark.promotes
@pytest.mark.parametrize("text", SAMPLES)
def test_result_type(x64, text):
    args = SAMPLES[text] if isinstance(SAMPLES[text], tuple) else (SAMPLES[text],)
    assert dtypes.result_type(*args) == FACTS["x64_true" if x64 else "x64_false"]["result_type"][text]


@pytest.mark.parametrize(
    ("args", "want"),
    [
        ((1,), (int, True)),
        ((1, 2.0), (float, True)),
        ((True,), (bool, False)),
        ((True, 1), (int, True)),
        ((np.float64(1),), (float, False)),
        ((int, np.int8), ("int8", False)),
        ((1j, np.float16(1)), ("complex64", False)),
        ((np.uint8(1), np.int8(1), 2), ("int16", False)),
        ((2, 3.0, np.float16(1)), ("float16", False)),
    ],
)
def test_result_type_says_weakness(x64, args, want):
    dtype = dtypes.python_scalar_dtype(want[0]) if isinstance(want[0], type) else want[0]
    assert dtypes.result_type(*args, return_weak_type_flag=True) == (dtype, want[1])


class Aval:
    """Stands for an array of any weakness."""

    def __init__(self, dtype, weak_type):
        self.dtype, self.weak_type = dtypes.as_dtype(dtype), weak_type


@pytest.mark.parametrize(
    ("a", "b", "x32", "x64"),
    [
        (("int8", True), ("int16", True), "int16*", "int16*"),
        (("int8", True), ("uint32", True), "int32*", "int64*"),
        (("float16", True), ("bfloat16", True), "float32*", "float32*"),
        (("float32", True), ("int4", False), None, None),
        (("float16", True), ("int32", True), "float16*", "float16*"),
        (("uint8", True), ("bool", False), "int32*", "int64*"),
        (("float16", True), ("int32", False), "float32*", "float64*"),
        (("int8", True), ("int4", True), None, None),
        (("complex64", True), ("int8", False), "complex64*", "complex128*"),
        (("float32", True), ("bfloat16", False), "bfloat16", "bfloat16"),
        (("int8", True), ("int4", False), "int4", "int4"),
        (("float8_e5m2", True), ("float32", True), None, None),
        (("complex64", True), ("float8_e5m2", False), None, None),
    ],
)
def test_weak_arrays_of_other_widths(a, b, x32, x64):
    for mode, want in ((False, x32), (True, x64)):
        for pair in ((*a, *b), (*b, *a)):
            pair = dtypes.as_dtype(pair[0]), pair[1], dtypes.as_dtype(pair[2]), pair[3], mode
            if want is None:
                with pytest.raises(dtypes.TypePromotionError):
                    dtypes.promote_pair(*pair)
            else:
                assert dtypes.promote_pair(*pair) == (want.rstrip("*"), want.endswith("*"))


@pytest.mark.promotes
@pytest.mark.x32
def test_promote_takes_avals():
    assert dtypes.promote(Aval("int8", False), Aval("float32", True)) == (np.float32, True)
    assert dtypes.promote(Aval("float16", True)) == (np.float16, True)
    assert dtypes.promote(Aval("uint8", False), Aval("int8", False), Aval("float16", False)) == (np.float16, False)


@pytest.mark.promotes
@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: dtypes.result_type("int4", "int8"), dtypes.TypePromotionError, r"int4, int8.*astype\('int32'\)"),
        (
            lambda: dtypes.result_type("float8_e5m2", "float32"),
            dtypes.TypePromotionError,
            r"float32, float8_e5m2.*8-bit",
        ),
        (lambda: dtypes.result_type("int4", 1.0), dtypes.TypePromotionError, "Python float, int4"),
        (lambda: dtypes.result_type([1, 2]), TypeError, r"Cannot determine dtype of \[1, 2\].*asarray"),
        (lambda: dtypes.result_type(), ValueError, "at least one"),
        (lambda: dtypes.result_type(dtypes.KEY, 1), ValueError, "key<fry> is not a valid dtype"),
        (lambda: dtypes.result_type(dtypes.float0, "float32"), ValueError, "float0 is not a valid dtype"),
        (lambda: dtypes.promote_types(dtypes.KEY, "int8"), TypeError, "key<fry>"),
        (lambda: dtypes.as_dtype("foo"), TypeError, "'foo' not understood"),
        (lambda: dtypes.as_dtype(3), TypeError, "not understood"),
        (lambda: dtypes.canonicalize_dtype(dtypes.KEY), ValueError, "allow_extended_dtype"),
        (lambda: dtypes.requested_dtype(object, "zeros"), TypeError, "in zeros"),
        (lambda: dtypes.requested_dtype("S3", "zeros"), TypeError, "'S3' in zeros"),
        (lambda: dtypes.itemsize_bits(None), ValueError, "None"),
        (lambda: dtypes.itemsize_bits(dtypes.KEY), ValueError, "key<fry>"),
        (lambda: dtypes.check_python_int(2**40, np.dtype("int32")), OverflowError, "1099511627776 too large.*int32"),
        (lambda: dtypes.check_python_int(-1, np.dtype("uint8")), OverflowError, "0 to 255"),
        (lambda: dtypes.scalar_type_of("S3"), TypeError, "S3"),
        (lambda: dtypes.scalar_type_of(dtypes.KEY), TypeError, "key<fry>"),
        (lambda: dtypes.iinfo("float32"), ValueError, "integer"),
        (lambda: dtypes.finfo("int32"), ValueError, "finfo|inexact"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.promotes
def test_strict_mode_says_so():
    with numpy_dtype_promotion("strict"):
        with pytest.raises(dtypes.TypePromotionError, match=r"float32, int32.*strict"):
            dtypes.result_type("int32", "float32")
        assert dtypes.result_type("float32", 1) == np.float32
    assert dtypes.result_type("int32", "float32") == np.float32


# ---------------------------------------------------------------- names and widths
@pytest.mark.parametrize("name", DTYPES)
def test_one_dtype_under_all_its_names(name):
    dtype = dtypes.as_dtype(name)
    assert dtype.name == name and dtypes.dtype_name(dtype) == name
    for other in (dtype, dtype.type, dtype.newbyteorder(), getattr(ml_dtypes, name, name)):
        assert dtypes.as_dtype(other) is dtype
    members = [s for s in (dtypes.BOOL, dtypes.SIGNED, dtypes.UNSIGNED, dtypes.FLOAT, dtypes.COMPLEX) if dtype in s]
    assert len(members) == 1 and dtype in dtypes.SUPPORTED


def test_canonical_width(x64):
    for name, want in FACTS["x64_true" if x64 else "x64_false"]["canonical"].items():
        for spelled in (name, dtypes.as_dtype(name), dtypes.as_dtype(name).type):
            assert dtypes.canonicalize_dtype(spelled) == want
    assert dtypes.canonicalize_dtype(None) == dtypes.canonicalize_dtype(float) == ("float64" if x64 else "float32")
    assert dtypes.canonicalize_dtype(">f4") == np.float32
    assert dtypes.canonicalize_dtype(dtypes.KEY, allow_extended_dtype=True) is dtypes.KEY


class ScalarType:
    """A scalar type as gradix.numpy has them: it carries its dtype."""

    dtype = np.dtype("int16")


def test_scalar_types_and_arrays_stand_for_their_dtype():
    assert dtypes.as_dtype(ScalarType) == dtypes.as_dtype(ScalarType()) == np.int16
    assert dtypes.as_dtype(np.ones(2, "float32")) == np.float32


def test_the_dtype_of_a_value_or_of_a_type(x64):
    wide, integer = ("float64", "int64") if x64 else ("float32", "int32")
    values = (1.0, wide), (1, integer), (True, "bool"), ("int8", "int8"), (float, wide), (np.float16, "float16")
    assert [str(dtypes.dtype(v)) for v, _ in values] == [name for _, name in values]
    assert dtypes.dtype(np.zeros(2)) == dtypes.dtype(np.float64(1)) == wide
    key = gradix.random.key(0)
    assert dtypes.dtype(key) == dtypes.dtype(key.dtype) == key.dtype
    with pytest.raises(TypeError, match="Cannot determine dtype of \\[1.0\\]"):
        dtypes.dtype([1.0])
    with pytest.raises(ValueError, match="None is not a dtype"):
        dtypes.dtype(None)


def test_a_narrowed_request_warns(x64):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        got = [dtypes.requested_dtype(d, "zeros") for d in (float, int, complex, None, "float32")]
        assert not seen
        got += [dtypes.requested_dtype(d, "zeros") for d in ("float64", np.uint64, np.dtype("complex128"))]
    assert [d.itemsize for d in got] == ([8, 8, 16, 8, 4, 8, 8, 16] if x64 else [4, 4, 8, 4, 4, 4, 4, 8])
    assert len(seen) == (0 if x64 else 3)
    if not x64:
        assert seen[0].category is UserWarning
        assert str(seen[0].message).startswith(
            "Explicitly requested dtype float64 requested in zeros is not "
            "available, and will be truncated to dtype float32."
        )


@pytest.mark.x32
def test_the_explicit_option():
    config.update("jax_explicit_x64_dtypes", "allow")
    assert dtypes.requested_dtype("float64") == np.float64
    config.update("jax_explicit_x64_dtypes", "error")
    with pytest.raises(ValueError, match="float64 requested in ones is not available"):
        dtypes.requested_dtype("float64", "ones")


@pytest.mark.parametrize(
    ("dtype", "want"),
    [
        ("bool", "bool"),
        ("int4", "i4"),
        ("uint2", "u2"),
        ("int32", "i32"),
        ("uint8", "u8"),
        ("float16", "f16"),
        ("bfloat16", "bf16"),
        ("float64", "f64"),
        ("complex64", "c64"),
        ("complex128", "c128"),
        ("float4_e2m1fn", "f4_e2m1fn"),
        ("float8_e4m3fn", "f8_e4m3fn"),
        ("float8_e4m3b11fnuz", "f8_e4m3b11fnuz"),
        ("float8_e8m0fnu", "f8_e8m0fnu"),
        (dtypes.KEY, "key<fry>"),
        (dtypes.float0, "float0"),
    ],
)
def test_short_names(dtype, want):
    for _ in range(2):
        assert dtypes.short_name(dtypes.as_dtype(dtype)) == want


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("int2", 2),
        ("uint4", 4),
        ("float4_e2m1fn", 4),
        ("bool", 8),
        (float, 64),
        ("float8_e5m2", 8),
        ("bfloat16", 16),
        ("complex64", 64),
    ],
)
def test_itemsize_bits(dtype, bits):
    assert dtypes.itemsize_bits(dtype) == bits


# ---------------------------------------------------------------- values
def test_dtype_and_weakness_of_values(x64):
    wide = 8 if x64 else 4
    for value, size, weak in (
        (1, wide, True),
        (1.0, wide, True),
        (1j, 2 * wide, True),
        (True, 1, False),
        (np.float64(1), wide, False),
        (np.arange(3, dtype="int64"), wide, False),
        (np.float16(1), 2, False),
        (ml_dtypes.bfloat16(1), 2, False),
        (Aval("float32", True), 4, True),
        (Aval("int8", False), 1, False),
    ):
        assert dtypes.dtype_of(value).itemsize == size, value
        assert dtypes.is_weakly_typed(value) is weak, value
    assert dtypes.scalar_type(bool) == (np.bool_, False)
    assert dtypes.scalar_type(float) == (f"float{8 * wide}", True)


def test_values_that_hold_an_aval(x64):
    holder = type("Holder", (), {"aval": Aval("float16", True)})()
    assert dtypes.dtype_of(holder) == np.float16 and dtypes.is_weakly_typed(holder)
    assert dtypes.dtype_of(type("Count", (int,), {})(3)) == dtypes.python_scalar_dtype(int)
    assert dtypes.dtype_of(np.zeros(2, dtypes.float0)) == dtypes.float0


def test_python_ints_that_fit_pass():
    for value, dtype in ((127, "int8"), (-128, "int8"), (255, "uint8"), (7, "int4"), (2**64 - 1, "uint64")):
        dtypes.check_python_int(value, np.dtype(getattr(ml_dtypes, dtype, dtype)))


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (1, int),
        (np.int8(1), int),
        (True, bool),
        (1j, complex),
        ("bfloat16", float),
        (np.ones(2), float),
        ("uint4", int),
        (float, float),
        (complex, complex),
    ],
)
def test_scalar_type_of(value, want):
    assert dtypes.scalar_type_of(value) is want


def test_nearest_dtype_of_a_kind(x64):
    d = dtypes.as_dtype
    wide = "float64" if x64 else "float32"
    for name, inexact in (
        ("bool", "float32"),
        ("int8", "float32"),
        ("int32", "float32"),
        ("uint64", wide),
        ("int64", wide),
        ("bfloat16", "bfloat16"),
        ("complex64", "complex64"),
    ):
        assert dtypes.to_inexact_dtype(d(name)) == inexact
    assert dtypes.real_dtype(d("complex128")) == np.float64 and dtypes.real_dtype(d("float16")) == np.float16
    for name, want in (
        ("float16", "complex64"),
        ("float64", "complex128"),
        ("int8", "complex64"),
        ("complex64", "complex64"),
    ):
        assert dtypes.to_complex_dtype(d(name)) == want


# ---------------------------------------------------------------- hierarchy and limits
@pytest.mark.parametrize("name", DTYPES)
def test_issubdtype(name):
    kinds = (
        "bool_",
        "integer",
        "signedinteger",
        "unsignedinteger",
        "inexact",
        "floating",
        "complexfloating",
        "number",
        "generic",
    )
    under = FACTS["issubdtype"][name]
    for kind in kinds:
        assert dtypes.issubdtype(name, getattr(np, kind)) is (kind in under), kind
    assert not dtypes.issubdtype(name, dtypes.extended)
    assert [other for other in DTYPES if dtypes.issubdtype(name, other)] == [name]


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (dtypes.KEY, dtypes.prng_key, True),
        (dtypes.KEY, dtypes.extended, True),
        (dtypes.KEY, np.generic, True),
        (dtypes.KEY, np.number, False),
        (dtypes.KEY, dtypes.KEY, True),
        (dtypes.prng_key, dtypes.extended, True),
        (dtypes.prng_key, np.generic, True),
        (dtypes.extended, dtypes.prng_key, False),
        (np.floating, np.inexact, True),
        (np.inexact, np.floating, False),
        (float, np.floating, True),
        (np.float32, float, False),
        (np.float64, float, True),
        (None, np.floating, True),
        (dtypes.float0, np.generic, True),
        (dtypes.float0, dtypes.float0, True),
        (dtypes.float0, np.number, False),
        ("S3", np.character, True),
        ("datetime64[s]", np.number, False),
    ],
)
def test_issubdtype_of_the_rest(a, b, want):
    assert dtypes.issubdtype(a, b) is want


def test_finfo_and_iinfo():
    for name, facts in FACTS["finfo"].items():
        info = dtypes.finfo(name)
        for k, fact in facts.items():
            found = str(getattr(info, k))
            # how many digits of the largest number are written depends on the release of NumPy
            assert found == fact or k in ("min", "max") and float(found) == float(fact), (name, k)
    assert (dtypes.iinfo("int4").min, dtypes.iinfo("uint2").max, dtypes.iinfo(int).bits) == (-8, 3, 64)


# ---------------------------------------------------------------- keys and the public module
def test_key_type():
    key = dtypes.KeyType("fry")
    assert key is dtypes.KEY and key == dtypes.KeyType("fry") != dtypes.KeyType("rbg") and key != np.dtype("uint64")
    assert repr(key) == str(key) == key.name == "key<fry>" and key.itemsize == 8 and key.type is dtypes.prng_key
    assert copy.deepcopy(key) is key and pickle.loads(pickle.dumps(key)) is key
    assert len({key, dtypes.KeyType("fry")}) == 1
    assert dtypes.physical_dtype(key) == np.uint64 and dtypes.physical_dtype(np.dtype("int8")) == np.int8
    assert dtypes.is_extended(key) and key not in dtypes.NUMERIC and dtypes.dtype_name(key) == "key<fry>"
    assert dtypes.promote_pair(key, False, dtypes.KeyType("fry"), False, False) == (key, False)


def test_public_names():
    names = {
        "TypePromotionError",
        "bfloat16",
        "canonicalize_dtype",
        "extended",
        "finfo",
        "float0",
        "iinfo",
        "issubdtype",
        "itemsize_bits",
        "prng_key",
        "result_type",
        "scalar_type_of",
    }
    assert names == {n for n in vars(public) if n.isidentifier() and not n.startswith("_")}
    assert issubclass(public.TypePromotionError, ValueError) and issubclass(public.prng_key, np.generic)


@pytest.mark.promotes
@pytest.mark.parity
def test_promotion_as_the_peer_has_it_now(peer, x64):
    """The tables above are facts of one version; this asks the version installed."""
    with peer.enable_x64(x64):
        for a in NAMES:
            for b in NAMES:
                pair = PYTHON.get(a, a), PYTHON.get(b, b)
                got, want = (
                    _outcome(f, pair, e)
                    for f, e in (
                        (dtypes.promote_types, dtypes.TypePromotionError),
                        (peer.numpy.promote_types, peer.dtypes.TypePromotionError),
                    )
                )
                assert got == want, (a, b)


def _outcome(function, args, error):
    try:
        return function(*args).name
    except error:
        return error.__name__


@pytest.mark.x32
def test_config_is_as_it_was():
    assert not config.jax_enable_x64


def test_kinds_of_numbers_that_arrays_do_not_hold():
    for name, kinds in {
        "float6_e2m3fn": (np.floating, np.inexact, np.number, np.generic),
        "float6_e3m2fn": (np.floating, np.inexact, np.number, np.generic),
        "int1": (np.signedinteger, np.integer, np.number, np.generic),
        "uint1": (np.unsignedinteger, np.integer, np.number, np.generic),
    }.items():
        if not hasattr(ml_dtypes, name):
            continue
        dtype = np.dtype(getattr(ml_dtypes, name))
        assert all(dtypes.issubdtype(dtype, kind) for kind in kinds), name
        assert not dtypes.issubdtype(dtype, np.complexfloating) and not dtypes.issubdtype(dtype, np.int64)
    assert not dtypes.issubdtype(np.dtype("datetime64[s]"), np.number)


def test_numbers_that_xla_does_not_compute_with_are_to_be_converted():
    with pytest.raises(TypeError, match=r"float6_e2m3fn. Convert the numbers to a dtype .*x.astype"):
        gradix.numpy.asarray(np.zeros(2, ml_dtypes.float6_e2m3fn))
    with pytest.raises(TypeError, match="Pass the fields by name"):
        gradix.numpy.asarray(np.zeros(2, [("a", "f4")]))
