"""Turns samples into a table."""

import platform
import statistics
from importlib import metadata
from os import cpu_count

from benchmarks.case import Case

LIBRARIES = ("gradix", "jax", "numpy", "torch")


class Comparison:
    """Samples of every case on every library.

    Attributes:
        samples: seconds, or a message where a case failed, by case name and library.
    """

    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases
        self.samples: dict[str, dict[str, list[float | str]]] = {case.name: {} for case in cases}

    def add(self, library: str, results: dict[str, float | str]) -> None:
        """Add the results of one process."""
        for name, seconds in results.items():
            if name in self.samples:
                self.samples[name].setdefault(library, []).append(seconds)

    def median(self, case: Case, library: str) -> float | None:
        """Median seconds, or None where nothing was measured."""
        seconds = [s for s in self.samples[case.name].get(library, []) if isinstance(s, float)]
        return statistics.median(seconds) if seconds else None

    def ratio(self, case: Case) -> float | None:
        """Seconds on Gradix over seconds on JAX."""
        ours, theirs = self.median(case, "gradix"), self.median(case, "jax")
        return ours / theirs if ours and theirs else None

    def best_ratio(self, case: Case) -> float | None:
        """Seconds on Gradix over seconds on the quickest of the others."""
        ours = self.median(case, "gradix")
        others = [seconds for library in LIBRARIES[1:] if (seconds := self.median(case, library))]
        return ours / min(others) if ours and others else None

    def failures(self) -> list[str]:
        """One line for each message that cases failed with, naming the cases."""
        cases: dict[tuple[str, str], list[str]] = {}
        for name, libraries in self.samples.items():
            for library, seconds in libraries.items():
                for message in dict.fromkeys(s for s in seconds if isinstance(s, str)):
                    cases.setdefault((library, message), []).append(name)
        return [f"{library}: {message} ({'; '.join(names)})" for (library, message), names in cases.items()]


def describe_machine(targets: list[str], rounds: int, clock: str = "wall") -> str:
    """One line about the machine and the versions, on which the figures depend."""
    versions = ", ".join(f"{name} {version(name)}" for name in [*targets, "jaxlib"])
    python = f"Python {platform.python_version()}, {platform.machine()}, {cpu_count()} cores"
    seconds = "" if clock == "wall" else "; processor time of all threads"
    return f"{versions}; {python}; rounds: {rounds}{seconds}"


def version(name: str) -> str:
    """The version of an installed distribution, or its source if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(source tree)"


def rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """The cells of the table, a row per case."""
    result = []
    for case in comparison.cases:
        ratio = comparison.ratio(case)
        verdict = "" if ratio is None else "yes" if ratio <= case.limit else f"NO, {ratio / case.limit:.2f}x"
        times = [microseconds(comparison.median(case, library)) for library in LIBRARIES]
        ratios = ratio_text(ratio), ratio_text(comparison.best_ratio(case))
        result.append((case.group, case.name, *times, *ratios, f"≤ {case.limit:g}", verdict))
    return result


HEADER = ("group", "case", *(f"{name} µs" for name in LIBRARIES), "to jax", "to best", "target", "met?")
LEFT = {HEADER.index(name) for name in ("group", "case", "met?")}


def ratio_text(ratio: float | None) -> str:
    """Two decimals, three below 0.1."""
    return "–" if ratio is None else f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}"


def microseconds(seconds: float | None) -> str:
    """Three significant digits, thousands grouped."""
    if seconds is None:
        return "–"
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def summary(comparison: Comparison) -> str:
    """How many targets are met."""
    measured = [case for case in comparison.cases if comparison.ratio(case) is not None]
    met = sum(comparison.ratio(case) <= case.limit for case in measured)
    return f"{met} of {len(measured)} targets met"


def plain(comparison: Comparison, machine: str) -> str:
    """The table for a terminal, a blank line between groups."""
    table = rows(comparison)
    widths = [max(len(row[i]) for row in [HEADER, *table]) for i in range(len(HEADER))]
    lines, group = [], None
    for row in [HEADER, *table]:
        if row[0] != group:
            lines += [""] if group else []
            group = row[0]
        cells = [c.ljust(w) if i in LEFT else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([machine, "", *lines, "", *comparison.failures(), summary(comparison)])


# Groups of docs/models-performance.md, and what the column of NumPy's forms is called there.
MODELS = {
    "special": "SciPy",
    "densities": "SciPy",
    "samplers": "NumPy",
    "solvers": "SciPy",
    "odes": "SciPy",
    "sparse": "SciPy",
}


def markdown(comparison: Comparison, machine: str) -> str:
    """The tables for the documentation, with a heading of few columns for each group of models."""
    groups = dict.fromkeys(case.group for case in comparison.cases)
    failures = [f"- {line}" for line in comparison.failures()]
    if MODELS.keys() >= groups.keys():
        lines = [line for group in groups for line in [*brief(comparison, group), ""]]
        return "\n".join([*lines, *failures, f"{summary(comparison)}. {machine}."])
    lines = [
        "| " + " | ".join(HEADER) + " |",
        "|" + "".join("---|" if i in LEFT else "--:|" for i in range(len(HEADER))),
    ]
    lines += ["| " + " | ".join(row) + " |" for row in rows(comparison)]
    return "\n".join([*lines, "", *failures, f"{summary(comparison)}. {machine}."])


def brief(comparison: Comparison, group: str) -> list[str]:
    """The lines of one group's table: times on Gradix, JAX and NumPy or SciPy in µs, and the ratio to JAX."""
    lines = [f"| | Gradix | JAX | {MODELS[group]} | to JAX |", "|---|---:|---:|---:|---:|"]
    for case in comparison.cases:
        if case.group == group:
            times = [microseconds(comparison.median(case, name)) for name in LIBRARIES[:3]]
            name = case.name.removeprefix("random ")
            cells = (name, *times, ratio_text(comparison.ratio(case)))
            lines.append("| " + " | ".join(cells) + " |")
    return lines
