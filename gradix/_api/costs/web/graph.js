// The graph of a program, in the page of a profile; page.js has the names that it uses.
const MOST_SHOWN = 300; // boxes of a graph at a time
const FEW = 24; // boxes that a graph begins with
const TALLEST = 720; // the window of a graph
const LEGIBLE = .65; // the scale that a graph begins with at least
const TITLE = 22, PAD = 12, GAP = 18, MARGIN = 14; // of unfolded boxes: the height of the title, the space inside, between and around
const PARENT = 0, KIND = 1, NAME = 2, PLACE = 3, SCOPE = 4, PHASE = 5, SHAPE = 6, CALLS = 7, TIME = 8, FLOPS = 9,
  BYTES = 10, LEFT_OUT = 11, READS = 12;

// A smooth curve along points, as a path: a cubic B-spline.
const curve = points => {
  const mix = (...terms) => terms.reduce(([x, y], [part, p]) => [x + part * p[0], y + part * p[1]], [0, 0]).map(c => c.toFixed(1)).join(" ");
  const last = points.length - 1;
  if (last < 2) return `M${mix([1, points[0]])}L${mix([1, points[last]])}`;
  let path = `M${mix([1, points[0]])}L${mix([5 / 6, points[0]], [1 / 6, points[1]])}`;
  for (let k = 1; k <= last; k++) {
    const [a, b, c] = [points[k - 1], points[k], points[Math.min(k + 1, last)]];
    path += `C${mix([2 / 3, a], [1 / 3, b])} ${mix([1 / 3, a], [2 / 3, b])} ${mix([1 / 6, a], [4 / 6, b], [1 / 6, c])}`;
  }
  return `${path}L${mix([1, points[last]])}`;
};

// The flow of data between the operations of a program; functions, lines, loops, calls and fusions unfold.
class Graph {
  constructor(page, box) {
    this.page = page;
    const tools = made(box, "div", {class: "tools"});
    if (page.data.programs.length > 1) {
      const choice = made(tools, "select", {"aria-label": "program"});
      page.data.programs.forEach((p, k) => made(choice, "option", {value: k}, escaped(p.name)));
      choice.addEventListener("change", () => page.show(+choice.value));
    }
    const button = (text, act, label) => made(tools, "button", {type: "button", ...(label && {"aria-label": label})}, text)
      .addEventListener("click", act);
    button("unfold", () => this.unfoldLevel());
    button("fold all", () => this.foldAll());
    button("−", () => this.zoom(1 / 1.3), "smaller");
    button("+", () => this.zoom(1.3), "larger");
    button("fit", () => this.zoom(0), "show the whole graph");
    this.told = made(tools, "span", {class: "quiet", role: "status"});
    const split = made(box, "div", {class: "split"});
    this.box = made(split, "div", {class: "chart", tabindex: 0, role: "application",
      "aria-label": "The program as a graph. Arrow keys go from box to box, Enter unfolds and folds."});
    this.aside = made(split, "aside", {"aria-live": "polite"});
    this.box.addEventListener("keydown", event => this.key(event));
  }

  show(number) {
    const program = this.page.data.programs[number], texts = this.page.data.texts;
    this.nodes = program.nodes.map(n => ({parent: n[PARENT], kind: texts[n[KIND]], name: texts[n[NAME]], place: n[PLACE],
      scope: texts[n[SCOPE]], phase: texts[n[PHASE]], shape: texts[n[SHAPE]], calls: n[CALLS], time: n[TIME],
      flops: n[FLOPS], bytes: n[BYTES], leftOut: n[LEFT_OUT], reads: n[READS].map(k => texts[k]), inner: [], count: 1}));
    this.edges = program.edges;
    for (let k = this.nodes.length - 1; k >= 0; k--) { // a box comes after the one around it
      const node = this.nodes[k], around = this.nodes[node.parent];
      node.number = k;
      if (!around) continue;
      for (const sum of ["time", "flops", "bytes"]) around[sum] += node[sum];
      if (around.kind === "line" || around.kind === "function") around.calls = Math.max(around.calls, node.calls);
      around.count = (around.inner.length ? around.count : 0) + node.count;
      around.inner.unshift(node);
    }
    this.top = this.nodes.filter(node => node.parent < 0);
    this.whole = this.top.reduce((sum, node) => sum + node.time, 0) || 1;
    this.open = new Set();
    const refused = new Set();
    for (;;) { // the costliest first, as far as it stays legible
      const candidates = this.seen().filter(n => this.folds(n) && ["function", "loop", "branches", "call"].includes(n.kind)
        && n.time > .2 * this.whole && this.seen().length + n.inner.length <= FEW && !refused.has(n));
      if (!candidates.length) break;
      const costliest = candidates.reduce((a, b) => a.time >= b.time ? a : b);
      this.open.add(costliest.number);
      if (this.open.size > 1 && this.layout().width * .5 > (this.box.clientWidth || 800)) {
        this.open.delete(costliest.number);
        refused.add(costliest);
      }
    }
    this.selected = null;
    this.look();
    this.view = null;
    this.draw();
    this.tell(this.top.reduce((a, b) => a.time >= b.time ? a : b, this.top[0]));
  }

