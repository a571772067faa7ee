"""The page of a profile: the graph of programs that folds, timeline, memory; in a browser where there is one."""

import base64
import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._api.costs.flow import Flow

HERE = Path(__file__).name
ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "gradix/_api/costs/web"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
X = jnp.eye(128)


def spread(x):
    y = x @ x
    return jnp.tanh(y - y.mean(0))


def walked(x):
    z = spread(x)

    def body(c, _):
        c = jnp.tanh(c @ z) + jnp.sin(c)
        return c, c.sum()

    return lax.scan(body, z, None, length=7)[1].sum()


@pytest.fixture(scope="module")
def taken():
    return gradix.profile(gradix.grad(walked))(X)


def flow_of(p, most=3000):
    (key, found), *_ = p._recording.programs.items()
    return Flow(found.module, p._recording.counted()[key], most)


def named(flow, kind):
    return [n for n in flow.nodes if n.kind == kind]


# -- the graph ----------------------------------------------------------------------------------------


def test_boxes_hold_functions_lines_loops_and_fusions(taken):
    flow = flow_of(taken)
    kinds = {n.kind for n in flow.nodes}
    assert kinds >= {"function", "line", "loop", "operation"}
    assert {"spread", "walked"} <= {n.name for n in named(flow, "function")}
    assert any(n.name == "y = x @ x" for n in flow.nodes)
    for number, n in enumerate(flow.nodes):
        assert n.parent < number  # each box comes after the one around it
    (loop, *_) = [k for k, n in enumerate(flow.nodes) if n.kind == "loop"]
    assert "lax.scan" in flow.nodes[loop].name
    assert any(n.parent == loop for n in flow.nodes)


def test_boxes_sum_to_what_ran(taken):
    flow = flow_of(taken)
    assert sum(n.seconds for n in flow.nodes) == pytest.approx(sum(r.own for r in taken._recording.runs), rel=0.02)
    products = sum(n.flops for n in flow.nodes if n.origin.place is not None and n.name in ("dot_general", "dot"))
    assert products >= 7 * 2 * 128**3


def test_data_flows_through_loops_and_fusions(taken):
    flow = flow_of(taken)
    inner = {n.parent for n in flow.nodes}
    assert flow.edges and all(a != b and nbytes > 0 for (a, b), nbytes in flow.edges.items())
    assert all(a not in inner and b not in inner for a, b in flow.edges)  # between innermost boxes

    def loops(k):
        while k >= 0 and flow.nodes[k].kind != "loop":
            k = flow.nodes[k].parent
        return k

    assert any(loops(a) < 0 <= loops(b) for a, b in flow.edges)  # into a loop
    assert any(loops(b) < 0 <= loops(a) for a, b in flow.edges)  # and out of it
    assert any(n.reads == {0} for n in flow.nodes)


def test_an_operation_reads_what_the_program_says():
    def f(x, y):
        a = jnp.sort(x)
        b = jnp.sort(y)
        return jnp.sort(a @ b)

    flow = flow_of(gradix.profile(f)(X, 2 * X))
    sorts = {n.origin.place.line - f.__code__.co_firstlineno: n for n in flow.nodes if "sort" in n.shape or n.reads}
    assert {k: n.reads for k, n in sorts.items()} == {1: {0}, 2: {1}}
    line = lambda k: flow.nodes[k].origin.place.line - f.__code__.co_firstlineno
    assert {(line(a), line(b)) for a, b in flow.edges if line(a) != line(b)} == {(1, 3), (2, 3)}
    assert all(nbytes >= X.nbytes for nbytes in flow.edges.values())


def test_branches_unfold():
    def f(x):
        return lax.cond(x[0, 0] > 0, lambda x: jnp.sort(x) @ x, lambda x: jnp.sin(x @ x), x)

    flow = flow_of(gradix.profile(f)(X))
    (branches,) = [k for k, n in enumerate(flow.nodes) if n.kind == "branches"]
    assert sum(n.parent == branches for n in flow.nodes) >= 2


def test_large_programs_have_no_more_boxes_than_asked_for(taken):
    whole, small = flow_of(taken), flow_of(taken, 12)
    assert len(small.nodes) < len(whole.nodes)
    assert any(n.left_out for n in small.nodes) and not any(n.left_out for n in whole.nodes)
    assert sum(n.seconds for n in small.nodes) == pytest.approx(sum(n.seconds for n in whole.nodes))
    assert all(a < len(small.nodes) and b < len(small.nodes) for a, b in small.edges)


