"""The site in a browser: nothing missing, no errors of scripts, no page wider than the window, and a search that finds.

It needs Sphinx, to make the site (or a site in the folder that the variable GRADIX_SITE names), and Chromium; without one of
these it is skipped.
"""

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
PAGES = [
    "index.html",
    "getting-started.html",
    "transformations.html",
    "gallery.html",
    "options.html",
    "performance.html",
    "faq.html",
    "repository/examples/README.html",
    "reference.html",
    "reference/gradix.numpy.html",
    "reference/gradix.numpy.sum.html",
    "reference/gradix.jit.html",
    "source/gradix/_api/jit/jit.py.html",
]
# Each page in a frame of the given width; what is wrong is sent back to the server.
HARNESS = """<!doctype html><title>harness</title><body></body><script>
const pages = %s, width = %d, told = [];
const wait = ms => new Promise(done => setTimeout(done, ms));
async function look(page) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px"; frame.style.height = "900px"; frame.style.border = 0;
  const loaded = new Promise(done => frame.onload = done);
  frame.src = "/" + page; document.body.append(frame); await loaded;
  const inside = frame.contentDocument, root = inside.documentElement;
  for (const image of inside.images) {
    image.loading = "eager";
    if (image.offsetParent === null) continue;
    for (let i = 0; i < 100 && !image.complete; i++) await wait(100);
    if (!image.naturalWidth) told.push(page + ": " + image.src + " is no picture");
  }
  if (root.scrollWidth > width) told.push(page + ": is " + root.scrollWidth + " wide in a window of " + width);
  if (!page.startsWith("search.html") && !inside.querySelector("h1")) told.push(page + ": has no heading");
  if (page.startsWith("search.html")) {
    for (let i = 0; i < 100 && !inside.querySelector("#search-results li"); i++) await wait(100);
    if (!inside.querySelector("#search-results li")) told.push(page + ": finds nothing");
  }
  frame.remove();
}
(async () => { for (const page of pages) await look(page); fetch("/told", {method: "POST", body: JSON.stringify(told)}); })();
</script>"""
CONSOLE = re.compile(r"CONSOLE.*?\] \"(.*)\", source: (\S+)")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, and the page of the harness; what is asked for and not there is kept."""

    missing: list[str] = []
    harness = ""
    told: queue.Queue

    def do_GET(self):
        if self.path != "/harness.html":
            return super().do_GET()
        body = self.harness.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.told.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def send_error(self, code, message=None, explain=None):
        if not self.path.endswith("favicon.ico"):  # browsers ask for it, whatever a page says
            self.missing.append(self.path)
        super().send_error(code, message, explain)

    def log_message(self, *_):
        pass


def problems(folder: Path, pages: list[str], width: int, profile: Path) -> list[str]:
    """All that a browser finds wrong with the pages of a folder, in a window of a width."""
    told: queue.Queue[str] = queue.Queue()
    served = type("Served", (Handler,), {"missing": [], "harness": HARNESS % (json.dumps(pages), width), "told": told})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(served, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/harness.html"
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        f"--user-data-dir={profile}",
        f"--window-size={max(width, 500)},1000",
        "--enable-logging=stderr",
        "--v=0",
        "--remote-debugging-port=0",
        address,
    ]
    log = profile.with_suffix(".log")
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [CHROMIUM, *options], stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
        ) as browser,
    ):
        try:
            found = json.loads(told.get(timeout=240))
        except queue.Empty:
            raise AssertionError(log.read_text(errors="replace")[-3000:]) from None
        finally:
            os.killpg(browser.pid, signal.SIGTERM)
            server.shutdown()
            server.server_close()
    said = [
        f"{source}: the console says {text}"
        for text, source in CONSOLE.findall(log.read_text(errors="replace"))
        if "favicon.ico" not in source
    ]
    return found + [f"{path} is not there" for path in served.missing] + said


def test_what_is_wrong_in_a_browser_is_found(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/a.html").write_text(
        '<!doctype html><h1>A</h1><img src="no.png"><p style="width:3000px">wide</p>'
        "<script>console.error('oh'); nothing()</script>"
    )
    (tmp_path / "site/b.html").write_text("<!doctype html><p>no heading</p>")
    found = "\n".join(problems(tmp_path / "site", ["a.html", "b.html"], 400, tmp_path / "profile"))
    for part in (
        "no.png is no picture",
        "a.html: is 30",
        "b.html: has no heading",
        "/no.png is not there",
        "the console says oh",
        "nothing is not defined",
    ):
        assert part in found, found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if made := os.environ.get("GRADIX_SITE"):
        return Path(made)
    for needed in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(needed)
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, ROOT / "docs/site", folder], cwd=ROOT, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_site_is_whole_in_a_browser(site, width, tmp_path):
    assert problems(site, [*PAGES, "search.html?q=vmap"], width, tmp_path / "profile") == []