  folds(node) { return node.inner.length > 0; }

  // The boxes that are shown and have no shown parts.
  seen(nodes = this.top) {
    return nodes.flatMap(n => this.open.has(n.number) ? this.seen(n.inner) : [n]);
  }

  look() {
    const wanted = this.page.wanted;
    let found = 0;
    for (let k = this.nodes.length - 1; k >= 0; k--) {
      const n = this.nodes[k];
      const own = wanted && `${n.name} ${n.place < 0 ? "" : this.page.data.places[n.place].join(" ")} ${n.scope} ${n.shape} ${n.phase}`.toLowerCase().includes(wanted);
      n.fits = own || n.inner.some(x => x.fits);
      found += own && !n.inner.length;
    }
    return found;
  }

  title(node) {
    if (node.kind === "function") return `${node.name}()`;
    return node.name;
  }

  subtitle(node) {
    const parts = [percent(node.time / this.whole)];
    if (node.kind === "loop") parts.push("loop");
    if (node.inner.length) parts.push(`${count(node.count)} ops`);
    else if (node.kind !== "line") parts.push(node.shape);
    if (node.phase && node.phase !== this.nodes[node.parent]?.phase) parts.push(node.phase);
    return parts.join(" · ");
  }

  toggle(node) {
    if (!this.folds(node)) return;
    const opens = !this.open.has(node.number);
    if (opens && this.seen().length + node.inner.length > MOST_SHOWN) {
      this.refuse();
      return;
    }
    if (opens) this.open.add(node.number); else this.open.delete(node.number);
    this.draw(node);
  }

  refuse() { this.told.textContent = `At most ${MOST_SHOWN} boxes are shown at a time: fold others first.`; }

  // Unfold all boxes that are seen, the costliest first, as far as there is room.
  unfoldLevel() {
    const seen = this.seen();
    let left = MOST_SHOWN - seen.length, refused = false;
    for (const node of seen.filter(n => this.folds(n)).sort((a, b) => b.time - a.time)) {
      if (node.inner.length > left) { refused = true; continue; }
      left -= node.inner.length;
      this.open.add(node.number);
    }
    this.draw();
    if (refused) this.refuse();
  }

  foldAll() { this.open.clear(); this.view = null; this.draw(); }

  // Where all boxes are, level by level: what is in an unfolded box is laid out by itself, and goes with it.
  layout() {
    const levels = this.flows(), at = new Map(), edges = [];
    const level = (nodes, around) => {
      const sizes = new Map(nodes.map(n => [n.number, this.open.has(n.number) ? opened(n) : this.size(n)]));
      return this.packed(nodes, sizes, levels.get(around) ?? new Map());
    };
    const inner = new Map();
    const opened = node => {
      const found = level(node.inner, node.number);
      inner.set(node.number, found);
      return {width: Math.max(found.width + 2 * PAD, 7.3 * (Math.min(this.title(node).length, 20) + this.about(node).length + 4)), height: found.height + TITLE + 2 * PAD};
    };
    const put = ({boxes, lines}, left, top) => {
      for (const [number, box] of boxes) {
        at.set(number, {...box, x: box.x + left, y: box.y + top});
        const parts = inner.get(number);
        if (parts) put(parts, left + box.x - parts.width / 2, top + box.y - box.height / 2 + TITLE + PAD);
      }
      for (const line of lines) edges.push({...line, points: line.points.map(({x, y}) => ({x: x + left, y: y + top}))});
    };
    const whole = level(this.top, -1);
    put(whole, MARGIN, MARGIN);
    return {at, edges, width: whole.width + 2 * MARGIN, height: whole.height + 2 * MARGIN};
  }

