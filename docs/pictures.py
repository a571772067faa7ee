"""The pictures of these pages: writes docs/pictures/*.svg, from the tables and programs that they show.

Run it as `python -m docs.pictures`; `--check` tells whether the files are as they were. Each picture has colours for light
and dark pages, chosen by what the reader's system asks for; the site makes one file for each and chooses itself.
"""

import math
import re
import sys
from html import escape
from pathlib import Path

import gradix
import gradix.numpy as jnp

DOCS = Path(__file__).parent
FOLDER = DOCS / "pictures"
LIGHT = {
    "text": "#1f2328",
    "quiet": "#57606a",
    "line": "#d0d7de",
    "one": "#0969da",
    "two": "#8c959f",
    "three": "#bf8700",
    "four": "#1a7f37",
}
DARK = {
    "text": "#e6edf3",
    "quiet": "#9198a1",
    "line": "#3d444d",
    "one": "#4493f8",
    "two": "#767e88",
    "three": "#d29922",
    "four": "#3fb950",
}


def style(colours: dict[str, str]) -> str:
    """The classes of a picture: `text` is for letters, the others fill shapes."""
    filled = "".join(f".{name}{{fill:{value}}}" for name, value in colours.items())
    return filled + f".rule{{stroke:{colours['line']};fill:none}}"


class Picture:
    """A drawing of a given size that shapes and texts are added to."""

    def __init__(self, width: int, height: int, title: str):
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str = "one", opacity: float = 1) -> None:
        clear = f' opacity="{opacity}"' if opacity != 1 else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="2" class="{kind}"{clear}/>'
        )

    def line(self, x: float, y: float, to_x: float, to_y: float) -> None:
        self.parts.append(f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" class="rule"/>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        kind: str = "text",
        anchor: str = "start",
        size: int = 13,
        mono: bool = False,
    ) -> None:
        face = ' font-family="ui-monospace,SFMono-Regular,Menlo,monospace"' if mono else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}" font-size="{size}"{face} '
            f'xml:space="preserve">{escape(text)}</text>'
        )

    def svg(self) -> str:
        """The file's text; the block of dark colours stands in a line of its own, which the site replaces."""
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" '
            f'role="img" font-family="system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif">',
            f"<title>{escape(self.title)}</title>",
            f"<style>{style(LIGHT)}",
            f"@media (prefers-color-scheme: dark){{{style(DARK)}}}",
            "</style>",
            *self.parts,
            "</svg>", "",
        ])  # fmt: skip


# The rows of docs/performance.md that the chart of speed shows, and what it calls them.
SHOWN = {
    "add": "x + y of small arrays",
    ".at[].set": "x.at[i].set(v)",
    "5 operations on each of 20 new shapes": "5 operations on 20 new shapes",
    "grad of a 3-layer MLP, not compiled": "grad of a network, not compiled",
    "vmap, not compiled": "vmap, not compiled",
    "trace their grad": "trace a gradient of 900 operations",
    "import in a new process": "import",
    "call, one array": "call a compiled function",
    "MLP training step": "compiled training step",
    "cumsum, 1M": "running sum of a million",
}


def figures() -> dict[str, tuple[float, float]]:
    """Microseconds of Gradix and of JAX, from the tables of the page of performance."""
    text = (DOCS / "performance.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([\d.,]+) \| ([\d.,]+) \|", text, re.MULTILINE)
    found = {name: (float(ours.replace(",", "")), float(theirs.replace(",", ""))) for name, ours, theirs in rows}
    return {title: found[name] for name, title in SHOWN.items()}


def speed() -> Picture:
    """Bars of time, to JAX's."""
    rows = sorted(figures().items(), key=lambda row: row[1][0] / row[1][1])
    made = Picture(760, 60 + 30 * len(rows), "Time of Gradix, where JAX takes 1; shorter is quicker")
    left, unit = 270, 110.0
    made.text(0, 18, "Time, where JAX takes 1 (shorter is quicker; each step of the scale is ten times)", "quiet")
    for power in range(-3, 1):
        x = left + unit * (power + 4)
        made.line(x, 30, x, 38 + 30 * len(rows))
        made.text(x, 54 + 30 * len(rows), "JAX: 1" if power == 0 else f"{10.0**power:g}", "quiet", "middle", 12)
    for i, (title, (ours, theirs)) in enumerate(rows):
        ratio, y = ours / theirs, 36 + 30 * i
        made.text(left - 12, y + 15, title, "text", "end")
        width = max(unit * (math.log10(ratio) + 4), 4)
        made.box(left, y, width, 20, "one" if ratio < 0.98 else "two")
        made.text(left + width + 6, y + 15, f"{ratio:.2f}" if ratio >= 0.01 else f"{ratio:.1g}", "text", size=12)
    return made