# -- the page -----------------------------------------------------------------------------------------


def told(page):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.S)[1])


def test_the_page_needs_nothing_else(taken, tmp_path):
    page = taken.to_html()
    packed = re.search(r'class="charts">(.*?)<', page)[1]
    assert gzip.decompress(base64.b64decode(packed)) == (WEB / "charts.min.js").read_bytes()
    assert not re.search(r"https?://|@import|<link|src=", page.replace(packed, ""))
    assert all(part in page for part in (HERE, "y = x @ x", "Timeline", "<details", "prefers-color-scheme: dark"))
    assert len(page) < 700_000
    assert taken._repr_html_() in page
    taken.save(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == page


def test_the_page_tells_the_profile(taken):
    data, p = told(taken.to_html()), taken
    (program,) = data["programs"]
    memory = p.memory()[program["name"]]
    assert program["memory"]["arguments"] + program["memory"]["results"] + max(
        m[1] for m in program["memory"]["moments"]
    ) == pytest.approx(memory.peak, rel=0.1)
    assert program["memory"]["peak"] in [m[0] for m in program["memory"]["moments"]]
    assert len(data["runs"]) == len(p._recording.runs) and data["left_out"] == 0
    assert sum(n[8] for n in program["nodes"]) == pytest.approx(1e6 * sum(r.own for r in p._recording.runs), rel=0.02)
    assert [f"{HERE}:{spread.__code__.co_firstlineno + 1}", "y = x @ x"] in data["places"]
    assert "x" in data["texts"]  # the name of the argument


def test_compilations_are_in_the_timeline():
    with gradix.profile() as p:
        gradix.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((37, 37))).block_until_ready()
    data = told(p.to_html())
    known = [(data["texts"][name], start, took) for name, start, took in data["compiler"]]
    kinds = {name.split()[0] for name, _, _ in known}
    assert "trace" in kinds and kinds & {"compile", "load"}
    assert all(start >= -1e3 and start + took <= 1e6 * p.seconds + 1e3 for _, start, took in known)


def test_source_with_marks_is_shown_as_text():
    f = eval(compile("lambda x: x @ x  # </script><b>&\n", "marks <&>.py", "eval"))
    page = gradix.profile(f)(X).to_html()
    assert "marks <&>" not in page and "marks &lt;&amp;&gt;" in page


def test_the_bundle_is_of_the_versions_that_are_asked_for():
    package = json.loads((ROOT / "charts/package.json").read_text())
    lock = json.loads((ROOT / "charts/package-lock.json").read_text())
    bundle = (WEB / "charts.min.js").read_text(encoding="utf-8")
    assert lock["packages"][""]["dependencies"] == package["dependencies"]
    for name, version in package["dependencies"].items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
        assert f"{name} {version}, " in bundle.partition("*/")[0]
        assert f'"{version}"' in bundle.partition("*/")[2]  # the library's own word
    assert "The Apache Software Foundation" in bundle and "Chris Pettitt" in bundle
    assert "resolved" not in (ROOT / "charts/package-lock.json").read_text()


# -- in a browser -------------------------------------------------------------------------------------

# Steps are written in a page's own words; what they tell is read from the title.
STEPS = """<script>
const told = {}, wait = ms => new Promise(done => setTimeout(done, ms));
const $ = (query, all) => all ? [...document.querySelectorAll(query)] : document.querySelector(query);
const words = () => $(".program .chart svg text", true).map(text => text.textContent);
async function press(text) { // the mouse, on a text of the graph
  const found = $(".program .chart svg text", true).find(t => t.textContent.includes(text));
  if (!found) throw new Error(`no ${text} among ${words()}`);
  const {x, y, width, height} = found.getBoundingClientRect(), at = {clientX: x + width / 2, clientY: y + height / 2};
  for (const kind of ["mousemove", "mousedown", "mouseup", "click"])
    document.elementFromPoint(at.clientX, at.clientY).dispatchEvent(new MouseEvent(kind, {bubbles: true, view: window, ...at}));
  await wait(60);
}
const key = name => $(".program .chart").dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
(async () => {
  for (let k = 0; k < 400 && !$(".gradix[data-drawn=all]"); k++) await wait(25);
  try { %s } catch (error) { told.error = String(error.stack); }
  document.body.append(Object.assign(document.createElement("pre"), {id: "told", textContent: JSON.stringify(told)}));
})();
</script>"""


