"""Whether this tree is ready to be released, as far as files alone can tell.

    python .ci/release.py [TAG]

Names what does not fit together: the version in the package, in the citation file, at the top of the changelog and in the
tag; the Pythons that the package says it runs on, and those that the workflows try; what the workflows run or read and is
not there; actions of others that are not fixed to one commit. The release workflow calls it before it builds anything.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_USES = re.compile(r"^\s*-?\s*uses: (\S+)", re.MULTILINE)
_COMMIT = re.compile(r"@[0-9a-f]{40}$")


def version(root: Path) -> str:
    """The version that the build reads."""
    text = (root / "gradix/_version.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)[0]


def wrong_versions(root: Path, tag: str | None) -> list[str]:
    """Where another version stands than that of the package; with a tag, whether it is that of a release."""
    own = version(root)
    cited = re.findall(r"^version: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = [] if cited == [own] else [f"CITATION.cff cites {cited}, the package is {own}"]
    first = re.findall(r"^## (\S+?),? (.*)$", log, re.MULTILINE)[0]
    if first[0] != own:
        found.append(f"the changelog begins with {first[0]}, the package is {own}")
    if tag is None:
        return found
    if tag != f"v{own}":
        found.append(f"the tag is {tag}, the package is {own}: tag v{own}")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", first[1]):
        found.append(f"the changelog dates {own} {first[1]!r}: write the day of the release")
    return found


def wrong_pythons(root: Path) -> list[str]:
    """Versions of Python that the package names as its own and a workflow does not try, and the other way round."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classifiers = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    floor = project["requires-python"].removeprefix(">=")
    found = [] if floor == min(classifiers, key=_number) else [f"requires-python is not {classifiers}"]
    for path in sorted((root / ".github/workflows").glob("*.yml")):
        for block in re.findall(r"python-version: \|\n((?:\s+3\.\d+\n)+)", path.read_text(encoding="utf-8")):
            tried = block.split()
            if lacking := [v for v in classifiers if v not in tried]:
                found.append(f"{path.name} does not try Python {', '.join(lacking)}")
    return found


def _number(python: str) -> tuple[int, ...]:
    return tuple(map(int, python.split(".")))


def wrong_steps(root: Path) -> list[str]:
    """Files that workflows run and that are not there, and actions of others that may change under the same name."""
    found = []
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    for path in sorted((root / ".github/workflows").glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        found += [
            f"{path.name}: {action} is not fixed to a commit"
            for action in _USES.findall(text)
            if not _COMMIT.search(action)
        ]
        found += [
            f"{path.name} runs {file}, which is not there"
            for file in re.findall(r"python (\.ci/\S+\.py)", text)
            if not (root / file).exists()
        ]
        for called in re.findall(r"run: make (.+)$", text, re.MULTILINE):
            found += [
                f"{path.name} makes {t}, which the Makefile does not have"
                for t in called.split()
                if "=" not in t and t not in targets
            ]
    return found


def problems(root: Path, tag: str | None = None) -> list[str]:
    """All that does not fit together, a line each."""
    return wrong_versions(root, tag) + wrong_pythons(root) + wrong_steps(root)


if __name__ == "__main__":
    told = problems(ROOT, sys.argv[1] if len(sys.argv) > 1 else None)
    print("\n".join(told) or f"version {version(ROOT)}: nothing found that does not fit together")
    sys.exit(bool(told))
