"""What a case gave, as plain data that can be stored, and whether two outcomes agree."""

import math
import os
import warnings

import numpy as np

RTOL = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 4e-5, "float64": 1e-11, "complex128": 1e-11}
ATOL = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 2e-6, "complex64": 4e-6, "float64": 1e-13, "complex128": 1e-13}
# The classes a program catches; an error agrees when it is an instance of the most specific one of these.
ERROR_FAMILIES = (
    "TracerBoolConversionError",
    "TracerArrayConversionError",
    "TracerIntegerConversionError",
    "NonConcreteBooleanIndexError",
    "ConcretizationTypeError",
    "UnexpectedTracerError",
    "KeyReuseError",
    "IndexError",
    "KeyError",
    "ZeroDivisionError",
    "OverflowError",
    "NotImplementedError",
    "NameError",
    "RecursionError",
    "MemoryError",
    "FloatingPointError",
    "ValueError",
    "TypeError",
    "AttributeError",
)
# JAX meets these by accident or for want of a rule, so that any exception agrees with them.
ACCIDENTS = {"Exception", "NotImplementedError", "KeyError", "ZeroDivisionError", "RecursionError"}

# Which of these is raised for one mistake is a matter of taste, in JAX itself too (PARITY_ERRORS=exact: no matter).
ALIKE = {"TypeError", "ValueError", "IndexError"} if os.environ.get("PARITY_ERRORS") != "exact" else set()


def observe(run, ns):
    """Run a case and describe what came: `{"value": ...}` or `{"error": [...], "message": ...}`.

    A RuntimeWarning on the way is noted, since JAX gives none where NumPy would.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = {"value": describe_value(run(ns))}
        except Exception as error:
            outcome = {"error": families(error), "message": f"{type(error).__name__}: {error}"}
    if any(issubclass(w.category, RuntimeWarning) for w in caught):
        outcome["warned"] = True
    return outcome


def families(error):
    """Names of the classes of an exception that a program would catch, most specific first."""
    names = {cls.__name__ for cls in type(error).__mro__}
    return [name for name in ERROR_FAMILIES if name in names] or ["Exception"]


def describe_value(value):
    """A tree of arrays, shapes and Python values as JSON data."""
    if value is None or isinstance(value, str):
        return value
    number = next((kind for kind in (bool, int, float, complex) if isinstance(value, kind)), None)
    if number is not None and not isinstance(value, np.generic):
        return {"py": number.__name__, "v": _numbers(np.asarray(value))}
    if isinstance(value, dict):
        return {"dict": {str(key): describe_value(item) for key, item in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [describe_value(item) for item in value]}
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _describe_array(value)
    if isinstance(value, type) or callable(value):
        return {"class": getattr(value, "__name__", "?")}
    return {"repr": repr(value)}


def _describe_array(value):
    out = {"dtype": str(value.dtype), "shape": list(value.shape)}
    if getattr(value, "weak_type", False):
        out["weak"] = True
    if type(value).__name__ == "ShapeDtypeStruct":
        out["struct"] = True
        return out
    if isinstance(value, (np.ndarray, np.generic)):
        out["numpy"] = True
    if str(value.dtype).startswith(("key<", "[('float0'")):
        return out
    out["v"] = _numbers(np.asarray(value))
    return out


def _numbers(array):
    """Flat values: integers and booleans exactly, floats in the fewest digits that read back the same."""
    flat = array.ravel()
    if array.dtype.kind == "c":
        half = np.float32 if array.dtype == np.complex64 else np.float64
        return [_float(part) for item in flat for part in (half(item.real), half(item.imag))]
    if array.dtype.kind in "biu" or str(array.dtype).startswith(("int", "uint")):
        return [int(item) for item in flat]
    if array.dtype.kind in "SUO":
        return [str(item) for item in flat]
    return [_float(item) for item in flat]


def _float(item):
    number = float(item)
    return float(str(item)) if math.isfinite(number) else number


def difference(got, want, case):
    """Why an outcome is not the one wanted, in one line; None when they agree."""
    if "error" in want:
        if "error" not in got:
            if case.may_work or want["error"][0] == "NotImplementedError":
                return None
            return f"no error, gave {short(got['value'])}; want {want['error'][0]}"
        if not _same_family(got["error"], want["error"][0]):
            return f"raised {got['message'][:200]!r}; want class {want['error'][0]}"
        if want["error"] == ["Exception"]:
            return None  # JAX itself has only an assertion at some of these
        if got["message"].startswith("AssertionError") or not got["message"].split(": ", 1)[-1].strip():
            return f"raised an error without a message: {got['message']!r}"
        return None
    if "error" in got:
        return f"raised {got['message'][:300]!r}; want {short(want['value'])}"
    if got.get("warned") and not want.get("warned"):
        return "gave a RuntimeWarning"
    return value_difference(got["value"], want["value"], case.rtol)


def _same_family(got, want):
    return want in got or want in ACCIDENTS or (want in ALIKE and not ALIKE.isdisjoint(got))


def value_difference(got, want, rtol=None, where=""):
    """Why one described value is not the other; None when they agree within tolerance."""
    if not isinstance(got, dict) or not isinstance(want, dict):
        return None if got == want else f"{where}: {short(got)} want {short(want)}"
    for tree in ("tuple", "list"):
        if tree in want and tree in got and len(got[tree]) == len(want[tree]):
            pairs = enumerate(zip(got[tree], want[tree]))
            return next(filter(None, (value_difference(g, w, rtol, f"{where}[{i}]") for i, (g, w) in pairs)), None)
    if "dict" in want and "dict" in got and list(got["dict"]) == list(want["dict"]):
        pairs = ((key, got["dict"][key], item) for key, item in want["dict"].items())
        return next(filter(None, (value_difference(g, w, rtol, f"{where}[{k!r}]") for k, g, w in pairs)), None)
    if "v" not in want or "v" not in got:
        return None if got == want else f"{where}: {short(got)} want {short(want)}"
    # Where JAX hands a NumPy argument through as it is, an array of the implementation does as well.
    ignored = {"v"} if got.get("numpy") else {"v", "numpy"}
    kept = [{key: item for key, item in side.items() if key not in ignored} for side in (got, want)]
    if kept[0] != kept[1] or len(got["v"]) != len(want["v"]):
        return f"{where}: {short(got)} want {short(want)}"
    return _numbers_difference(got["v"], want["v"], want.get("dtype", "float64"), rtol, where)


def _numbers_difference(got, want, dtype, rtol, where):
    if got == want:
        return None
    if dtype not in RTOL:
        return f"{where}: {dtype} {short(got)} want {short(want)}"
    rtol = RTOL[dtype] if rtol is None else rtol
    g, w = np.asarray(got, np.float64), np.asarray(want, np.float64)
    atol = ATOL[dtype] * (rtol > 0)
    scale = np.abs(w)
    if dtype.startswith("complex"):
        scale = np.repeat(np.hypot(*scale.reshape(-1, 2).T), 2)
    with np.errstate(all="ignore"):
        close = (np.abs(g - w) <= atol + rtol * scale) | (g == w) | (np.isnan(g) & np.isnan(w))
    close &= np.signbit(g) == np.signbit(w) if rtol == 0 else True
    if close.all():
        return None
    bad = int(np.argmin(close))
    count = int((~close).sum())
    return f"{where}: {dtype} value {bad} is {got[bad]!r} want {want[bad]!r} ({count} of {len(close)} differ)"


def short(value):
    text = repr(value)
    return text if len(text) <= 200 else text[:160] + " … " + text[-30:]
