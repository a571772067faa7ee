"""What is wrong with the built site: links and images that lead nowhere, and what a page would load from a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

# Attributes from which a browser loads something as soon as it shows the page.
LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "srcset"),
    ("object", "data"),
    ("video", "src"),
}
_CSS_ADDRESS = re.compile(r"""(?:url\(|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class _Page(HTMLParser):
    """The anchors of a page, and what it links to and loads."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if value is None:
                continue
            if key in ("id", "name"):
                self.anchors.add(value)
            if (tag, key) in LOADED:
                self.loads.append(value)
            elif tag == "a" and key == "href":
                self.links.append(value)


def problems(folder: Path) -> list[str]:
    """All that is wrong with a site in a folder, a line each."""
    pages = {p.resolve(): _Page(p.read_text(encoding="utf-8")) for p in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve()).as_posix()
        for target in page.loads:
            if urlsplit(target).netloc:
                found.append(f"{name}: loads {target} from a network")
            elif not target.startswith("data:") and (why := _missing(path, target, pages)):
                found.append(f"{name}: loads {target}, {why}")
        found += [
            f"{name}: links to {t}, {why}"
            for t in page.links
            if not _is_outside(t) and (why := _missing(path, t, pages))
        ]
    for style in sorted(folder.rglob("*.css")):
        found += [
            f"{style.name}: loads {a} from a network" for a in _CSS_ADDRESS.findall(style.read_text(encoding="utf-8"))
        ]
    return found


def _is_outside(target: str) -> bool:
    return bool(urlsplit(target).scheme or urlsplit(target).netloc)


def _missing(path: Path, target: str, pages: dict[Path, _Page]) -> str:
    """Why a link from a page leads nowhere, or nothing."""
    address, anchor = urldefrag(target)
    address = urlsplit(address).path
    found = (path.parent / unquote(address)).resolve() if address else path
    if not found.exists():
        return "which is not there"
    if anchor and found in pages and unquote(anchor) not in pages[found].anchors:
        return "whose page has no such place"
    return ""
