"""The shapes that calls of LAPACK's functions must have.

The functions trust their callers: with other shapes they write outside of the results' memory.
"""

from __future__ import annotations

import re

from gradix._runtime.xla_artifact import CustomCall

# The matrices and vectors of the operands and of the results, by the letters of their sizes; leading
# axes go before them. A letter has one value in a call: k is the smaller one of m and n, l is n - 1,
# and those that are not sizes of operands are set by `_letters`. A number is `-`.
_SIGNATURES = {
    "getrf": ("mn", "mn k -"),
    "geqrf": ("mn", "mn k"),
    "geqp3": ("mn n", "mn n k"),
    "orgqr": ("mn q", "mn"),
    "ormqr": ("aq q mn", "mn"),
    "potrf": ("nn", "nn -"),
    "syevd": ("nn", "nn n -"),
    "gesdd": ("mn", "mn k mu vn -"),
    "gesvd": ("mn", "mn k mu vn -"),
    "geev": ("nn", "n n nn nn -"),
    "gees": ("nn", "nn nn n n - -"),
    "gehrd": ("nn", "nn l -"),
    "sytrd": ("nn", "nn n l l -"),
    "trsm": ("aa mn", "mn"),
    "gtsv": ("n n n nr", "n n n nr -"),
}
_COMPLEX = {"geev": ("nn", "n nn nn -"), "gees": ("nn", "nn nn n - -")}
_SAME = {"ungqr": "orgqr", "unmqr": "ormqr", "heevd": "syevd", "hetrd": "sytrd"}
_NAME = re.compile(r"lapack_([sdcz])([a-z0-9]+)_ffi")
_LETTERS = {
    "mode": {"gesdd": "ASN", "gesvd": "ASN", "syevd": "VN", "gees": "VN"},
    "compute_left": {"geev": "VN"},
    "compute_right": {"geev": "VN"},
    "sort": {"gees": "N"},
    "side": {"trsm": "LR"},
    "uplo": {"trsm": "LU", "potrf": "LU", "syevd": "LU", "sytrd": "LU"},
    "trans_x": {"trsm": "NTC"},
    "diag": {"trsm": "NU"},
}


def fault(call: CustomCall) -> str:
    """Why a call of a function of LAPACK cannot be trusted; empty if it can."""
    if call.target == "tridiagonal_solve_perturbed_ffi":
        signature, routine = ("n n n nr", "nr"), ""
    else:
        found = _NAME.fullmatch(call.target)
        if found is None:
            return "is not a function of LAPACK that is known here"
        routine = _SAME.get(found[2], found[2])
        table = {**_SIGNATURES, **_COMPLEX} if found[1] in "cz" else _SIGNATURES
        if routine not in table:
            return "is not a function of LAPACK that is known here"
        signature = table[routine]
    if any(s is None or None in s for s in (*call.operands, *call.results)):
        return "has results of symbolic sizes, which cannot be checked"
    for name, by_routine in _LETTERS.items():
        if routine in by_routine and _letter(call, name) not in by_routine[routine]:
            return f"has the wrong option {name}"
    return _shape_fault(call, signature, routine)


def _letter(call: CustomCall, name: str) -> str:
    value = call.config.get(name)
    return chr(value) if type(value) is int and 0 < value < 128 else "?"


def _shape_fault(call: CustomCall, signature: tuple[str, str], routine: str) -> str:
    shapes = [*call.operands, *call.results]
    kinds = [*signature[0].split(), *signature[1].split()]
    if len(call.operands) != len(signature[0].split()) or len(shapes) != len(kinds):
        return "has another number of operands or results than the function"
    lead = shapes[0][: len(shapes[0]) - len(kinds[0])]
    known: dict[str, int] = {}
    for at, (kind, shape) in enumerate(zip(kinds, shapes)):
        letters = kind.replace("-", "")
        if at == len(call.operands):
            _derive(known, call, routine)
        if shape[: len(lead)] != lead or len(shape) != len(lead) + len(letters):
            return f"has the shapes {shapes}, whose ranks and leading axes do not fit each other"
        for letter, size in zip(letters, shape[len(lead) :]):
            if known.setdefault(letter, size) != size:
                return f"has the shapes {shapes}, which do not fit each other"
    return _bound_fault(known, call, routine)


def _derive(known: dict[str, int], call: CustomCall, routine: str) -> None:
    """Set the letters that follow from the operands and options."""
    m, n = known.get("m", known["n"]), known["n"]
    known["k"], known["l"] = min(m, n), max(n - 1, 0)
    if routine in ("gesdd", "gesvd"):
        whole = _letter(call, "mode") == "A"
        known["u"], known["v"] = (m, n) if whole else (min(m, n),) * 2


def _bound_fault(known: dict[str, int], call: CustomCall, routine: str) -> str:
    """Sizes of operands that must fit each other, and numbers among the options."""
    m, n = known.get("m", known["n"]), known["n"]
    fits = True
    if routine == "orgqr":
        fits = known["q"] <= n <= m
    elif routine == "ormqr":
        is_left = call.config.get("left")
        fits = known["a"] == (m if is_left else n) and known["q"] <= known["a"]
    elif routine == "trsm":
        fits = known["a"] == (m if _letter(call, "side") == "L" else n)
    elif routine == "gehrd":
        fits = call.config.get("low") == 1 and call.config.get("high") == n
    return "" if fits else f"has operands of the shapes {list(call.operands)}, which do not fit"