  size(node) {
    const width = Math.max(7.3 * Math.min(this.title(node).length, 34), 6.2 * this.subtitle(node).length) + 26;
    return {width: Math.max(width + (this.folds(node) ? 14 : 0), 96), height: 44};
  }

  // The bytes that go between boxes with the same one around them, by the number of that one.
  flows() {
    const paths = Array(this.nodes.length), shown = new Set(this.seen().map(n => n.number));
    const path = number => paths[number] ??= number < 0 ? []
      : [...path(this.nodes[number].parent), number];
    const levels = new Map();
    for (const [from, to, nbytes] of this.edges) {
      const a = path(from), b = path(to);
      let k = 0;
      while (a[k] === b[k] && k < a.length && !shown.has(a[k])) k++;
      if (a[k] === b[k] || a[k] === undefined || b[k] === undefined) continue;
      const around = k ? a[k - 1] : -1, level = levels.get(around) ?? new Map(), key = `${a[k]} ${b[k]}`;
      level.set(key, (level.get(key) ?? 0) + nbytes);
      levels.set(around, level);
    }
    return levels;
  }

  // The place of each box in an order in which few bytes go backwards, by the method of Eades, Lin and Smyth: lines of
  // code run several times, so that the flow between them has cycles.
  ordered(nodes, flow) {
    const left = new Map(nodes.map(n => [n.number, {before: new Map(), after: new Map()}]));
    for (const [key, nbytes] of flow) {
      const [a, b] = key.split(" ").map(Number);
      left.get(a).after.set(b, nbytes);
      left.get(b).before.set(a, nbytes);
    }
    const sum = values => [...values].reduce((a, b) => a + b, 0), first = [], last = [];
    const take = (number, list) => {
      for (const a of left.get(number).before.keys()) left.get(a).after.delete(number);
      for (const b of left.get(number).after.keys()) left.get(b).before.delete(number);
      left.delete(number);
      list.push(number);
    };
    while (left.size) {
      const numbers = [...left.keys()], source = numbers.find(k => !left.get(k).before.size);
      const sink = numbers.findLast(k => !left.get(k).after.size);
      const gain = k => sum(left.get(k).after.values()) - sum(left.get(k).before.values());
      if (source !== undefined) take(source, first);
      else if (sink !== undefined) take(sink, last);
      else take(numbers.reduce((a, b) => gain(a) >= gain(b) ? a : b), first);
    }
    return new Map([...first, ...last.reverse()].map((number, k) => [number, k]));
  }

  // Boxes in layers along the flow; what is not connected stands side by side, in rows.
  packed(nodes, sizes, flow) {
    const order = this.ordered(nodes, flow);
    const joined = new Map(nodes.map(n => [n.number, n.number])); // of connected boxes one stands for all
    const root = k => { while (joined.get(k) !== k) k = joined.get(k); return k; };
    const lines = new Map();
    for (const [key, nbytes] of flow) {
      const [a, b] = key.split(" ").map(Number), back = order.get(a) > order.get(b);
      // What goes backwards is laid out as if it went the other way.
      const [v, w] = back ? [b, a] : [a, b], other = lines.get(`${v} ${w}`);
      lines.set(`${v} ${w}`, {v, w, nbytes: nbytes + (other?.nbytes ?? 0), ends: other ? [true, true] : [back, !back]});
      joined.set(root(a), root(b));
    }
    const groups = new Map();
    for (const n of nodes) {
      const k = root(n.number);
      if (!groups.has(k)) groups.set(k, {nodes: [], lines: []});
      groups.get(k).nodes.push(n);
    }
    for (const line of lines.values()) groups.get(root(line.v)).lines.push(line);
    const parts = [...groups.values()].map(group => this.layered(group, sizes));
    const area = parts.reduce((sum, part) => sum + (part.width + GAP) * (part.height + GAP), 0);
    const most = Math.max(...parts.map(part => part.width), Math.sqrt(2.2 * area), 560);
    const found = {width: 0, height: 0, boxes: new Map(), lines: []};
    let x = 0, y = 0, row = 0;
    for (const part of parts) {
      if (x && x + part.width > most) { x = 0; y += row + GAP; row = 0; }
      for (const [number, box] of part.boxes) found.boxes.set(number, {...box, x: box.x + x, y: box.y + y});
      for (const line of part.lines) found.lines.push({...line, points: line.points.map(p => ({x: p.x + x, y: p.y + y}))});
      found.width = Math.max(found.width, x + part.width);
      found.height = Math.max(found.height, y + part.height);
      x += part.width + GAP;
      row = Math.max(row, part.height);
    }
    return found;
  }

