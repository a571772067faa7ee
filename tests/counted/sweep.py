"""Public functions over an axis whose size values decide, each in all forms of a call that it takes.

`python -m tests.counted.sweep [MODULE ...]` prints a line for each function that is refused or wrong, and the totals.
"""

import importlib
import inspect
import sys

import numpy as np

import gradix
import gradix.numpy as jnp

MODULES = {
    n: importlib.import_module(f"gradix.{n}")
    for n in ("numpy", "numpy.linalg", "numpy.fft", "nn", "ops", "scipy.special", "scipy.linalg", "scipy.signal")
}
X = np.array([0.7, -0.4, 0.9, -0.6, 1.2, 0.3], np.float32)
MASKS = {"some": X > 0, "none": X > 9, "one": X > 1, "all": X > -9}
# What takes no array, reads files or prints, or returns what is no array; `ix_` returns integers for no elements of any type.
LEFT_OUT = {
    "save",
    "savez",
    "load",
    "fromfile",
    "fromfunction",
    "frombuffer",
    "fromiter",
    "fromstring",
    "from_dlpack",
    "vectorize",
    "frompyfunc",
    "piecewise",
    "apply_along_axis",
    "apply_over_axes",
    "printoptions",
    "set_printoptions",
    "get_printoptions",
    "svd",  # of singular vectors beyond the rank, any that are orthonormal are right
    "array_repr",
    "array_str",
    "shape",
    "ndim",
    "size",
    "einsum_path",
    "ix_",
    "promote_types",
    "result_type",
    "can_cast",
    "issubdtype",
    "iinfo",
    "finfo",
}
_MATRIX = np.array([1.0, 2.5, -4.0], np.float32)
FORMS = {
    "x": lambda f: lambda v: f(v),
    "x, x": lambda f: lambda v: f(v, v + 1),
    "(x, x)": lambda f: lambda v: f((v, v + 1)),
    "x, 2": lambda f: lambda v: f(v, 2),
    "x, 1.5": lambda f: lambda v: f(v, jnp.float32(1.5)),
    "matrix": lambda f: lambda v: f(jnp.sin(v[:, None] * _MATRIX)),
    "matrix, axis 0": lambda f: lambda v: f(jnp.sin(v[:, None] * _MATRIX), axis=0),
    "square": lambda f: lambda v: f(jnp.outer(v, v) + 2 * jnp.eye(v.shape[0])),
    "integers": lambda f: lambda v: f((v * 4).astype(int)),
    "integers, integers": lambda f: lambda v: f((v * 4).astype(int), (v * 4).astype(int) + 1),
    "mask": lambda f: lambda v: f(v > 0.5),
    "mask, x, x": lambda f: lambda v: f(v > 0.5, v, 0 * v),
}


def functions(modules=MODULES) -> list[str]:
    """The names of the public functions, with those of their modules."""
    found = []
    for m in modules:
        for name in sorted(set(dir(MODULES[m]))):
            f = None if name.startswith("_") or name in LEFT_OUT else getattr(MODULES[m], name)
            if callable(f) and not inspect.isclass(f) and not inspect.ismodule(f):
                found.append(f"{m}.{name}")
    return found


def outcome(name: str, masks=MASKS) -> dict[str, str]:
    """For each form of a call that works eagerly: "equal", "equal with gradient", "refused: why" or "wrong: what"."""
    module, _, short = name.rpartition(".")
    f = getattr(MODULES[module], short)
    return {form: out for form, made in FORMS.items() if (out := _outcome(made(f), masks)) is not None}


def _leaves(tree) -> list:
    return [np.asarray(x) for x in gradix.tree.leaves(tree)]


def _eager(g, mask):
    try:
        return _leaves(g(jnp.asarray(X[mask])))
    except Exception:  # noqa: BLE001  (the function does not take this form or size)
        return None


def _outcome(g, masks) -> str | None:
    if not _eager(g, MASKS["some"]):
        return None
    compiled = gradix.jit(lambda x, m: g(x[m]))
    for name, mask in masks.items():
        want = _eager(g, mask)
        if want is None:
            continue
        try:
            have = _leaves(compiled(np.where(mask, X, np.nan).astype(np.float32), mask))
        except Exception as e:  # noqa: BLE001
            return f"refused: {type(e).__name__} {str(e).splitlines()[0][:100]}"
        # beside the host's result that of a compiled program, which may round otherwise
        if not _are_same(want, have) and not _are_same(_leaves(gradix.jit(g)(jnp.asarray(X[mask]))), have):
            return f"wrong: of {name} elements it is {have}, should be {want}"
    if any(v.dtype.kind != "f" for v in _eager(g, MASKS["some"])):
        return "equal"
    total = lambda x: sum(jnp.sum(jnp.sin(v)) for v in gradix.tree.leaves(g(x)))  # noqa: E731
    mask = MASKS["some"]
    try:
        want = np.zeros_like(X)
        want[mask] = gradix.grad(total)(jnp.asarray(X[mask]))
        have = np.asarray(gradix.jit(gradix.grad(lambda x, m: total(x[m])))(X, mask))
    except Exception:  # noqa: BLE001  (no derivative, or one that is refused)
        return "equal"
    return "equal with gradient" if _are_same([want], [have]) else f"wrong: the gradient is {have}, should be {want}"


def _are_same(want, have) -> bool:
    return len(want) == len(have) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and (
            np.array_equal(a, b)
            if a.dtype.kind not in "fc"
            else np.allclose(a, b, rtol=2e-3, atol=2e-4, equal_nan=True)
        )
        for a, b in zip(want, have)
    )


def main(modules) -> None:
    """Print what is refused and wrong, and the totals."""
    totals: dict = {"equal": 0, "equal with gradient": 0, "refused": 0, "wrong": 0, "not called": 0}
    for name in functions(modules or MODULES):
        found = outcome(name, {k: MASKS[k] for k in ("some", "none", "one")})
        kinds = [v.partition(":")[0] for v in found.values()]
        kind = next((k for k in ("wrong", "equal with gradient", "equal", "refused") if k in kinds), "not called")
        totals[kind] += 1
        for form, v in found.items():
            if v.startswith(("wrong", "refused")):
                print(f"{name} ({form}) {v}".replace("\n", " ")[:300], flush=True)
    print(totals)


if __name__ == "__main__":
    main(sys.argv[1:])
