// The page as a whole: what is measured goes to the nodes, colours are chosen, keys are heard.
for (const title of ["Before", "After"]) {
  const found = data[title.toLowerCase()];
  if (found) panes.push(new Pane(new Graph(found), title));
}
by("panes").classList.toggle("single", panes.length === 1);
by("panes").dataset.count = panes.length;

function attach() {
  const layers = new Map(data.layers.map((s) => [s.operator, s])), times = new Map(data.latency.kernels.map(([node, , ms]) => [node, ms]));
  for (const pane of panes) for (const n of pane.graph.nodes) {
    if (n.side === "end") continue;
    n.layer = layers.get(n.source) ?? layers.get(n.name);
    if (pane.title === "After") n.milliseconds = times.get(n.name);
  }
  if (panes.length < 2) return;
  const became = new Map();
  for (const n of panes[1].graph.nodes) if (n.source && (n.side === "target" || n.side === "source" && !became.has(n.source))) became.set(n.source, n.side);
  panes[0].side = (n) => n.side === "either" ? became.get(n.source || n.name) ?? "either" : n.side;
}

// A hue of its own for each operator, the same on every page.
const kinds = new Map();
function kind(name) {
  if (!kinds.has(name)) {
    let sum = 7;
    for (const letter of name.toUpperCase().replace(/[^A-Z0-9]/g, "")) sum = (sum * 31 + letter.charCodeAt(0)) % 9973;
    kinds.set(name, (sum * 137.5) % 360);
  }
  return `hsl(${kinds.get(name)} ${isDark() ? "38% 30%" : "62% 87%"})`;
}

// From plain to hot, by the share of the most there is.
function heat(share) {
  return share === null ? colour("either") : `color-mix(in oklab, ${colour("hot")} ${Math.round(100 * share)}%, ${colour("cool")})`;
}

function paints() {
  const worst = Math.max(FLOOR * 10, ...data.layers.map((s) => s.relative ?? 0));
  const slowest = Math.max(1e-9, ...data.latency.kernels.map(([, , ms]) => ms));
  const spread = (value) => Math.max(0, Math.min(1, Math.log(value / FLOOR) / Math.log(worst / FLOOR)));
  return {
    layout: (pane) => (n) => colour(pane.side?.(n) ?? n.side),
    operator: () => (n) => kind(n.op),
    error: () => (n) => heat(n.layer ? spread(Math.max(FLOOR, n.layer.relative ?? FLOOR)) : null),
    latency: () => (n) => heat(n.milliseconds === undefined ? null : Math.sqrt(n.milliseconds / slowest)),
  };
}

function paintBy(name) {
  const paint = paints()[name];
  for (const pane of panes) { pane.fill = paint(pane); pane.map = null; pane.draw(); }
  const says = {
    layout: [["target", "target's layout"], ["source", "source's layout"], ["either", "nothing to move"], ["cut", "Transpose"]],
    operator: [], error: [["cool", "exact"], ["hot", "largest error"], ["either", "not compared"]], latency: [["cool", "quick"], ["hot", "slowest"], ["either", "not measured"]],
  }[name];
  by("legend").replaceChildren();
  for (const [swatch, text] of data.refusals.length ? [...says, ["refused", "refused"]] : says) {
    const one = make("span", null, "swatch");
    one.style.background = `var(--${swatch})`;
    by("legend").append(one, text);
  }
}

function listen() {
  by("search").addEventListener("input", () => search(by("search").value));
  by("paint").addEventListener("change", () => paintBy(by("paint").value));
  by("scheme").addEventListener("click", () => {
    document.documentElement.style.colorScheme = isDark() ? "light" : "dark";
    refresh();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
  document.addEventListener("keydown", (e) => {
    const searching = document.activeElement === by("search");
    if (e.key === "/" && !searching && !e.ctrlKey && !e.metaKey) { e.preventDefault(); by("graphs").scrollIntoView(); by("search").focus(); by("search").select(); }
    else if (e.key === "Escape") { by("search").value = ""; search(""); document.activeElement.blur(); }
    else if (e.key === "Enter" && searching) step(e.shiftKey ? -1 : 1);
  });
}

function refresh() {
  colours.clear();
  paintBy(by("paint").value);
  if (drawn) draw();
}

attach();
figures();
refusals();
operators();
permutations();
errors();
costs();
latency();
rules();
if (!panes.length) by("graphs").hidden = true;
if (!data.after) for (const name of ["transposes", "errors", "latencies", "costs", "rules"]) {
  by(name).hidden = true;
  document.querySelector(`nav [href="#${name}"]`).hidden = true;
}
for (const [name, is] of [["error", data.layers.length], ["latency", data.latency.kernels.length], ["layout", data.after]]) {
  by("paint").querySelector(`[value=${name}]`).disabled = !is;
}
by("paint").value = panes.some((pane) => pane.graph.nodes.some((n) => n.side === "cut" || n.side === "source")) ? "layout" : "operator";
describe(panes[0] ?? { graph: { nodes: [] } }, -1);
paintBy(by("paint").value);
listen();
document.body.dataset.ready = "yes";
