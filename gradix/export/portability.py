"""Checks that an exported program calls only stable runtime functions that its platforms have."""

from __future__ import annotations

import re

# These functions exist on every platform.
_ANYWHERE = (
    r"Sharding|SPMDFullToShardShape|SPMDShardToFullShape|shape_assertion|stablehlo\.dynamic_[a-z_]+|"
    r"mhlo\.[a-z_]+|ApproxTopK|annotate_device_placement"
)
_ONLY = {
    "cpu": r"lapack_[a-z0-9_]+_ffi|tridiagonal_solve_perturbed_ffi",
    "cuda": r"cu[a-z]+_[a-z0-9_]+",
    "rocm": r"hip[a-z]+_[a-z0-9_]+",
    "tpu": r"Eigh|Qr|Lu|LuDecomposition|Cholesky|ProductOfElementaryHouseholderReflectors",
}
_STABLE = re.compile(f"^(?:{'|'.join([_ANYWHERE, *_ONLY.values()])})$")
_CALL = re.compile(r'call_target_name = "([^"]*)"')
_LAPACK = re.compile(r"^lapack_[sdcz]?([a-z0-9]+?)_ffi$")
_ROUTINES = {
    "getrf": "LU factors (lu, solve, inv, det, expm)",
    "geqrf": "QR factors",
    "orgqr": "QR factors",
    "ungqr": "QR factors",
    "geqp3": "QR factors with pivots",
    "syevd": "eigenvectors of Hermitian matrices (eigh)",
    "heevd": "eigenvectors of Hermitian matrices (eigh)",
    "gesdd": "singular values (svd, pinv, lstsq)",
    "gesvd": "singular values (svd, pinv, lstsq)",
    "geev": "eigenvectors (eig)",
    "gees": "Schur factors",
    "gehrd": "Hessenberg factors",
    "potrf": "Cholesky factors of symbolic size",
    "trsm": "systems with triangular matrices of symbolic size",
    "gtsv": "tridiagonal systems",
}


def check_stable(text: str, allowed: set) -> None:
    """Check that a module calls only functions that later versions of the runtime will have.

    Args:
        text: the module.
        allowed: names of further functions that it may call.

    Raises:
        ValueError: it calls other functions.
    """
    wrong = sorted({t for t in _CALL.findall(text) if t not in allowed and not _STABLE.match(t)})
    if wrong:
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility guarantees: "
            f"{', '.join(wrong)}. "
            "Pass disabled_checks=[DisabledSafetyCheck.custom_call(name)] to export it nevertheless."
        )


def check_platform(calls: set[str], platform: str, name: str, allowed: set) -> None:
    """Check that a program for a platform calls no function that only other platforms have.

    Args:
        calls: the names of the functions that the program calls.
        platform: the platform.
        name: the name of the program.
        allowed: names of functions that it may call anyway.

    Raises:
        NotImplementedError: it calls such a function.
    """
    others = "|".join([names for where, names in _ONLY.items() if where != platform])
    wrong = sorted({c for c in calls - allowed if re.match(f"^(?:{others})$", c)})
    if wrong:
        what = sorted({_what(c) for c in wrong})
        raise NotImplementedError(
            f"'{name}' cannot be exported for the platform '{platform}': it computes {', '.join(what)} by "
            f"{', '.join(wrong)}, which the platform does not have. Export it for 'cpu' only, or write another "
            f"computation for '{platform}' by lax.platform_dependent."
        )


def _what(call: str) -> str:
    found = _LAPACK.match(call)
    return _ROUTINES.get(found[1], found[1]) if found else call