  layered({nodes, lines}, sizes) {
    const {Graph: Layered, layout} = this.page.charts, graph = new Layered();
    graph.setGraph({rankdir: "TB", nodesep: GAP, ranksep: 36, edgesep: 10, ranker: nodes.length > 60 ? "longest-path" : "network-simplex"});
    for (const n of nodes) graph.setNode(n.number, {...sizes.get(n.number)});
    for (const line of lines) graph.setEdge(line.v, line.w, {...line});
    layout(graph);
    const boxes = new Map(nodes.map(n => [n.number, graph.node(String(n.number))]));
    const rows = new Map(); // the height of each row of boxes, which lines pass straight
    for (const {y, height} of boxes.values()) rows.set(Math.round(y), Math.max(rows.get(Math.round(y)) ?? 0, height));
    const passed = ({x, y}) => {
      const half = (rows.get(Math.round(y)) ?? 0) / 2;
      return half ? [-half - 10, -half, half, half + 10].map(dy => ({x, y: y + dy})) : [{x, y}];
    };
    const drawn = graph.edges().map(e => { // lines leave a box below and enter one above
      const edge = graph.edge(e), {points} = edge, last = points.length - 1;
      const end = (number, toward, side) => {
        const {x, y, width, height} = boxes.get(number), reach = width / 2 - 14;
        return {x: Math.min(Math.max(toward.x, x - reach), x + reach), y: y + side * height / 2};
      };
      const from = end(edge.v, points[1], 1), to = end(edge.w, points[last - 1], -1);
      return {...edge, points: [from, {x: from.x, y: from.y + 14}, ...points.slice(1, last).flatMap(passed), {x: to.x, y: to.y - 16}, to]};
    });
    // Lines may pass outside of all boxes.
    const across = drawn.flatMap(line => line.points.map(p => p.x)), left = Math.min(0, ...across.map(x => x - 4));
    for (const box of boxes.values()) box.x -= left;
    for (const line of drawn) line.points = line.points.map(p => ({x: p.x - left, y: p.y}));
    const width = Math.max(graph.graph().width, ...across.map(x => x + 4)) - left;
    return {width, height: graph.graph().height, boxes, lines: drawn};
  }

  draw(kept = null) {
    const page = this.page, old = this.view, oldAt = kept && this.graph && this.center(kept.number);
    const graph = this.layout(), {width: w, height: h} = graph;
    const width = this.box.clientWidth || 800, fits = Math.min(1, width / w, TALLEST / h);
    const scale = old && kept ? old.scale : fits >= LEGIBLE ? fits : Math.max(Math.min(1, width / w), LEGIBLE);
    const height = Math.round(Math.min(Math.max(h * Math.max(fits, scale), 180), TALLEST));
    if (!this.chart) {
      this.chart = page.chart(this.box, height);
      this.chart.on("click", event => this.click(event));
      this.chart.on("datazoom", () => this.read());
    }
    this.box.style.height = `${height}px`;
    this.chart.resize({width, height}); // which draws once more what was there
    this.graph = graph;
    this.window = {width, height};
    // Both axes have the proportions of the window, so that zooming keeps those of the graph.
    const across = Math.max(w, h * width / height, width);
    this.extent = {x: across, y: across * height / width, left: Math.min(0, (w - across) / 2)};
    this.view = {scale, x: w * scale < width ? (w - width / scale) / 2 : 0, y: 0};
    const at = kept && this.center(kept.number);
    if (old && oldAt && at) {
      this.view.x = at[0] - (oldAt[0] - old.x) * old.scale / scale;
      this.view.y = at[1] - (oldAt[1] - old.y) * old.scale / scale;
    } else if (this.top.length) { // begin where most time goes
      const [x, y] = this.center(this.seen().reduce((a, b) => a.time >= b.time ? a : b).number);
      if (w * scale > width) this.view.x = x - width / scale / 2;
      if (y > height / scale - 60) this.view.y = y - height / scale / 2;
    }
    const shown = this.seen().length;
    const hidden = this.nodes.filter(n => n.leftOut).length;
    this.told.textContent = `${count(shown)} boxes; click unfolds, drag moves, Ctrl and the wheel zoom`
      + (hidden ? `; of ${count(hidden)} boxes that cost little the parts are left out` : "");
    this.paint();
  }

