"""How exact the elementary and special functions are: the greatest error in units in the last place.

python -m benchmarks.numerics                # as plain text
python -m benchmarks.numerics --markdown     # as the page docs/numerics.md
python -m benchmarks.numerics --only igamma  # lines whose function's name begins so
"""

import argparse
import cmath
import sys
import warnings
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from benchmarks.numerics_cases import COMPLEX, CUTS, DENORMAL, REAL

DTYPES = ("float32", "float64")


class Engine:
    """One way to compute: `engine(function, *arrays)` gives a NumPy array, or None where there is no such way.

    Arrays are repeated up to `least` elements, because large arrays may be computed by other formulas.
    """

    def __init__(self, name: str, library: str, eager: str | None, least: int = 1):
        self.name, self.eager, self.least = name, eager, least
        self.api = __import__(library)
        self.lax = __import__(f"{library}.lax", fromlist=["lax"])
        self.numpy = __import__(f"{library}.numpy", fromlist=["numpy"])
        self.api.config.update("jax_enable_x64", True)

    def __call__(self, function, *arrays) -> Any:
        count = len(arrays[0])
        arrays = [self.numpy.asarray(np.resize(a, max(count, self.least))) for a in arrays]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return np.asarray(function(*arrays) if self.eager else self.api.jit(function)(*arrays))[:count]
            except NotImplementedError:
                return None

    def has_rule(self, name: str) -> bool:
        """Whether the host computes this function itself."""
        names = {"betainc": "regularized_incomplete_beta"}
        return not self.eager or getattr(self.lax, f"{names.get(name, name)}_p").host is not None


def engines() -> list[Engine]:
    found = [
        Engine("compiled", "gradix", None),
        Engine("large", "gradix", None, 4096),
        Engine("host", "gradix", "host"),
    ]
    try:
        found.append(Engine("JAX", "jax", None))
    except ImportError:
        print("jax is not installed: its columns are left out", file=sys.stderr)
    return found


# -- real functions ------------------------------------------------------------------------------------------------


def ulp(x, dtype) -> mpf:
    """The unit in the last place of a number in a dtype."""
    info = np.finfo(dtype)
    exponent = max(int(mpmath.floor(mpmath.log(abs(x), 2))) if x else info.minexp, info.minexp)
    return mpf(2) ** (exponent - info.nmant)


def errors(case, dtype, ways) -> list:
    """The greatest error of each engine over the points of a case; None where it does not compute it."""
    rng = np.random.default_rng(0)
    points = [p.astype(dtype) for p in case.points(rng, case.count)]
    exact = [case.exact(*[mpf(float(v)) for v in row]) for row in zip(*points)]
    info, out = np.finfo(dtype), []
    for way in ways:
        got = way(getattr(way.lax, case.name), *points) if way.has_rule(case.name) else None
        if got is None:
            out.append(None)
            continue
        worst = mpf(0)
        for value, want in zip(got, exact):
            if not float(info.tiny) <= abs(want) <= float(info.max):
                # denormal and overflowing results are in tables of their own
                continue
            error = abs(mpf(float(value)) - want) / ulp(want, dtype) if np.isfinite(value) else mpmath.inf
            worst = max(worst, error)
        out.append(float(worst))
    return out


# -- complex functions ---------------------------------------------------------------------------------------------


def complex_errors(name, dtype, ways) -> list:
    """As `errors`, of the complex number as a whole, away from the cuts."""
    rng = np.random.default_rng(1)
    kind = "complex64" if dtype == "float32" else "complex128"
    z = (rng.normal(size=150) + 1j * rng.normal(size=150)).astype(kind)
    function = mpmath.log1p if name == "log1p" else getattr(mpmath, name)
    exact = [function(mpmath.mpc(v.real, v.imag)) for v in z.tolist()]
    out = []
    for way in ways:
        got = way(getattr(way.lax, name), z)
        out.append(
            None
            if got is None
            else max(
                float(abs(mpmath.mpc(g.real, g.imag) - e) / ulp(abs(e), dtype)) for g, e in zip(got.tolist(), exact)
            )
        )
    return out