def in_a_browser(page, steps, tmp_path, *options):
    """What steps in a browser tell of a page; the console stays empty."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    (tmp_path / "p.html").write_text(page.replace("</body>", STEPS % steps + "</body>"), encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1300,4000",
            "--virtual-time-budget=20000",
            *options,
            "--dump-dom",
            f"file://{tmp_path}/p.html",
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "CONSOLE" not in done.stderr, done.stderr[-2000:]
    found = json.loads(re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.S)[1])
    assert "error" not in found, found
    return found


def test_boxes_unfold_and_fold_and_are_found(taken, tmp_path):
    steps = """
      $(".tools button", true).find(b => b.textContent === "fold all").click();
      told.folded = words();
      await press("spread()");
      told.unfolded = words();
      told.aside = $("aside").textContent;
      await press("▾ spread()");
      told.again = words();
      await press("spread()");
      await press("y = x @ x");
      told.marked = $(".source tr.marked").textContent;
      $("input").value = "y = x @ x"; $("input").dispatchEvent(new Event("input"));
      told.output = $("output").textContent;
      told.rows = $(".lines tbody tr:not(.hidden)", true).map(row => row.textContent);
      told.outlined = $(".program .chart svg path[stroke-width='2.5']", true).length;
      $("input").value = ""; $("input").dispatchEvent(new Event("input"));
      const before = $("aside").textContent;
      key("ArrowDown"); told.moved = $("aside").textContent !== before;
      const shown = words().length;
      for (let k = 0; k < 60 && words().length === shown; k++) { key("Enter"); if (words().length === shown) key("ArrowDown"); }
      told.keyed = words().length !== shown;
      told.timeline = $(".timeline svg path, .timeline svg rect", true).length;
      told.memory = $(".memory svg text", true).map(t => t.textContent);
      told.wide = document.documentElement.scrollWidth;
    """
    found = in_a_browser(taken.to_html(), steps, tmp_path)
    assert "spread()" in found["folded"] and "y = x @ x" not in found["folded"]
    assert "y = x @ x" in found["unfolded"] and any("▾ spread()" in text for text in found["unfolded"])
    assert "time" in found["aside"] and "moved" in found["aside"] and HERE in found["aside"]
    assert sorted(found["again"]) == sorted(found["folded"])
    assert "y = x @ x" in found["marked"]
    assert re.match(r"[1-9]\d* lines, [1-9]\d* operations of the program", found["output"])
    assert found["rows"] and all("y = x @ x" in row for row in found["rows"]) and found["outlined"] >= 1
    assert found["moved"] and found["keyed"]
    assert found["timeline"] >= len(taken._recording.runs) and any("peak" in text for text in found["memory"])
    assert found["wide"] <= 1300


@pytest.mark.slow
def test_colours_follow_the_system(taken, tmp_path):
    steps = "told.paper = getComputedStyle($('.gradix')).backgroundColor; told.svg = $('.program svg').outerHTML;"
    page = taken.to_html()
    light = in_a_browser(page, steps, tmp_path)
    dark = in_a_browser(page, steps, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert light["paper"] == "rgb(255, 255, 255)" and dark["paper"] == "rgb(23, 25, 29)"
    assert "#1b1d21" in light["svg"] and "#e4e6ea" in dark["svg"] and "#1b1d21" not in dark["svg"]


@pytest.mark.slow
def test_profiles_in_a_notebook_are_all_drawn(taken, tmp_path):
    other = gradix.profile(lambda x: jnp.sort(x @ x))(X)
    page = f"<!DOCTYPE html><body>{taken._repr_html_()}{other._repr_html_()}</body>"
    steps = """
      for (let k = 0; k < 400 && $(".gradix[data-drawn=all]", true).length < 2; k++) await wait(25);
      told.charts = $(".gradix", true).map(root => root.querySelectorAll(".chart svg").length);
    """
    assert in_a_browser(page, steps, tmp_path)["charts"] == [3, 3]


def test_many_programs_can_be_chosen(tmp_path):
    with gradix.profile() as p:
        a = gradix.jit(lambda x: jnp.sort(x @ x))(X)
        b = gradix.jit(spread)(X)
    page = p.to_html()
    assert a.shape == b.shape and len(told(page)["programs"]) == 2
    assert page.count("class='of-program'") == 2
