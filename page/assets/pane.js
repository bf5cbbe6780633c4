// One graph on a canvas, with a map of the whole at its right edge.
const MAP = 64;

class Pane {
  constructor(graph, title) {
    Object.assign(this, { graph, title, chosen: -1, hits: new Set(), scale: 1, x: 0, y: 0, constants: false, fill: () => "" });
    this.figure = make("figure");
    this.canvas = make("canvas", null, "graph");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", `Graph ${title}, ${graph.count} nodes; arrows walk along it`);
    this.figure.append(this.caption(), this.canvas);
    by("panes").append(this.figure);
    this.arrange();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  caption() {
    const made = make("figcaption"), { graph } = this, tools = make("span", null, "tools");
    const undrawn = graph.more ? `, ${graph.more.toLocaleString("en")} more are not drawn` : "";
    made.append(make("strong", this.title), make("span", `${graph.count.toLocaleString("en")} nodes${undrawn}`, "faint"), tools);
    const button = (text, says, act) => {
      const one = make("button", text);
      one.type = "button";
      one.title = says;
      one.setAttribute("aria-label", `${says}, graph ${this.title}`);
      one.addEventListener("click", () => act(one));
      tools.append(one);
    };
    if (graph.hasConstants) {
      button("constants", "Show what is computed from constants alone", (one) => { this.constants = !this.constants; one.setAttribute("aria-pressed", this.constants); this.arrange(); this.start(); this.draw(); });
    }
    button("−", "Zoom out", () => this.zoom(0.75));
    button("+", "Zoom in", () => this.zoom(1.35));
    button("fit", "Show the whole graph", () => this.fit());
    button("⤢", "Give this graph all the room", () => by("graphs").classList.toggle("alone", this.figure.classList.toggle("wide")));
    return made;
  }

  shows(i) { return this.constants || !this.graph.nodes[i].constant; }

  arrange() {
    this.edges = place(this.graph, (i) => this.shows(i));
    this.visible = this.graph.nodes.filter((_, i) => this.shows(i));
    this.bounds = { left: 0, right: 1, top: 0, bottom: 1 };
    const b = this.bounds;
    for (const n of this.visible) {
      b.left = Math.min(b.left, n.x - n.w / 2); b.right = Math.max(b.right, n.x + n.w / 2);
      b.top = Math.min(b.top, n.y - HEIGHT); b.bottom = Math.max(b.bottom, n.y + HEIGHT);
    }
    this.map = null;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth; this.height = this.canvas.clientHeight;
    this.canvas.width = this.width * ratio; this.canvas.height = this.height * ratio;
    this.map = null;
    if (!this.fitted) { this.fitted = true; this.start(); }
    this.draw();
  }

  start() { // readable from the top; the whole is one key away
    this.fit();
    if (this.scale > 0.6) return;
    const top = this.visible.reduce((best, n) => !best || n.y < best.y ? n : best, null);
    this.scale = 1;
    this.x = top ? (this.width - MAP) / 2 - top.x : 0;
    this.y = top ? 40 - top.y : 0;
  }

  fit() {
    const b = this.bounds, width = this.width - MAP;
    this.scale = Math.min(1.2, width / (b.right - b.left + 20), this.height / (b.bottom - b.top + 20));
    this.x = width / 2 - this.scale * (b.left + b.right) / 2;
    this.y = this.height / 2 - this.scale * (b.top + b.bottom) / 2;
    this.draw();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(4, Math.max(0.002, this.scale * factor));
    this.x = x - (x - this.x) * scale / this.scale;
    this.y = y - (y - this.y) * scale / this.scale;
    this.scale = scale;
    this.draw();
  }

  centre(i) {
    const n = this.graph.nodes[i];
    if (!n) return;
    if (!this.shows(i)) { this.constants = true; this.arrange(); }
    this.scale = Math.max(this.scale, 0.7);
    this.x = (this.width - MAP) / 2 - n.x * this.scale;
    this.y = this.height / 2 - n.y * this.scale;
    this.draw();
  }

  draw() { this.pending ??= requestAnimationFrame(() => { this.pending = undefined; this.paint(); }); }

  paint() {
    if (!this.width || !this.height) return; // not on the page yet
    const ratio = window.devicePixelRatio || 1, c = this.canvas.getContext("2d"), s = this.scale;
    const look = { ink: colour("ink"), faint: colour("faint"), accent: colour("accent"), line: colour("wire"), card: colour("card") };
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    c.save();
    c.translate(this.x, this.y);
    c.scale(s, s);
    const view = { left: -this.x / s, right: (this.width - this.x) / s, top: -this.y / s, bottom: (this.height - this.y) / s };
    this.paintEdges(c, view, look);
    this.paintNodes(c, view, look);
    c.restore();
    this.paintMap(c, look);
  }

  paintEdges(c, view, look) {
    const { nodes } = this.graph, cut = colour("cut"), s = this.scale;
    for (const edge of this.edges) {
      const a = nodes[edge.tail], b = nodes[edge.head];
      if (Math.max(a.y, b.y) < view.top || Math.min(a.y, b.y) > view.bottom || Math.max(a.x, b.x) < view.left - 400 || Math.min(a.x, b.x) > view.right + 400) continue;
      const near = edge.tail === this.chosen || edge.head === this.chosen;
      c.strokeStyle = near ? look.accent : a.side === "cut" || b.side === "cut" ? cut : look.line;
      c.lineWidth = (near ? 2 : 1.2) / Math.max(s, 0.5);
      const [y, z] = [a.y + HEIGHT / 2, b.y - HEIGHT / 2], bends = edge.points?.slice(1, -1) ?? [];
      c.beginPath();
      if (edge.far && !near) { // where it ends is shown when one of its nodes is chosen
        c.setLineDash([2, 3]);
        c.moveTo(b.x + b.w / 2, b.y); c.lineTo(b.x + b.w / 2 + 16, b.y - 8);
        c.stroke();
        c.setLineDash([]);
        continue;
      }
      c.moveTo(a.x, y);
      if (bends.length > 1) curve(c, [{ x: a.x, y }, ...bends, { x: b.x, y: z }]);
      else c.bezierCurveTo(a.x, (y + z) / 2, b.x, (y + z) / 2, b.x, z);
      c.stroke();
      if (s > 0.35) {
        c.fillStyle = c.strokeStyle;
        c.beginPath(); c.moveTo(b.x, z); c.lineTo(b.x - 4, z - 7); c.lineTo(b.x + 4, z - 7); c.fill();
      }
    }
  }

  paintNodes(c, view, look) {
    const s = this.scale, white = colour("onstrong");
    c.textAlign = "center";
    c.textBaseline = "middle";
    for (const n of this.visible) {
      if (n.y + HEIGHT < view.top || n.y - HEIGHT > view.bottom || n.x + n.w < view.left || n.x - n.w > view.right) continue;
      const chosen = n.at === this.chosen, hit = this.hits.has(n.at), strong = n.side === "cut" || n.side === "refused";
      c.fillStyle = n.side === "end" ? look.card : strong ? colour(n.side) : s < 0.3 ? this.dye(n, look) : this.fill(n);
      c.beginPath();
      if (s > 0.15) c.roundRect(n.x - n.w / 2, n.y - HEIGHT / 2, n.w, HEIGHT, n.side === "end" ? HEIGHT / 2 : 6);
      else c.rect(n.x - n.w / 2, n.y - HEIGHT / 2, n.w, HEIGHT);
      c.fill();
      if (chosen || hit || s > 0.15) {
        c.strokeStyle = chosen || hit ? look.accent : look.line;
        c.lineWidth = (chosen ? 3 : hit ? 2 : 1) / Math.min(1, Math.max(s, 0.1));
        c.stroke();
      }
      if (s < 0.3) continue;
      const [name, shape] = this.graph.label(n);
      c.fillStyle = strong ? white : look.ink;
      c.font = NAME;
      c.fillText(name, n.x, shape ? n.y - 6 : n.y);
      if (!shape) continue;
      c.fillStyle = strong ? white : look.faint;
      c.font = SHAPE;
      c.fillText(shape, n.x, n.y + 9);
    }
  }

  // The colour of a node that is small.
  dye(n, look) { return `color-mix(in oklab, ${this.fill(n)} 65%, ${look.faint})`; }

  // The whole graph in a strip: width and height are scaled apart, as networks are long.
  paintMap(c, look) {
    const b = this.bounds, left = this.width - MAP, u = (MAP - 8) / (b.right - b.left), v = (this.height - 8) / (b.bottom - b.top);
    const ratio = window.devicePixelRatio || 1;
    if (!this.map) {
      this.map = new OffscreenCanvas(Math.max(1, MAP * ratio), Math.max(1, this.height * ratio));
      const m = this.map.getContext("2d");
      m.scale(ratio, ratio);
      for (const n of this.visible) {
        m.fillStyle = n.side === "end" ? look.faint : n.side === "cut" || n.side === "refused" ? colour(n.side) : this.dye(n, look);
        m.fillRect(4 + (n.x - n.w / 2 - b.left) * u, 4 + (n.y - HEIGHT / 2 - b.top) * v, Math.max(2, n.w * u), Math.max(1, HEIGHT * v));
      }
    }
    c.fillStyle = look.card;
    c.fillRect(left, 0, MAP, this.height);
    c.drawImage(this.map, left, 0, MAP, this.height);
    c.fillStyle = look.accent;
    for (const i of [...this.hits, this.chosen]) { const n = this.graph.nodes[i]; if (n) c.fillRect(left, 3 + (n.y - b.top) * v, MAP, 2); }
    c.strokeStyle = look.accent;
    c.lineWidth = 1;
    const top = 4 + (-this.y / this.scale - b.top) * v, height = Math.max(4, this.height / this.scale * v);
    c.strokeRect(left + 0.5, Math.max(0.5, top), MAP - 1, Math.min(this.height - 1, height));
  }

  jump(y) { // to where the map was touched
    const b = this.bounds, at = b.top + (y - 4) / (this.height - 8) * (b.bottom - b.top);
    const row = this.visible.reduce((best, n) => Math.abs(n.y - at) < Math.abs(best.y - at) ? n : best, this.visible[0]);
    this.y = this.height / 2 - at * this.scale;
    if (row) this.x = (this.width - MAP) / 2 - row.x * this.scale;
    this.draw();
  }

  find(x, y) { return this.visible.find((n) => Math.abs(n.x - x) <= n.w / 2 && Math.abs(n.y - y) <= HEIGHT / 2)?.at ?? -1; }

  listen() {
    const { canvas } = this;
    let held = null, moved = 0, mapped = false;
    canvas.addEventListener("pointerdown", (e) => {
      held = [e.clientX, e.clientY]; moved = 0; mapped = e.offsetX > this.width - MAP;
      canvas.setPointerCapture(e.pointerId);
      if (mapped) this.jump(e.offsetY);
    });
    canvas.addEventListener("pointermove", (e) => {
      const inside = [(e.offsetX - this.x) / this.scale, (e.offsetY - this.y) / this.scale];
      if (!held) { canvas.style.cursor = e.offsetX > this.width - MAP || this.find(...inside) >= 0 ? "pointer" : "grab"; return; }
      if (mapped) { this.jump(e.offsetY); return; }
      const [dx, dy] = [e.clientX - held[0], e.clientY - held[1]];
      moved += Math.abs(dx) + Math.abs(dy);
      this.x += dx; this.y += dy;
      held = [e.clientX, e.clientY];
      this.draw();
    });
    canvas.addEventListener("pointerup", (e) => {
      held = null;
      if (moved > 4 || mapped) return;
      choose(this, this.find((e.offsetX - this.x) / this.scale, (e.offsetY - this.y) / this.scale), false);
    });
    canvas.addEventListener("pointercancel", () => { held = null; });
    // The page scrolls past a graph that is not in use; one that is, or a pressed Ctrl, zooms.
    canvas.addEventListener("wheel", (e) => {
      if (document.activeElement !== canvas && !e.ctrlKey) return;
      e.preventDefault();
      this.zoom(Math.exp(-e.deltaY / (e.ctrlKey ? 100 : 500)), e.offsetX, e.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (e) => this.press(e));
  }

  press(e) {
    const { next, last } = this.graph, i = this.chosen, seen = (found) => found?.filter((j) => this.shows(j)) ?? [];
    const beside = () => { const row = i < 0 ? [] : seen(last[i].length ? next[seen(last[i])[0]] : [i]); return [row, row.indexOf(i)]; };
    const walk = {
      ArrowDown: () => i < 0 ? this.visible[0]?.at : seen(next[i])[0],
      ArrowUp: () => i < 0 ? this.visible.at(-1)?.at : seen(last[i])[0],
      ArrowRight: () => { const [row, at] = beside(); return row[at + 1]; },
      ArrowLeft: () => { const [row, at] = beside(); return row[at - 1]; },
      Home: () => this.visible[0]?.at,
      End: () => this.visible.at(-1)?.at,
    }[e.key];
    const act = { "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), "0": () => this.fit() }[e.key];
    if (!walk && !act || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    if (act) { act(); return; }
    const to = walk();
    if (to !== undefined) choose(this, to, true);
  }
}

// A smooth line through points: each bend is where two arcs meet halfway.
function curve(c, points) {
  for (let k = 1; k < points.length - 1; k++) {
    const p = points[k], q = points[k + 1], end = k === points.length - 2 ? q : { x: (p.x + q.x) / 2, y: (p.y + q.y) / 2 };
    c.quadraticCurveTo(p.x, p.y, end.x, end.y);
  }
}
