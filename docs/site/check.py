"""What is wrong with the built site: links and images that lead nowhere, and what a page would load from a network."""

from __future__ import annotations

import html
import re
from functools import cache
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


_TAG = re.compile(r"""<([a-z][a-z0-9]*)((?:\s+[a-zA-Z:@_-][\w:.-]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+))?)+)""")
_ATTRIBUTE = re.compile(r"""([a-zA-Z:@_-][\w:.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_SCRIPT = re.compile(r"(<script\b[^>]*>).*?</script>", re.DOTALL)


class _Page:
    """The anchors of a page, and what it links to and loads.

    It is read by expressions, since a parser in Python takes longer for a site than Sphinx does.
    """

    def __init__(self, text: str):
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        for tag, attributes in _TAG.findall(_SCRIPT.sub(r"\1", text)):
            for key, *values in _ATTRIBUTE.findall(attributes):
                value = html.unescape("".join(values))
                if key in ("id", "name"):
                    self.anchors.add(value)
                if (tag, key) in LOADED:
                    self.loads.append(value)
                elif tag == "a" and key == "href":
                    self.links.append(value)


def problems(folder: Path) -> list[str]:
    """All that is wrong with a site in a folder, a line each."""
    folder = folder.resolve()
    pages = {p: _Page(p.read_text(encoding="utf-8")) for p in sorted(folder.rglob("*.html"))}
    missing = cache(lambda folder, target: _missing(folder, target, pages))
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()

        def why(target, path=path):
            # The bar at the side has the same links on all pages of a folder.
            return missing(path if target[:1] in ("", "#", "?") else path.parent / "page", target)

        for target in page.loads:
            if urlsplit(target).netloc:
                found.append(f"{name}: loads {target} from a network")
            elif not target.startswith("data:") and why(target):
                found.append(f"{name}: loads {target}, {why(target)}")
        found += [f"{name}: links to {t}, {why(t)}" for t in page.links if not _is_outside(t) and why(t)]
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