def vmap() -> Picture:
    """What vmap does to axes."""
    made = Picture(700, 230, "vmap adds one axis to the mapped arguments and to the results")
    made.text(0, 18, "dot(a, b): two vectors in, one number out", "quiet")
    made.text(360, 18, "vmap(dot, in_axes=(0, None))(A, b)", "quiet")
    for x, name, kind in ((20, "a", "one"), (150, "b", "three")):
        _grid(made, x, 60, 1, 3, kind)
        made.text(x + 36, 130, f"{name}: (3,)", "text", "middle", mono=True)
    made.text(250, 78, "→", "quiet", "middle", 18)
    _grid(made, 275, 60, 1, 1, "four")
    made.text(287, 130, "()", "text", "middle", mono=True)
    _grid(made, 370, 60, 4, 3, "one")
    made.text(406, 180, "A: (4, 3)", "text", "middle", mono=True)
    made.text(406, 200, "axis 0 is mapped", "quiet", "middle", 12)
    _grid(made, 500, 60, 1, 3, "three")
    made.text(536, 130, "b: (3,)", "text", "middle", mono=True)
    made.text(536, 150, "shared by all", "quiet", "middle", 12)
    made.text(610, 110, "→", "quiet", "middle", 18)
    _grid(made, 640, 60, 4, 1, "four")
    made.text(652, 180, "(4,)", "text", "middle", mono=True)
    made.text(652, 200, "out_axes=0", "quiet", "middle", 12)
    return made


def _grid(made: Picture, x: float, y: float, rows: int, columns: int, kind: str) -> None:
    for i in range(rows):
        for j in range(columns):
            made.box(x + 25 * j, y + 25 * i, 22, 22, kind, 1 - 0.12 * i)


def sharding() -> Picture:
    """A matrix over four devices, in three ways."""
    made = Picture(700, 210, "An array of 4 x 4 elements divided over a mesh of 2 x 2 devices in three ways")
    kinds = ("one", "three", "four", "two")
    ways = (
        ('P("x", "y")', "rows over x, columns over y", lambda i, j: (i // 2 * 2 + j // 2,)),
        ('P("x", None)', "rows over x; a copy for each y", lambda i, j: (i // 2 * 2, i // 2 * 2 + 1)),
        ('P(None, ("x", "y"))', "columns over both axes", lambda i, j: (j,)),
    )
    for k, (spec, said, devices) in enumerate(ways):
        x = 20 + 240 * k
        made.text(x, 18, spec, "text", mono=True)
        made.text(x, 36, said, "quiet", size=12)
        for i in range(4):
            for j in range(4):
                holders = devices(i, j)
                for n, device in enumerate(holders):
                    made.box(x + 27 * j + 24 * n / len(holders), 52 + 27 * i, 24 / len(holders), 24, kinds[device])
    made.text(20, 196, "devices of the mesh:", "quiet", size=12)
    for d, kind in enumerate(kinds):
        made.box(150 + 130 * d, 184, 14, 14, kind)
        made.text(170 + 130 * d, 196, f"x={d // 2}, y={d % 2}", "text", size=12, mono=True)
    return made


def calls() -> Picture:
    """What happens in the calls of a jitted function."""
    made = Picture(
        700,
        190,
        "The first call traces, lowers, compiles and runs; later ones run; a second process loads what was compiled",
    )
    rows = (
        (
            "first call",
            (("trace", 70, "three"), ("lower", 50, "four"), ("XLA compiles", 260, "two"), ("run", 40, "one")),
        ),
        ("further calls", (("run", 40, "one"),)),
        (
            "a new shape",
            (("trace", 70, "three"), ("lower", 50, "four"), ("XLA compiles", 260, "two"), ("run", 40, "one")),
        ),
        (
            "in a second process",
            (("trace", 70, "three"), ("lower", 50, "four"), ("load", 50, "one"), ("run", 40, "one")),
        ),
    )
    for i, (title, steps) in enumerate(rows):
        y, x = 12 + 44 * i, 150.0
        made.text(140, y + 20, title, "text", "end")
        for step, width, kind in steps:
            made.box(x, y, width - 3, 28, kind, 0.35)
            made.text(x + width / 2 - 1, y + 19, step, "text", "middle", 12)
            x += width
    made.text(150, 186, "the widths are no measurements", "quiet", size=11)
    return made


def program() -> Picture:
    """A function, and the program that its trace records."""
    source = ["def f(x, w):", "    y = jnp.tanh(x @ w)", "    return jnp.sum(y ** 2)"]

    def f(x, w):
        y = jnp.tanh(x @ w)
        return jnp.sum(y**2)

    recorded = str(gradix.make_jaxpr(f)(jnp.ones((4, 3)), jnp.ones((3, 2)))).splitlines()
    made = Picture(
        900, 60 + 20 * max(len(source), len(recorded)), "A function beside the program that tracing it records"
    )
    made.text(0, 18, "what you write", "quiet")
    made.text(330, 18, "what is recorded for float32[4,3] and float32[3,2]", "quiet")
    for x, lines in ((0, source), (330, recorded)):
        for i, line in enumerate(lines):
            made.text(x, 44 + 20 * i, line, "text", size=12, mono=True)
    return made


PICTURES = {"speed": speed, "vmap": vmap, "sharding": sharding, "calls": calls, "program": program}


def main(arguments: list[str]) -> int | str:
    FOLDER.mkdir(exist_ok=True)
    texts = {FOLDER / f"{name}.svg": make().svg() for name, make in PICTURES.items()}
    if arguments == ["--check"]:
        other = [p.name for p, text in texts.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
        return f"python -m docs.pictures makes these anew: {', '.join(other)}" if other else 0
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