def on_the_cuts() -> np.ndarray:
    """The axes with zeros of both signs, where the branch depends on the sign of a zero."""
    sizes = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 1e10, -1e10)
    return np.array([complex(a, b) for a in sizes for b in sizes if a == 0 or b == 0])


def misses(name, kind, ways) -> list:
    """At how many of the points on the cuts a part is of the wrong sign, or off by more than 8 units: C99 (annex G) by cmath."""
    z = on_the_cuts().astype(kind)
    want, known = [], []
    for v in z.tolist():
        try:
            want.append(getattr(cmath, name)(v))
            known.append(True)
        except (ValueError, OverflowError, ZeroDivisionError):  # a pole, for which cmath raises
            want.append(0j)
            known.append(False)
    want, known, eps = np.array(want), np.array(known), np.finfo(kind).eps
    out = []
    for way in ways:
        got = way(getattr(way.lax, name), z).astype(complex)
        wrong = np.zeros(len(z), bool)
        for g, w in ((got.real, want.real), (got.imag, want.imag)):
            wrong |= (np.signbit(g) != np.signbit(w)) | ~(
                np.abs(g - w) <= 8 * eps * np.maximum(np.abs(w), np.abs(want))
            )
        out.append(f"{int((wrong & known).sum())} of {int(known.sum())}")
    return out


# -- denormal numbers ----------------------------------------------------------------------------------------------


def denormals(label, function, dtype, ways) -> list:
    """Whether denormal operands count as themselves ("kept") or as zero ("flushed")."""
    info = np.finfo(dtype)
    x = np.array([info.tiny / 4, info.smallest_subnormal * 3], dtype)
    out = []
    for way in ways:
        got = way(lambda v, w=way: function(w.lax, w.numpy, v), x)
        out.append("kept" if (got != 0).all() else "flushed" if not (got != 0).any() else "in part")
    return out


# -- the page ------------------------------------------------------------------------------------------------------


def shown(value) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    return "∞" if value == float("inf") else f"{value:.1f}" if value < 1000 else f"{value:.1e}"


def table(head: list[str], rows: list, ways, markdown: bool) -> None:
    columns = [*head, *[f"{d} {w.name}" for d in DTYPES for w in ways]]
    lines = [[*row[: len(head)], *map(shown, row[len(head) :])] for row in rows]
    if markdown:
        print("| " + " | ".join(columns) + " |\n|" + "---|" * len(head) + "---:|" * (len(columns) - len(head)))
        for line in lines:
            print("| " + " | ".join(line) + " |")
    else:
        widths = [max(map(len, column)) for column in zip(columns, *lines)]
        for line in (columns, *lines):
            print("  ".join(text.ljust(w) for text, w in zip(line, widths)))
    print(flush=True)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print the page of the documentation")
    parser.add_argument("--only", default="", help="only functions whose name begins so")
    options = parser.parse_args(arguments)
    ways, markdown = engines(), options.markdown
    wanted = [c for c in REAL if c.name.startswith(options.only)]
    print(f"{'## ' * markdown}Real functions: the greatest error, in ulp\n")
    table(
        ["function", "operands"],
        [[c.name, c.where, *errors(c, "float32", ways), *errors(c, "float64", ways)] for c in wanted],
        ways,
        markdown,
    )
    if options.only:
        return 0
    # formulas of vectors are of real numbers
    ways = [w for w in ways if w.name != "large"]
    print(f"{'## ' * markdown}Complex functions: the greatest error of the number, in ulp of its size\n")
    table(
        ["function"],
        [[n, *complex_errors(n, "float32", ways), *complex_errors(n, "float64", ways)] for n in COMPLEX],
        ways,
        markdown,
    )
    print(f"{'## ' * markdown}Branch cuts: points on the axes where a part has the wrong sign, or is off\n")
    table(
        ["function"], [[n, *misses(n, "complex64", ways), *misses(n, "complex128", ways)] for n in CUTS], ways, markdown
    )
    print(f"{'## ' * markdown}Denormal operands\n")
    table(
        ["expression"],
        [
            [label, *denormals(label, f, "float32", ways), *denormals(label, f, "float64", ways)]
            for label, f in DENORMAL.items()
        ],
        ways,
        markdown,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
