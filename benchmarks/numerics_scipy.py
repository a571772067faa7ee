"""How exact `scipy.special` and `scipy.stats` are, and the derivatives of special functions, against mpmath.

python -m benchmarks.numerics_scipy                # as plain text
python -m benchmarks.numerics_scipy --markdown     # as sections of the page docs/numerics.md
python -m benchmarks.numerics_scipy --only hyp     # lines whose function's name begins so
"""

import argparse
import sys
import warnings

import mpmath
import numpy as np
import scipy.special
import scipy.stats
from mpmath import mpf

import gradix
import gradix.scipy.special
import gradix.scipy.stats
from benchmarks.numerics import shown, ulp
from benchmarks.numerics_scipy_cases import DENSITIES, DERIVATIVES, EDGES, VALUES

DTYPES = ("float32", "float64")
LIBRARIES = ("gradix", "scipy")


def prepared(name: str):
    """A library's scipy module, in 64 bits."""
    if name == "scipy":
        return scipy
    gradix.config.update("jax_enable_x64", True)
    return gradix.scipy


def called(library: str, function, points):
    """Values of a function compiled, or by SciPy; None where the library has none."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            if library == "scipy":
                return np.asarray(function(*points))
            return np.asarray(gradix.jit(function)(*points))
        except (NotImplementedError, TypeError, ValueError):
            return None


def worst(got, exact, dtype):
    """The greatest error in ulp, and the row it is in; results that are denormal or too large are left out."""
    info, out, place = np.finfo(dtype), 0.0, 0
    for i, (value, want) in enumerate(zip(got, exact, strict=True)):
        if float(info.tiny) <= abs(want) <= float(info.max):
            away = float(abs(mpf(float(value)) - want) / ulp(want, dtype)) if np.isfinite(value) else float("inf")
            out, place = max((out, place), (away, i))
    return out, place


def errors(case, dtype, verbose: bool) -> list:
    """The greatest error of each library over the points of a case, in ulp."""
    points = [p.astype(dtype) for p in case.points(np.random.default_rng(0), case.count)]
    exact = [mpmath.re(case.exact(*[mpf(float(v)) for v in row])) for row in zip(*points, strict=True)]
    out: list = []
    for library in LIBRARIES:
        module = prepared(library)
        function = case.function(module)
        got = None if function is None else called(library, function, points)
        found = None if got is None else worst(got, exact, dtype)
        out.append(found and found[0])
        if verbose and found and library == "gradix":
            row = [p[found[1]] for p in points]
            print(case.label, dtype, f"{found[0]:.1f} at", *row, file=sys.stderr)
    return out


def derivatives(case, dtype, order: int) -> float | None:
    """The greatest error of the derivative of an order in the last argument, in ulp."""
    points = [p.astype(dtype) for p in case.points(np.random.default_rng(1), min(case.count, 25))]
    last, f = len(points) - 1, case.function(prepared("gradix"))
    for _ in range(order):
        f = gradix.grad(f, last)
    got = called("gradix", gradix.vmap(f), points)
    exact = []
    with mpmath.workdps(60):
        for row in zip(*points, strict=True):
            *fixed, x = [mpf(float(v)) for v in row]
            exact.append(mpmath.re(mpmath.diff(lambda y, fixed=fixed: case.exact(*fixed, y), x, order)))
    return None if got is None else worst(got, exact, dtype)[0]


def edges(name: str, rows) -> list:
    """Where values at zeros, infinities, NaN and poles differ from SciPy's, in words."""
    points = [np.array(column, float) for column in zip(*rows, strict=True)]
    want = np.asarray(called("scipy", getattr(scipy.special, name), points))
    out = []
    for dtype in DTYPES:
        got = called("gradix", getattr(prepared("gradix").special, name), [p.astype(dtype) for p in points])
        equal = np.isclose(got, want, rtol=1e-4, atol=0, equal_nan=True)
        off = [
            f"{name}({', '.join(f'{v:g}' for v in row)}) = {g:g}, not {w:g}"
            for row, g, w, same in zip(rows, got.flat, want.flat, equal.flat, strict=True)
            if not same
        ]
        out.append(f"all {len(rows)} as SciPy" if not off else "; ".join(off))
    return out


def table(head: list[str], rows: list, markdown: bool) -> None:
    """One table, its numbers to the right."""
    lines = [[cell if isinstance(cell, str) else shown(cell) for cell in row] for row in rows]
    if markdown:
        print("| " + " | ".join(head) + " |\n|---|---|" + "---:|" * (len(head) - 2))
        for line in lines:
            print("| " + " | ".join(line) + " |")
    else:
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        for line in (head, *lines):
            print("  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)))
    print(flush=True)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print sections of the page of the documentation")
    parser.add_argument("--only", default="", help="only functions whose name begins so")
    parser.add_argument("--where", action="store_true", help="also tell the operands of the greatest error")
    options = parser.parse_args(arguments)
    mark = "## " * options.markdown
    names = [f"{d} {n}" for d in DTYPES for n in ("Gradix", "SciPy")]
    for title, cases in (
        ("`scipy.special`: the greatest error, in ulp", VALUES),
        ("`scipy.stats`: the greatest error, in ulp", DENSITIES),
    ):
        print(f"{mark}{title}\n")
        table(
            ["function", "operands", *names],
            [
                [c.label, c.where, *[e for d in DTYPES for e in errors(c, d, options.where)]]
                for c in cases
                if c.label.startswith(options.only)
            ],
            options.markdown,
        )
    print(f"{mark}Derivatives in the last argument: the greatest error, in ulp\n")
    table(
        ["function", "operands", *[f"{d}, order {k}" for d in DTYPES for k in (1, 2)]],
        [
            [c.label, c.where, *[derivatives(c, d, k) for d in DTYPES for k in (1, 2)]]
            for c in DERIVATIVES
            if c.label.startswith(options.only)
        ],
        options.markdown,
    )
    print(f"{mark}Zeros, infinities, NaN and poles\n")
    table(
        ["function", "float32", "float64"],
        [[n, *edges(n, rows)] for n, rows in EDGES.items() if n.startswith(options.only)],
        options.markdown,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
