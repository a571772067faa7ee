"""The pages as Sphinx needs them: the map becomes tables of contents, links out of `docs` lead to pages of the site."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import public
import reference

from docs import notebooks

ROOT = public.ROOT
DOCS = ROOT / "docs"
# Pages of the repository that are not in `docs`, and become pages of the site.
OUTSIDE = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "examples/README.md",
    "examples/serving/README.md",
)
MAPS = ("index.md", "design/decisions/README.md")
_FENCED = re.compile(r"^(```|:::).*?^\1$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]+)?\)")


def stage(folder: Path) -> None:
    """Write all pages of the site into a folder."""
    wanted: set[str] = {found[0] for name in public.names().values() if (found := public.source_of(name.value))}
    pages = {p: p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")}
    pages |= {p: f"repository/{name}" for name in OUTSIDE if (p := ROOT / name).exists()}
    made = {path.stem for path in notebooks.write(folder / "notebooks")}
    for path, name in pages.items():
        text = _with_links(path, name, pages, wanted)
        if path.parent == DOCS and path.stem in made:
            title, _, rest = text.partition("\n")
            text = f"{title}\n\n{_download(path.stem, 'This page as a notebook')}\n{rest}"
        if name in MAPS:
            text += _contents(path)
        elif name == "reference.md":
            text += _toctree("", [f"/reference/{module}" for module in public.modules()])
        elif name == "repository/README.md":  # The front page of the site stands for it.
            text = "---\norphan: true\n---\n" + text
        elif name == "repository/examples/README.md":
            programs = [Path(name).stem for name in notebooks.PROGRAMS]
            text += "\nAs notebooks: " + ", ".join([_download(n, n) for n in programs]) + ".\n"
            text += _toctree("", ["/repository/examples/serving/README"])
        reference.write(folder / name, text)
    for picture in (DOCS / "pictures").glob("*.svg"):
        light, dark = _variants(picture.read_text(encoding="utf-8"))
        reference.write(folder / "pictures" / f"{picture.stem}-light.svg", light)
        reference.write(folder / "pictures" / f"{picture.stem}-dark.svg", dark)
    for picture in (DOCS / "pictures").rglob("*.png"):
        target = folder / picture.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, target)
    reference.write_pages(folder / "reference")
    reference.write(folder / "sources.txt", "\n".join(sorted(wanted)) + "\n")


def _download(notebook: str, shown: str) -> str:
    return f"{{download}}`{shown} </notebooks/{notebook}.ipynb>`"


def _variants(picture: str) -> tuple[str, str]:
    """A picture in its light colours, and in its dark ones, since the reader chooses on the page itself."""
    dark = re.search(r"^@media \(prefers-color-scheme: dark\)\{(.*)\}$", picture, re.MULTILINE)
    if dark is None:
        return picture, picture
    return picture.replace(dark[0], ""), picture.replace(dark[0], dark[1])


def _with_links(path: Path, name: str, pages: dict[Path, str], wanted: set[str]) -> str:
    """The text of a page with the links that leave `docs` turned to pages of the site."""
    text = path.read_text(encoding="utf-8")
    up = "../" * name.count("/")

    def link(match: re.Match) -> str:
        image, shown, target, heading = match[1], match[2], match[3], match[4] or ""
        if not target or "://" in target:
            return match[0]
        if image:
            file = (path.parent / target).resolve()
            if file.suffix != ".svg":
                return f"![{shown}]({up}{file.relative_to(DOCS).as_posix()})"
            bare = f"{up}{file.relative_to(DOCS).as_posix().removesuffix('.svg')}"
            return f"![{shown}]({bare}-light.svg){{.only-light}}\n![{shown}]({bare}-dark.svg){{.only-dark}}"
        found = (path.parent / target).resolve()
        if found.is_dir():
            found = next((found / n for n in ("README.md", "__init__.py") if (found / n).exists()), found)
        if found in pages:
            return f"[{shown}]({up}{pages[found]}{heading})"
        wanted.add(found.relative_to(ROOT).as_posix())
        return f'<a href="{up}source/{found.relative_to(ROOT).as_posix()}.html">{_html(shown)}</a>'

    made, last = [], 0
    for fence in _FENCED.finditer(text):
        made += [_LINK.sub(link, text[last : fence.start()]), _block(fence[0])]
        last = fence.end()
    return "".join([*made, _LINK.sub(link, text[last:])])


def _block(fence: str) -> str:
    """A block of code as the site shows it: without blank lines at its end, and commands as what is typed, not as output."""
    return re.sub(r"\A```console$", "```bash", re.sub(r"\n\s*```\Z", "\n```", fence), flags=re.MULTILINE)


def _html(shown: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", shown)


def _contents(path: Path) -> str:
    """Tables of contents, which the bar at the side shows, from the headings and links of a map.

    A page stands in one table only, that of the heading where it is named first; what comes before the headings names
    pages again, or, in a map without headings, names all of them.
    """
    text = path.read_text(encoding="utf-8")
    introduction, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    made, seen = [], set()
    for part in (*parts, f"\n{introduction}"):
        caption, _, body = part.partition("\n")
        named = [m[3] for m in _LINK.finditer(body) if m[3] and not m[1] and "://" not in m[3]]
        entries = [e for t in named if (e := _entry(path, t)) and not (e in seen or seen.add(e))]
        if entries:
            made.append(_toctree(caption, entries))
    return "".join(made)


def _toctree(caption: str, entries: list[str]) -> str:
    title = f":caption: {caption}\n" if caption else ""
    return "\n\n:::{toctree}\n:hidden:\n:maxdepth: 1\n" + title + "\n" + "\n".join(entries) + "\n:::\n"


def _entry(path: Path, target: str) -> str | None:
    """How a table of contents names the page that a link leads to; None for what is not a page."""
    found = (path.parent / target).resolve()
    if found.is_relative_to(DOCS):
        return f"/{found.relative_to(DOCS).as_posix().removesuffix('.md')}" if found.suffix == ".md" else None
    inside = found.relative_to(ROOT).as_posix()
    return f"/repository/{inside.removesuffix('.md')}" if inside in OUTSIDE else None
