// Draws a page of a profile: what can be clicked and searched, the timeline, the memory; graph.js draws the program.
const escaped = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
const percent = share => `${(100 * share).toFixed(1)} %`;
const count = n => Math.round(n).toLocaleString("en-US");
const time = us => us >= 1e6 ? `${(us / 1e6).toFixed(2)} s` : us >= 1000 ? `${(us / 1000).toFixed(2)} ms` : `${us.toFixed(1)} µs`;
const scaled = (n, step, units) => {
  let k = 0;
  while (Math.abs(n) >= step && k < units.length - 1) { n /= step; k++; }
  return `${k ? n.toFixed(1) : Math.round(n)} ${units[k]}`;
};
const bytes = n => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const flops = n => scaled(n, 1000, ["flop", "kflop", "Mflop", "Gflop", "Tflop"]);
const made = (parent, tag, fill = {}, html = "") => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(fill)) element.setAttribute(name, value);
  element.innerHTML = html;
  parent.append(element);
  return element;
};

// The libraries come compressed; several profiles in a notebook unpack them once.
const library = root => window.gradixLibrary ??= (async () => {
  const packed = Uint8Array.from(atob(root.querySelector("script.charts").textContent), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  return window.gradixCharts;
})();

class Page {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    this.wanted = "";
    this.colors = {}; // those of the page that were asked for; others in the dark
    this.drawn = [];
    this.sortable();
    this.links();
    root.querySelector("input").addEventListener("input", event => this.search(event.target.value));
  }

  color(name) { return this.colors[name] ??= getComputedStyle(this.root).getPropertyValue(`--${name}`).trim(); }

  // A colour between that of a box and that of heat.
  heat(share) {
    const parsed = hex => [1, 3, 5].map(k => parseInt(hex.slice(k, k + 2), 16));
    const from = parsed(this.color("paper")), to = this.color("heat").split(",").map(Number), part = .8 * Math.sqrt(share);
    return `rgb(${from.map((c, k) => Math.round(c + (to[k] - c) * part)).join(",")})`;
  }

  place(k) { return k < 0 ? "" : this.data.places[k][0]; }

  sortable() {
    for (const head of this.root.querySelectorAll("th")) head.addEventListener("click", () => {
      const k = head.cellIndex, body = head.closest("table").tBodies[0], up = head.ariaSort !== "ascending";
      const value = row => { const cell = row.cells[k]; return cell.dataset.v ? +cell.dataset.v : cell.textContent; };
      const order = (a, b) => { const x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); };
      for (const other of head.parentNode.cells) other.ariaSort = "none";
      head.ariaSort = up ? "ascending" : "descending";
      body.append(...[...body.rows].sort(order));
    });
  }

  links() {
    for (const link of this.root.querySelectorAll("tr[data-place] .link"))
      link.addEventListener("click", () => this.mark(+link.closest("tr").dataset.place, true));
  }

  // Mark a line wherever it is told of; `go` shows it in the source.
  mark(place, go = false) {
    for (const row of this.root.querySelectorAll("tr.marked")) row.classList.remove("marked");
    if (place < 0) return;
    for (const row of this.root.querySelectorAll(`tr[data-place="${place}"]`)) row.classList.add("marked");
    if (go) this.root.querySelector(`.source tr[data-place="${place}"]`)?.scrollIntoView({block: "center"});
  }

  search(text) {
    this.wanted = text.trim().toLowerCase();
    let found = 0;
    for (const row of this.root.querySelectorAll("[data-text]")) {
      const fits = row.dataset.text.toLowerCase().includes(this.wanted);
      row.classList.toggle("hidden", !fits);
      found += fits && row.closest(".lines") !== null;
    }
    const boxes = this.graph ? this.graph.look() : 0;
    this.graph?.paint();
    this.root.querySelector("output").textContent =
      this.wanted ? `${count(found)} lines, ${count(boxes)} operations of the program` : "";
  }

  async draw() {
    this.charts = await library(this.root);
    if (!this.data.programs.length) return;
    this.graph = new Graph(this, this.root.querySelector(".program-drawn"));
    this.drawn = [this.graph, new Timeline(this, this.root.querySelector(".timeline-drawn")),
      new Memory(this, this.root.querySelector(".memory-drawn"))];
    this.show(0);
    const again = () => { this.colors = {}; this.drawn.forEach(part => part.draw()); };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    let width = this.root.clientWidth;
    new ResizeObserver(() => {
      if (this.root.clientWidth !== width && (width = this.root.clientWidth)) again();
    }).observe(this.root);
    this.root.dataset.drawn = "all";
  }

  show(number) {
    for (const part of this.root.querySelectorAll(".of-program")) part.hidden = +part.dataset.program !== number;
    this.drawn.forEach(part => part.show(number));
  }

  // A chart in a box of a height, with the tooltip of the page.
  chart(box, height) {
    box.style.height = `${height}px`;
    return this.charts.init(box, null, {renderer: "svg"});
  }

  tooltip(formatter, more = {}) {
    return {confine: true, backgroundColor: this.color("paper"), borderColor: this.color("line"), padding: [6, 10],
      textStyle: {color: this.color("ink"), fontSize: 12.5}, transitionDuration: 0, className: "tip", formatter, ...more};
  }

  axis(more) {
    const quiet = this.color("quiet"), line = {lineStyle: {color: this.color("line")}};
    return {type: "value", axisLabel: {color: quiet, fontSize: 11.5}, nameTextStyle: {color: quiet, fontSize: 11.5},
      splitLine: {show: false}, axisLine: {show: true, ...line}, axisTick: {show: false}, ...more};
  }

  slider(more) {
    return {type: "slider", filterMode: "none", height: 18, bottom: 8, borderColor: this.color("line"), brushSelect: false,
      backgroundColor: "transparent", fillerColor: `${this.color("accent")}26`, showDetail: false, showDataShadow: false,
      handleStyle: {color: this.color("paper"), borderColor: this.color("edge")},
      moveHandleStyle: {color: this.color("edge"), opacity: .5}, ...more};
  }
}

