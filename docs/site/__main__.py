"""`python docs/site [folder]`: make the site of this documentation, and check it. `make docs` calls it."""

import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

import check  # noqa: E402
import public  # noqa: E402
import stage  # noqa: E402


def main(arguments: list[str]) -> int:
    """Lay out the pages, run Sphinx with warnings as errors, and look for what leads nowhere."""
    from sphinx.cmd.build import main as sphinx

    begin = time.monotonic()
    folder = Path(arguments[0] if arguments else "build/docs").resolve()
    pages, site = folder / "pages", folder / "html"
    # All is made anew: what the reference says depends on every docstring, of which Sphinx would not know.
    for made in (pages, site, folder / "doctrees"):
        shutil.rmtree(made, ignore_errors=True)
    stage.stage(pages)
    options = ["-c", str(HERE), "-d", str(folder / "doctrees"), "-W", "--keep-going", "-q", "-j", "auto", "-b", "html"]
    if status := sphinx([*options, str(pages), str(site)]):
        return status
    found = check.problems(site)
    for line in found:
        print(line, file=sys.stderr)
    count = sum(1 for _ in site.rglob("*.html"))
    print(
        f"{count} pages, {len(public.names())} public names, {len(found)} problems, {time.monotonic() - begin:.0f} s: {site}/index.html"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