  // Where a box is; for the title of an unfolded one, its upper left corner.
  center(number) {
    const at = this.graph.at.get(number);
    if (!at) return null;
    return this.open.has(number) ? [at.x - at.width / 2 + 70, at.y - at.height / 2 + TITLE / 2] : [at.x, at.y];
  }

  // The zoom that shows the view, which stays within the graph.
  zoomed() {
    const {scale} = this.view, {x, y, left} = this.extent, {width, height} = this.window;
    const inside = (at, size, from, all) => Math.min(Math.max(at, from), Math.max(from + all - size, from));
    this.view.x = inside(this.view.x, width / scale, left, x);
    this.view.y = inside(this.view.y, height / scale, 0, y);
    const share = (a, from, all) => 100 * (a - from) / all;
    return [[share(this.view.x, left, x), share(this.view.x + width / scale, left, x)],
      [share(this.view.y, 0, y), share(this.view.y + height / scale, 0, y)]];
  }

  // Take over what the mouse has made of the zoom.
  read() {
    const [x, y] = this.chart.getOption().dataZoom;
    this.view = {scale: this.window.width / (this.extent.x * (x.end - x.start) / 100),
      x: this.extent.left + this.extent.x * x.start / 100, y: this.extent.y * y.start / 100};
  }

  zoom(factor) {
    const {scale, x, y} = this.view, {width, height} = this.window, least = width / this.extent.x;
    const next = factor ? Math.min(Math.max(scale * factor, least), 3) : least;
    this.view = {scale: next, x: x + width / scale / 2 - width / next / 2, y: y + height / scale / 2 - height / next / 2};
    this.paint();
  }

  paint() {
    const page = this.page, graph = this.graph, zoom = this.zoomed();
    const nodes = [], groups = [];
    for (const number of graph.at.keys()) (this.open.has(number) ? groups : nodes).push({value: [0, 0], node: number});
    const depth = n => { let d = 0; for (let at = this.nodes[n]; at.parent >= 0; at = this.nodes[at.parent]) d++; return d; };
    groups.sort((a, b) => depth(a.node) - depth(b.node));
    const edges = graph.edges.map(line => ({value: [0, 0], edge: [line.v, line.w], ...line}));
    const most = Math.max(...edges.map(e => e.nbytes), 1);
    const zooming = {type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, minSpan: 1};
    const paint = draw => (params, api) => draw(params, (x, y) => api.coord([x, y]), api.size([1, 1])[0]);
    this.chart.setOption({
      animation: false,
      grid: {left: 0, right: 0, top: 0, bottom: 0},
      tooltip: page.tooltip(event => this.tip(event.data)),
      xAxis: {type: "value", show: false, min: this.extent.left, max: this.extent.left + this.extent.x},
      yAxis: {type: "value", show: false, min: 0, max: this.extent.y, inverse: true},
      dataZoom: [{...zooming, xAxisIndex: 0, start: zoom[0][0], end: zoom[0][1]},
        {...zooming, yAxisIndex: 0, start: zoom[1][0], end: zoom[1][1]}],
      series: [
        {type: "custom", id: "groups", z: 1, clip: true, data: groups,
          renderItem: paint((params, at, unit) => this.group(groups[params.dataIndex].node, at, unit))},
        {type: "custom", id: "edges", z: 2, clip: true, data: edges,
          renderItem: paint((params, at, unit) => this.edge(edges[params.dataIndex], most, at, unit))},
        {type: "custom", id: "headings", z: 3, clip: true, data: groups,
          renderItem: paint((params, at, unit) => this.heading(groups[params.dataIndex].node, at, unit))},
        {type: "custom", id: "nodes", z: 4, clip: true, data: nodes,
          renderItem: paint((params, at, unit) => this.node(nodes[params.dataIndex].node, at, unit))},
      ],
    }, {replaceMerge: ["series"]});
  }