// When each operation ran, and on which thread.
class Timeline {
  constructor(page, box) {
    this.page = page;
    const data = page.data, threads = 1 + Math.max(-1, ...data.runs.map(run => run[3]));
    this.rows = [...(data.compiler.length ? ["compiler"] : []), ...Array.from({length: threads}, (_, k) => `thread ${k + 1}`)];
    const first = this.rows.length - threads;
    const begun = Math.min(...[...data.compiler, ...data.runs].map(span => span[1]));
    this.spans = [
      ...data.compiler.map(([name, start, took]) => ({value: [start - begun, start - begun + took, 0], name, place: -1, scope: -1})),
      ...data.runs.map(([name, start, took, thread, place, scope]) =>
        ({value: [start - begun, start - begun + took, first + thread], name, place, scope}))];
    this.whole = data.runs.reduce((sum, run) => sum + run[2], 0) || 1;
    this.cost = new Map();
    for (const run of data.runs) this.cost.set(run[4], (this.cost.get(run[4]) ?? 0) + run[2]);
    this.ranked = [...this.cost.keys()].sort((a, b) => this.cost.get(b) - this.cost.get(a));
    this.height = 26 * this.rows.length + 84;
    this.box = made(box, "div", {class: "chart", role: "img", "aria-label": "When each operation ran; the table below has the sums."});
    const told = "Colours are lines; drag the handles, or press Ctrl and turn the wheel, to look closer.";
    made(box, "p", {class: "quiet"}, told + (data.left_out ? ` The ${count(data.left_out)} shortest operations are left out.` : ""));
  }

  show() { this.draw(); }

  // The costliest lines have colours of their own.
  fill(span) {
    if (span.scope === -1) return this.page.color("compile");
    const rank = this.ranked.indexOf(span.place), dark = matchMedia("(prefers-color-scheme: dark)").matches;
    if (span.place < 0 || rank > 11) return this.page.color("other");
    return `hsl(${(152 + rank * 137.5) % 360}, ${dark ? 42 : 48}%, ${dark ? 52 : 58}%)`;
  }

  draw() {
    const page = this.page, texts = page.data.texts;
    const end = Math.max(...this.spans.map(s => s.value[1]));
    const running = Math.min(...this.spans.filter(s => s.scope >= 0).map(s => s.value[0]));
    this.chart ??= page.chart(this.box, this.height);
    this.chart.resize();
    const share = 100 * running / end;
    this.chart.setOption({
      animation: false,
      grid: {left: 74, right: 16, top: 10, bottom: 62},
      tooltip: page.tooltip(({data}) => `<b class="mono">${escaped(texts[data.name])}</b>`
        + (data.scope >= 0 && texts[data.scope] ? ` ${escaped(texts[data.scope])}` : "")
        + `<br>${time(data.value[1] - data.value[0])}, from ${time(data.value[0])} on`
        + (data.place >= 0 ? `<br>${escaped(page.place(data.place))}<br><code>${escaped(page.data.places[data.place][1])}</code>` : "")),
      xAxis: page.axis({min: 0, max: end, axisLabel: {color: page.color("quiet"), fontSize: 11.5, hideOverlap: true,
        showMaxLabel: false, formatter: at => at >= 1000 || !at ? `${+(at / 1000).toFixed(3)} ms` : `${+at.toFixed(2)} µs`}}),
      yAxis: page.axis({type: "category", data: this.rows, inverse: true, axisLine: {show: false}}),
      dataZoom: [page.slider({start: share < 60 ? 0 : Math.max(share - 1, 0), end: 100}),
        {type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false}],
      series: [{type: "custom", clip: true, encode: {x: [0, 1], y: 2}, data: this.spans, renderItem: (params, api) => {
        const span = this.spans[params.dataIndex], [left, middle] = api.coord([span.value[0], span.value[2]]);
        const right = api.coord([span.value[1], span.value[2]])[0], area = params.coordSys;
        const x = Math.max(left, area.x), width = Math.min(right, area.x + area.width) - x;
        if (right < area.x || left > area.x + area.width) return;
        const words = span.place >= 0 ? page.data.places[span.place][1] : texts[span.name];
        const children = [{type: "rect", shape: {x, y: middle - 9, width: Math.max(width, .6), height: 18, r: Math.min(2, width / 2)},
          style: {fill: this.fill(span)}}];
        if (width > 44) children.push({type: "text", silent: true, style: {text: cut(words, Math.floor((width - 8) / 6.6)), x: x + 5,
          y: middle, fill: "#111", fontSize: 11, verticalAlign: "middle", fontFamily: "ui-monospace, Menlo, Consolas, monospace"}});
        return {type: "group", children};
      }}],
    });
    this.chart.off("click");
    this.chart.on("click", ({data}) => page.mark(data.place));
  }
}

