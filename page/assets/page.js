"use strict";
// Everything that stems from a model reaches the page as text nodes or canvas text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const LAID_BY_DAGRE = 700;
const HEIGHT = 30, ROW = 58, GAP = 16;

function make(tag, text, cls) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = String(text);
  if (cls) made.className = cls;
  return made;
}

function table(id, heads, rows) {
  const made = make("table"), head = make("tr"), numeric = heads.map((_, i) => rows.length && typeof rows[0][i] === "number");
  heads.forEach((one, i) => { const cell = make("th", one, numeric[i] ? "n" : ""); cell.scope = "col"; head.append(cell); });
  made.append(head);
  for (const row of rows) {
    const line = make("tr");
    row.forEach((one, i) => { const cell = make("td", null, numeric[i] ? "n" : ""); cell.append(one instanceof Node ? one : typeof one === "number" ? one.toLocaleString("en", { maximumSignificantDigits: 6 }) : one ?? ""); line.append(cell); });
    made.append(line);
  }
  by(id).append(rows.length ? made : make("p", "None.", "faint"));
  by(id).tabIndex = 0;
}

// Layers by longest path, ordered by where their sources stand: linear in time, for graphs too large for dagre.
function layers(nodes, edges) {
  const layer = nodes.map(() => 0), above = nodes.map(() => []), rows = [];
  for (const [tail, head] of edges) above[head].push(tail);
  nodes.forEach((_, i) => { for (const tail of above[i]) layer[i] = Math.max(layer[i], layer[tail] + 1); });
  layer.forEach((level, i) => (rows[level] ??= []).push(i));
  rows.forEach((row, level) => {
    const want = new Map(row.map((i) => [i, above[i].length ? above[i].reduce((sum, t) => sum + nodes[t].x, 0) / above[i].length : 0]));
    row.sort((a, b) => want.get(a) - want.get(b));
    let at = -Infinity, shift = 0;
    for (const i of row) { nodes[i].x = Math.max(want.get(i), at + nodes[i].w / 2); at = nodes[i].x + nodes[i].w / 2 + GAP; shift += want.get(i) - nodes[i].x; nodes[i].y = level * ROW; }
    for (const i of row) nodes[i].x += shift / row.length;
  });
}

function place(graph) {
  const { nodes, edges } = graph;
  for (const node of nodes) { node.w = Math.max(node.op.length * 7 + 16, 40); node.x = node.y = 0; }
  if (nodes.length > LAID_BY_DAGRE) return layers(nodes, edges);
  const laid = new dagre.graphlib.Graph({ multigraph: true });
  laid.setGraph({ ranksep: 26, nodesep: GAP });
  laid.setDefaultEdgeLabel(() => ({}));
  nodes.forEach((node, i) => laid.setNode(String(i), { width: node.w, height: HEIGHT }));
  edges.forEach(([tail, head], i) => laid.setEdge(String(tail), String(head), {}, String(i)));
  try { dagre.layout(laid); } catch { return layers(nodes, edges); }
  nodes.forEach((node, i) => Object.assign(node, { x: laid.node(String(i)).x, y: laid.node(String(i)).y }));
  edges.forEach((edge, i) => { edge.points = laid.edge(String(edge[0]), String(edge[1]), String(i)).points; });
}