  // Whether a box is to be seen less, because others are searched for.
  dimmed(...nodes) { return this.page.wanted && !nodes.some(n => this.nodes[n].fits); }

  outline(node) {
    const page = this.page, marked = page.wanted && node.fits;
    return {stroke: page.color(node.number === this.selected ? "accent" : marked ? "mark-line" : "edge"),
      lineWidth: node.number === this.selected || marked ? 2.5 : 1};
  }

  node(number, at, unit) {
    const page = this.page, node = this.nodes[number], {x, y, width, height} = this.graph.at.get(number);
    const [left, top] = at(x - width / 2, y - height / 2), w = width * unit, h = height * unit, ink = page.color("ink");
    const fill = page.heat(node.time / this.whole), opacity = this.dimmed(number) ? .25 : 1, r = 6 * unit;
    const text = (words, dy, size, more) => ({type: "text", silent: true, style: {text: words, x: left + (this.folds(node) ? 24 : 11) * unit,
      y: top + dy * unit, fill: ink, fontSize: size * unit, verticalAlign: "middle", opacity, ...more}});
    const children = [{type: "rect", shape: {x: left, y: top, width: w, height: h, r},
      style: {fill, opacity, ...this.outline(node)}, cursor: "pointer"}];
    if (this.folds(node)) {
      children.unshift({type: "rect", silent: true, shape: {x: left + 4 * unit, y: top + 4 * unit, width: w, height: h, r},
        style: {fill: page.color("card"), opacity, stroke: page.color("edge"), lineWidth: 1}});
      children.push({type: "text", silent: true, style: {text: "▸", x: left + 9 * unit, y: top + h / 2, fill: page.color("quiet"),
        fontSize: 12 * unit, verticalAlign: "middle", opacity}});
    }
    if (unit > .3) children.push(
      text(cut(this.title(node), 34), 15, 12, {fontFamily: "ui-monospace, Menlo, Consolas, monospace"}),
      text(this.subtitle(node), 31, 11, {opacity: .8 * opacity}));
    return {type: "group", children};
  }

  group(number, at, unit) {
    const page = this.page, node = this.nodes[number], {x, y, width, height} = this.graph.at.get(number);
    const [left, top] = at(x - width / 2, y - height / 2), w = width * unit, h = height * unit;
    const {stroke, lineWidth} = this.outline(node);
    return {type: "group", children: [
      {type: "rect", silent: true, shape: {x: left, y: top, width: w, height: h, r: 8 * unit},
        style: {fill: page.color("edge"), opacity: .12}},
      {type: "rect", silent: true, shape: {x: left, y: top, width: w, height: h, r: 8 * unit},
        style: {fill: "none", stroke, lineWidth, ...(node.kind === "loop" && {lineDash: [6, 4]})}},
    ]};
  }

  about(node) { return `  ${percent(node.time / this.whole)}${node.kind === "loop" ? " loop" : ""} ${node.phase}`; }

  // The title of an unfolded box, which stands above what crosses it.
  heading(number, at, unit) {
    const page = this.page, node = this.nodes[number], {x, y, width, height} = this.graph.at.get(number);
    const [left, top] = at(x - width / 2, y - height / 2), w = width * unit;
    const about = this.about(node);
    const words = `▾ ${cut(this.title(node), Math.max(Math.floor(width / 7) - about.length - 3, 8))}${about}`;
    return {type: "group", children: [
      {type: "rect", shape: {x: left, y: top, width: w, height: TITLE * unit, r: [8 * unit, 8 * unit, 0, 0]}, cursor: "pointer",
        style: {fill: page.color("line"), ...this.outline(node)}},
      {type: "text", silent: true, style: {text: words, x: left + 10 * unit, y: top + TITLE / 2 * unit, fill: page.color("ink"),
        fontSize: 11.5 * unit, verticalAlign: "middle", fontFamily: "ui-monospace, Menlo, Consolas, monospace"}},
    ]};
  }

