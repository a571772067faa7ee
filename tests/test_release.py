"""What a release needs of the files fits together, and what does not is named."""

import importlib.util
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_spec = importlib.util.spec_from_file_location("release", ROOT / ".ci/release.py")
release = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(release)

FILES = (
    "gradix/_version.py",
    "CITATION.cff",
    "CHANGELOG.md",
    "pyproject.toml",
    "Makefile",
    ".github/workflows/release.yml",
    ".github/workflows/tests.yml",
    ".ci/package.py",
    ".ci/oldest.py",
    ".ci/about.py",
    ".ci/release.py",
)


@pytest.fixture
def tree(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_this_tree_fits_together():
    assert release.problems(ROOT) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("gradix/_version.py", '__version__ = "', '__version__ = "9.', "CITATION.cff cites"),
        ("CHANGELOG.md", "\n## ", "\n## 7.7.7, unreleased\n\n## ", "the changelog begins with 7.7.7"),
        (
            "pyproject.toml",
            ' :: 3.13"',
            ' :: 3.13",\n    "Programming Language :: Python :: 3.15"',
            "release.yml does not try Python 3.15",
        ),
        ("pyproject.toml", 'requires-python = ">=3.11"', 'requires-python = ">=3.10"', "requires-python is not"),
        (
            ".github/workflows/release.yml",
            "python .ci/package.py",
            "python .ci/pack.py",
            "release.yml runs .ci/pack.py, which is not there",
        ),
        (
            ".github/workflows/tests.yml",
            "make docs PYTHON=python",
            "make site PYTHON=python",
            "tests.yml makes site, which the Makefile does not have",
        ),
        (
            ".github/workflows/tests.yml",
            "uses: actions/checkout@11d5960a326750d5838078e36cf38b85af677262",
            "uses: actions/checkout@v4",
            "tests.yml: actions/checkout@v4 is not fixed to a commit",
        ),
    ],
)
def test_what_does_not_fit_is_named(tree, file, old, new, told):
    text = (tree / file).read_text(encoding="utf-8")
    assert old in text
    (tree / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert any(line.startswith(told) for line in release.problems(tree)), release.problems(tree)


def test_a_tag_is_the_version_and_its_day_is_in_the_changelog(tree):
    own = release.version(tree)
    assert [line.split(":")[0] for line in release.problems(tree, "v0.0.1")][:1] == [
        f"the tag is v0.0.1, the package is {own}"
    ]
    log = tree / "CHANGELOG.md"
    log.write_text(log.read_text(encoding="utf-8").replace("unreleased", "2026-12-01", 1), encoding="utf-8")
    assert release.problems(tree, f"v{own}") == []
    log.write_text(log.read_text(encoding="utf-8").replace("2026-12-01", "soon", 1), encoding="utf-8")
    assert release.problems(tree, f"v{own}") == [f"the changelog dates {own} 'soon': write the day of the release"]