// The bytes in memory while a program runs.
class Memory {
  constructor(page, box) {
    this.page = page;
    this.box = made(box, "div", {class: "chart", role: "img", "aria-label": "Memory while the program runs; the table below has what is alive at the most."});
    const keys = {run: "temporaries", load: "results", eager: "arguments"};
    made(box, "p", {}, Object.entries(keys).map(([kind, name]) => `<span class="key"><i class="${kind}"></i>${name}</span>`).join(""));
    made(box, "p", {class: "quiet"}, "Operations in the order in which they run, those of a loop once; arguments and results have their memory all the time.");
  }

  show(number) { this.memory = this.page.data.programs[number].memory; this.draw(); }

  draw() {
    const page = this.page, texts = page.data.texts, {arguments: given, results, moments, peak} = this.memory;
    this.chart ??= page.chart(this.box, 250);
    this.chart.resize();
    const color = {arguments: page.color("eager"), results: page.color("load"), temporaries: page.color("run")};
    const series = (name, values) => ({type: "line", name, stack: "all", step: "middle", symbol: "none", data: values,
      lineStyle: {width: 0}, areaStyle: {color: color[name], opacity: .75}, itemStyle: {color: color[name]}, emphasis: {disabled: true}});
    const at = moments.findIndex(moment => moment[0] === peak), most = given + results + (moments[at]?.[1] ?? 0);
    const step = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map(k => k * 1024 ** Math.floor(Math.log(most || 1) / Math.log(1024) + .01))
      .find(k => most / k <= 5) ?? most;
    const last = moments.length ? moments[moments.length - 1][0] : 1;
    this.chart.setOption({
      animation: false,
      grid: {left: 74, right: 24, top: 34, bottom: 30},
      tooltip: page.tooltip(items => {
        const moment = moments[items[0].dataIndex];
        const row = (name, value) => `<dt>${name}</dt><dd>${bytes(value)}</dd>`;
        return `<b>${bytes(given + results + moment[1])}</b> at operation ${count(moment[0])}`
          + `<br><code>${escaped(texts[moment[2]])}</code>`
          + (moment[3] >= 0 ? `<br>${escaped(page.place(moment[3]))}<br><code>${escaped(page.data.places[moment[3]][1])}</code>` : "")
          + `<dl>${row("temporaries", moment[1])}${row("results", results)}${row("arguments", given)}</dl>`;
      }, {trigger: "axis", axisPointer: {lineStyle: {color: page.color("edge")}}}),
      xAxis: page.axis({min: 0, max: Math.max(last, 1), minInterval: 1, axisLabel: {color: page.color("quiet"), fontSize: 11.5,
        hideOverlap: true, formatter: k => count(k)}}),
      yAxis: page.axis({min: 0, max: Math.ceil(most * 1.02 / step) * step || 1, interval: step, axisLine: {show: false}, splitLine: {show: true, lineStyle: {color: page.color("line")}},
        axisLabel: {color: page.color("quiet"), fontSize: 11.5, formatter: bytes}}),
      series: [
        series("arguments", moments.map(moment => [moment[0], given])),
        series("results", moments.map(moment => [moment[0], results])),
        {...series("temporaries", moments.map(moment => [moment[0], moment[1]])),
          markLine: at < 0 ? undefined : {silent: true, symbol: "none", animation: false,
            lineStyle: {color: page.color("ink"), type: "dashed", width: 1}, data: [{xAxis: peak}],
            label: {color: page.color("ink"), fontSize: 12, formatter: `peak ${bytes(most)}`, position: "end"}}},
      ],
    }, {replaceMerge: ["series"]});
  }
}

const around = document.currentScript?.closest(".gradix");
for (const root of around ? [around] : document.querySelectorAll(".gradix:not([data-drawn])")) {
  root.dataset.drawn = "tables";
  const page = new Page(root);
  page.draw().catch(error => {
    root.querySelector("output").textContent = `the charts cannot be drawn here: ${error.message}`;
    throw error;
  });
}