  edge(edge, most, at, unit) {
    const color = this.page.color("edge"), points = edge.points.map(p => at(p.x, p.y)), last = points.length - 1;
    const opacity = this.dimmed(...edge.edge) ? .2 : .9, width = (1 + 3 * Math.sqrt(edge.nbytes / most)) * unit;
    const arrow = (end, before) => {
      const turn = Math.atan2(end[1] - before[1], end[0] - before[0]), size = 6 * unit + width;
      const corner = side => [end[0] - size * Math.cos(turn + side), end[1] - size * Math.sin(turn + side)];
      return {type: "polygon", silent: true, shape: {points: [end, corner(.45), corner(-.45)]}, style: {fill: color, opacity}};
    };
    return {type: "group", children: [
      {type: "path", shape: {pathData: curve(points)}, style: {stroke: color, fill: "none", opacity, lineWidth: width}},
      ...(edge.ends[0] ? [arrow(points[0], points[1])] : []),
      ...(edge.ends[1] ? [arrow(points[last], points[last - 1])] : []),
    ]};
  }

  click(event) {
    if (event.data.edge) return;
    const node = this.nodes[event.data.node];
    this.select(node);
    this.toggle(node);
  }

  select(node) {
    this.selected = node.number;
    this.page.mark(node.place);
    this.tell(node);
    this.paint();
  }

  // What is known of a box, as rows.
  known(node) {
    const rows = [["time", `${time(node.time)}, ${percent(node.time / this.whole)}`]];
    if (node.calls) rows.push(["calls", count(node.calls)]);
    rows.push(["moved", bytes(node.bytes)], ["arithmetic", flops(node.flops)]);
    if (node.time && node.flops) rows.push(["", `${flops(node.flops / node.time * 1e6)}/s`]);
    if (node.inner.length) rows.push(["operations", count(node.count)]);
    if (node.shape && node.kind !== "line") rows.push(["makes", node.shape]);
    if (node.phase) rows.push(["pass", node.phase]);
    if (node.reads.length) rows.push(["reads", node.reads.join(", ")]);
    return rows.map(([k, v]) => `<dt>${k}</dt><dd>${escaped(v)}</dd>`).join("");
  }

  tell(node) {
    if (!node) return;
    const [place, source] = node.place >= 0 ? this.page.data.places[node.place] : ["", ""];
    this.aside.innerHTML = `<h3 class="mono">${escaped(this.title(node))}</h3>`
      + (place ? `<div><button type="button" class="link">${escaped(place)}</button></div>` : "")
      + (source && source !== node.name ? `<code>${escaped(source)}</code>` : "")
      + `<dl>${this.known(node)}</dl>`
      + (node.leftOut ? `<p class="quiet">Its ${count(node.leftOut)} parts are not in this page, which holds the costliest.</p>` : "")
      + (node.scope ? `<p class="quiet mono">${escaped(cut(node.scope, 160))}</p>` : "");
    this.aside.querySelector(".link")?.addEventListener("click", () => this.page.mark(node.place, true));
  }

  tip(data) {
    if (data.edge) {
      const [from, to] = data.edge.map(k => escaped(cut(this.title(this.nodes[k]), 50)));
      const word = data.ends[0] ? data.ends[1] ? "to and from" : "from" : "to";
      return `${bytes(data.nbytes)}<br><code>${from}</code><br>${word} <code>${to}</code>`;
    }
    const node = this.nodes[data.node], place = this.page.place(node.place);
    return `<b class="mono">${escaped(cut(this.title(node), 80))}</b><br>${escaped(place)}<dl>${this.known(node)}</dl>`
      + (this.folds(node) ? `click ${this.open.has(node.number) ? "folds" : "unfolds"} it` : "");
  }

  key(event) {
    const order = [...this.graph.at.keys()].sort((a, b) => {
      const [x, y] = this.center(a), [u, v] = this.center(b);
      return y - v || x - u;
    });
    const at = order.indexOf(this.selected), node = this.nodes[this.selected];
    const step = {ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1}[event.key];
    if (step) this.select(this.nodes[order[at < 0 ? 0 : (at + step + order.length) % order.length]]);
    else if ((event.key === "Enter" || event.key === " ") && node) this.toggle(node);
    else if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 1.3 : 1 / 1.3);
    else return;
    event.preventDefault();
    if (step) { // bring it into the window
      const [x, y] = this.center(this.selected), {width, height} = this.window, {scale} = this.view;
      const near = (from, size, to) => to < from + 60 || to > from + size - 60 ? to - size / 2 : from;
      this.view.x = near(this.view.x, width / scale, x);
      this.view.y = near(this.view.y, height / scale, y);
      this.paint();
    }
  }
}