class Pane {
  constructor(graph, title) {
    Object.assign(this, { graph, chosen: -1, hits: new Set(), scale: 1, x: 0, y: 0 });
    place(graph);
    this.next = graph.nodes.map(() => []); this.last = graph.nodes.map(() => []);
    for (const [tail, head] of graph.edges) { this.next[tail].push(head); this.last[head].push(tail); }
    const figure = make("figure");
    this.canvas = make("canvas", null, "graph");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `Graph ${title}, ${graph.nodes.length} nodes`);
    figure.append(make("figcaption", `${title}: ${graph.nodes.length.toLocaleString("en")} nodes${graph.more ? `, ${graph.more.toLocaleString("en")} more are not drawn` : ""}`), this.canvas);
    by("panes").append(figure);
    this.listen();
    new ResizeObserver(() => { this.resize(); }).observe(this.canvas);
  }
  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth; this.height = this.canvas.clientHeight;
    this.canvas.width = this.width * ratio; this.canvas.height = this.height * ratio;
    if (!this.fitted) { this.fitted = true; this.start(); }
    this.draw();
  }
  bounds() {
    let [left, right, top, bottom] = [0, 1, 0, 1];
    for (const n of this.graph.nodes) { left = Math.min(left, n.x - n.w / 2); right = Math.max(right, n.x + n.w / 2); top = Math.min(top, n.y - HEIGHT); bottom = Math.max(bottom, n.y + HEIGHT); }
    return { left, right, top, bottom };
  }
  start() { // readable from the top; the whole is one key away
    const first = this.graph.nodes.reduce((best, n) => !best || n.y < best.y ? n : best, null);
    this.scale = 1; this.x = first ? this.width / 2 - first.x : 0; this.y = first ? 40 - first.y : 0;
  }
  fit() {
    const b = this.bounds();
    this.scale = Math.min(1.5, this.width / (b.right - b.left + 20), this.height / (b.bottom - b.top + 20));
    this.x = this.width / 2 - this.scale * (b.left + b.right) / 2; this.y = this.height / 2 - this.scale * (b.top + b.bottom) / 2;
    this.draw();
  }
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(4, Math.max(0.002, this.scale * factor));
    this.x = x - (x - this.x) * scale / this.scale; this.y = y - (y - this.y) * scale / this.scale; this.scale = scale;
    this.draw();
  }
  show(i) {
    this.chosen = i;
    const n = this.graph.nodes[i];
    if (n) { this.scale = Math.max(this.scale, 0.7); this.x = this.width / 2 - n.x * this.scale; this.y = this.height / 2 - n.y * this.scale; }
    this.draw();
  }
  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.paint(); });
  }
  paint() {
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`);
    const ink = colour("ink"), line = colour("faint"), accent = colour("accent"), cut = colour("cut");
    const fills = { target: colour("target"), source: colour("source"), either: colour("either"), cut, refused: colour("refused") };
    const ratio = window.devicePixelRatio || 1, c = this.canvas.getContext("2d"), { nodes, edges } = this.graph, s = this.scale;
    c.setTransform(ratio, 0, 0, ratio, 0, 0); c.clearRect(0, 0, this.width, this.height);
    c.translate(this.x, this.y); c.scale(s, s);
    const [left, right, top, bottom] = [-this.x / s, (this.width - this.x) / s, -this.y / s, (this.height - this.y) / s];
    c.lineWidth = Math.min(1 / s, 1.2);
    for (const edge of edges) {
      const [tail, head] = edge, a = nodes[tail], b = nodes[head];
      if (Math.max(a.y, b.y) < top || Math.min(a.y, b.y) > bottom || Math.max(a.x, b.x) < left || Math.min(a.x, b.x) > right) continue;
      const near = tail === this.chosen || head === this.chosen;
      c.strokeStyle = near ? accent : a.side === "cut" || b.side === "cut" ? cut : line;
      const [y, z] = [a.y + HEIGHT / 2, b.y - HEIGHT / 2];
      const bends = edge.points?.slice(1, -1) ?? [];
      c.beginPath(); c.moveTo(a.x, y);
      if (bends.length > 1) { for (const p of bends) c.lineTo(p.x, p.y); c.lineTo(b.x, z); c.stroke(); }
      else { c.bezierCurveTo(a.x, (y + z) / 2, b.x, (y + z) / 2, b.x, z); c.stroke(); }
      if (s > 0.35) { c.fillStyle = c.strokeStyle; c.beginPath(); c.moveTo(b.x, z); c.lineTo(b.x - 4, z - 7); c.lineTo(b.x + 4, z - 7); c.fill(); }
    }
    c.font = "12px system-ui, sans-serif"; c.textAlign = "center"; c.textBaseline = "middle";
    nodes.forEach((n, i) => {
      if (n.y + HEIGHT < top || n.y - HEIGHT > bottom || n.x + n.w < left || n.x - n.w > right) return;
      c.fillStyle = fills[n.side] || fills.either;
      c.strokeStyle = i === this.chosen || this.hits.has(i) ? accent : line; c.lineWidth = i === this.chosen ? 3 : this.hits.has(i) ? 2 : 1;
      c.beginPath(); c.roundRect(n.x - n.w / 2, n.y - HEIGHT / 2, n.w, HEIGHT, 5); c.fill(); c.stroke();
      if (s > 0.3) { c.fillStyle = n.side === "cut" ? "#fff" : ink; c.fillText(n.op, n.x, n.y); }
    });
  }
  listen() {
    const canvas = this.canvas; let held = null, moved = 0;
    canvas.addEventListener("pointerdown", (e) => { held = [e.clientX, e.clientY]; moved = 0; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", (e) => { if (!held) return; const [dx, dy] = [e.clientX - held[0], e.clientY - held[1]]; moved += Math.abs(dx) + Math.abs(dy); this.x += dx; this.y += dy; held = [e.clientX, e.clientY]; this.draw(); });
    canvas.addEventListener("pointerup", (e) => {
      held = null; if (moved > 4) return;
      const x = (e.offsetX - this.x) / this.scale, y = (e.offsetY - this.y) / this.scale;
      choose(this, this.graph.nodes.findIndex((n) => Math.abs(n.x - x) <= n.w / 2 && Math.abs(n.y - y) <= HEIGHT / 2), false);
    });
    canvas.addEventListener("wheel", (e) => { e.preventDefault(); this.zoom(Math.exp(-e.deltaY / 500), e.offsetX, e.offsetY); }, { passive: false });
    canvas.addEventListener("keydown", (e) => {
      const i = this.chosen, n = this.graph.nodes[i], level = n && (this.last[i][0] !== undefined ? this.next[this.last[i][0]] : [i]);
      const go = { ArrowDown: () => n ? this.next[i][0] : 0, ArrowUp: () => n ? this.last[i][0] : 0, ArrowRight: () => n && level[level.indexOf(i) + 1], ArrowLeft: () => n && level[level.indexOf(i) - 1] }[e.key];
      if (go) { const to = go(); if (to !== undefined) choose(this, to, true); e.preventDefault(); }
      else if (e.key === "+" || e.key === "=") this.zoom(1.25);
      else if (e.key === "-") this.zoom(0.8);
      else if (e.key === "0") this.fit();
    });
  }
}

const panes = [];
function choose(pane, i, centre) {
  for (const one of panes) if (one !== pane) { one.chosen = -1; one.draw(); }
  if (centre) pane.show(i); else { pane.chosen = i; pane.draw(); }
  const n = pane.graph.nodes[i], list = make("dl"), box = by("details");
  box.replaceChildren();
  if (!n) { box.append(make("p", "Click a node to see where it comes from.", "faint")); return; }
  const sides = { target: "in the target's layout", source: "in the source's layout or another one", either: "on no side", cut: "the cut: a permutation", refused: "refused" };
  const rows = [["operator", n.op], ["name", n.name], ["rule", n.rule], ["source node", n.source], ["layout", sides[n.side]], ...n.inputs.map((t) => ["in", t]), ...n.outputs.map((t) => ["out", t]), ["attributes", n.attributes]];
  for (const [term, text] of rows) if (text) list.append(make("dt", term), make("dd", text));
  box.append(list);
  const other = panes.find((one) => one !== pane);
  if (other) { // what stems from the same node of the source lights up on the other side
    const key = n.source || n.name;
    other.hits = new Set(key ? other.graph.nodes.flatMap((m, j) => (m.source || m.name) === key ? [j] : []) : []);
    const [first] = other.hits;
    if (first !== undefined) { other.show(first); other.chosen = -1; }
    other.draw();
  }
}

let turn = -1;
function found() { return panes.flatMap((pane) => [...pane.hits].map((i) => [pane, i])); }
function search() {
  const word = by("search").value.trim().toLowerCase();
  turn = -1;
  for (const pane of panes) { pane.hits = new Set(word ? pane.graph.nodes.flatMap((n, i) => `${n.op} ${n.name} ${n.rule} ${n.source} ${n.outputs.join(" ")}`.toLowerCase().includes(word) ? [i] : []) : []); pane.draw(); }
  by("hits").textContent = word ? panes.map((pane) => pane.hits.size).join(" and ") + " found" : "";
}

function facts() {
  for (const [term, text] of data.facts) by("facts").append(make("dt", term), make("dd", text));
  by("verdict").textContent = data.verdict;
  const names = [...new Set([...Object.keys(data.operators_in), ...Object.keys(data.operators_out)])].sort();
  table("operators", ["operator", "before", "after"], names.map((n) => [n, data.operators_in[n] ?? 0, data.operators_out[n] ?? 0]));
  table("constants", ["constants of", "bytes before", "bytes after"], Object.entries(data.constants).map(([n, [a, b]]) => [n, a, b]));
  table("cut", ["Transpose", "order", "elements", "stands behind", "stands before", "why"], data.transposes.map((t) => [t.name, t.perm.join(" "), t.elements, t.before, t.after, t.purpose || "neither can run in the other order"]));
  table("fired", ["rule", "times"], Object.entries(data.rules).sort((a, b) => b[1] - a[1]));
  const whole = Math.max(1e-9, ...data.parts.map((p) => p[1]));
  table("parts", ["part", "milliseconds", ""], data.parts.map(([name, s]) => { const bar = make("span", null, "bar"); bar.style.width = `${8 * s / whole}rem`; return [name, 1000 * s, bar]; }));
  if (data.message) {
    by("refused").hidden = false;
    by("message").textContent = data.message;
    table("refusals", ["operator", "node", "why"], data.refusals.map((r) => [r.operator, r.node, r.reasons.join("; ")]));
  }
}

function errors() {
  const steps = data.layers;
  if (!steps.length) { by("plot").append(make("p", data.layers_note, "faint")); return; }
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`);
  const axis = { stroke: colour("faint"), grid: { stroke: colour("line") }, ticks: { stroke: colour("line") } };
  const decades = (_, ticks) => ticks.map((t) => Math.abs(Math.log10(t) - Math.round(Math.log10(t))) < 1e-6 ? t : null);
  const box = by("plot"), low = 1e-9, errors = steps.map((s) => s.relative === null ? null : Math.max(low, s.relative));
  new uPlot({ width: box.clientWidth || 900, height: 220, scales: { x: { time: false }, y: { distr: 3 } }, axes: [axis, { ...axis, size: 60, grid: { ...axis.grid, filter: decades }, ticks: { ...axis.ticks, filter: decades }, values: (_, ticks) => ticks.map((t) => t ? t.toExponential(0) : "") }],
    series: [{ label: "layer", value: (_, i) => i === null ? "" : `${i} ${steps[i]?.name ?? ""}` }, { label: "error over the largest magnitude", stroke: colour("accent"), points: { show: true, size: 4 } }] },
    [steps.map((_, i) => i), errors], box);
  table("layers", ["operator", "tensor", "verdict", "error"], steps.map((s) => [s.operator, s.name, s.verdict, s.error]));
}

facts();
errors();
if (data.before) panes.push(new Pane(data.before, "Before"));
if (data.after) panes.push(new Pane(data.after, "After"));
for (const [name, says] of [["target", "target's layout"], ["source", "source's layout"], ["either", "no side"], ["cut", "permutation"], ["refused", "refused"]]) {
  const swatch = make("span", null, "swatch"); swatch.style.background = `var(--${name})`; by("legend").append(swatch, says);
}
by("search").addEventListener("input", search);
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && document.activeElement !== by("search")) { e.preventDefault(); by("search").focus(); }
  else if (e.key === "Escape") { by("search").value = ""; search(); document.activeElement.blur(); for (const pane of panes) { pane.chosen = -1; pane.hits.clear(); pane.draw(); } }
  else if (e.key === "Enter" && document.activeElement === by("search")) { const all = found(); if (all.length) { turn = (turn + 1) % all.length; const [pane, i] = all[turn]; pane.show(i); } }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => panes.forEach((pane) => pane.draw()));
document.body.dataset.ready = "yes";
