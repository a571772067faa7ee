"""Checks that an exported program calls only stable runtime functions that its platforms have."""

from __future__ import annotations

import re
from collections.abc import Callable

from gradix._runtime import xla_artifact, xla_custom_calls
from gradix.export import lapack_calls

# These functions exist on every platform.
_ANYWHERE = (
    r"Sharding|SPMDFullToShardShape|SPMDShardToFullShape|shape_assertion|stablehlo\.dynamic_[a-z_]+|"
    r"mhlo\.(?!custom_call|async|infeed|outfeed|send|recv)[a-z0-9_]+|ApproxTopK|annotate_device_placement|"
    r"LayoutConstraint"
)
_ONLY = {
    "cpu": r"lapack_[a-z0-9_]+_ffi|tridiagonal_solve_perturbed_ffi",
    "cuda": r"cu[a-z]*_[a-z0-9_]+",
    "rocm": r"hip[a-z]*_[a-z0-9_]+",
    "tpu": r"Eigh|Qr|Lu|LuDecomposition|Cholesky|ProductOfElementaryHouseholderReflectors",
}
_STABLE = re.compile(f"^(?:{'|'.join([_ANYWHERE, *_ONLY.values()])})$")
# The options of these calls are addresses in the memory of the process that made them.
_ADDRESSES = re.compile(r".*python.*callback.*|CustomSPMDPartitioning|.*callback_to_host.*", re.IGNORECASE)
_ON_CPU = re.compile(f"^(?:{_ONLY['cpu']})$")
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


# -- programs of files -----------------------------------------------------------------------------


def check_of_file(exported) -> Callable[[list[xla_artifact.CustomCall]], None] | None:
    """A function that checks the custom calls of a program that was read from a file.

    None for programs that were exported in this process, which `check_stable` has checked.
    """
    if exported._allowed_calls is None:
        return None
    name = exported.fun_name
    told = {c.is_custom_call() for c in exported.disabled_safety_checks}
    # A file may say itself that it calls a function of its user's, who registered it here.
    allowed = exported._allowed_calls | (told & xla_custom_calls.of_user)

    def check(calls: list[xla_artifact.CustomCall]) -> None:
        for call in calls:
            if _ADDRESSES.match(call.target):
                raise ValueError(
                    f"the exported function '{name}' was read from a file and calls '{call.target}', with an "
                    "address in the memory of the process that wrote it. Such a call cannot work, and is "
                    "made to harm whoever calls it. Do not use the file."
                )
            if call.target in allowed:
                continue
            why = "is not one of those that files may call" if not _STABLE.match(call.target) else ""
            if _ON_CPU.match(call.target):
                why = lapack_calls.fault(call)
            if why:
                raise ValueError(
                    f"the exported function '{name}' was read from a file, and its call of the runtime's "
                    f"function '{call.target}' {why}. If you trust who wrote the file, pass "
                    f"disabled_checks=[export.DisabledSafetyCheck.custom_call({call.target!r})] to deserialize."
                )

    return check
