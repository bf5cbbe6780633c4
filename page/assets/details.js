// What is known of the chosen node, and of what a search has found.
const panes = [];
const SIDES = { target: "the target's", source: "the source's, or another one", either: "any: nothing has to move", cut: "the cut: a permutation between layouts", refused: "refused" };
const FOUND = 200;

function choose(pane, i, centre, talk = true) {
  for (const one of panes) if (one !== pane) { one.chosen = -1; one.draw(); }
  pane.chosen = i;
  if (centre) pane.centre(i); else pane.draw();
  for (const one of panes) one.hits = new Set();
  if (talk) { describe(pane, i); by("details").scrollTop = 0; }
  const n = pane.graph.nodes[i], other = panes.find((one) => one !== pane);
  if (!n || !other) return;
  // What stems from the same node of the source lights up on the other side.
  other.hits = new Set(counterparts(n, other));
  const [first] = other.hits;
  if (first !== undefined) other.centre(first); else other.draw();
}

function counterparts(n, other) {
  const key = n.source || n.name;
  if (!key) return [];
  return other.graph.nodes.flatMap((m, j) => (m.side === "end") === (n.side === "end") && (m.side !== "end" || m.op === n.op) && ((m.source || m.name) === key) ? [j] : []);
}

function describe(pane, i) {
  const box = by("details"), n = pane.graph.nodes[i];
  box.replaceChildren();
  if (!n) { box.append(make("p", "Click a node, or walk with the arrows, to see where it comes from.", "faint")); return; }
  const title = n.side === "end" ? `${n.op} of the model` : n.op;
  box.append(make("h3", title));
  const measured = n.milliseconds === undefined ? "" : `${number(n.milliseconds)} ms`;
  box.append(list([
    ["name", short(n.name, 90)],
    ["source node", n.source !== n.name ? n.source : ""],
    ["layout", data.after && n.side !== "end" ? SIDES[pane.side?.(n) ?? n.side] : ""],
    ["error", n.layer ? `${n.layer.error} (${n.layer.verdict})` : ""],
    ["latency", measured],
  ]));
  const why = data.transposes.find((t) => n.side === "cut" && t.name === n.name);
  if (why) box.append(make("h4", "Why it is here"), make("p", why.purpose || `${why.before} and ${why.after} cannot run in the same order of axes.`), list([["order", why.perm], ["moves", `${why.elements.toLocaleString("en")} elements`]]));
  const refused = data.refusals.find((r) => n.side === "refused" && (r.source === n.source || r.source === n.name));
  if (refused) { box.append(make("h4", "Why it is refused")); for (const one of refused.reasons) box.append(make("p", one)); }
  if (n.rule) {
    box.append(make("h4", "Rule"), make("p", n.rule, "code"));
    if (Object.hasOwn(data.rule_texts, n.rule)) box.append(make("pre", data.rule_texts[n.rule]));
  } else if (pane.title === "After" && n.side !== "end") box.append(make("h4", "Rule"), make("p", data.before && counterparts(n, panes[0]).length ? "none: as it was in the source" : "none: a pass made it", "faint"));
  if (n.attributes) box.append(make("h4", "Attributes"), make("p", n.attributes, "code"));
  tensors(box, pane, "Inputs", n.inputs);
  tensors(box, pane, "Outputs", n.outputs);
  const other = panes.find((one) => one !== pane), same = other ? counterparts(n, other) : [];
  if (same.length) {
    box.append(make("h4", pane.title === "After" ? "Stems from" : "Became"));
    const items = make("ul");
    for (const j of same.slice(0, 30)) {
      const m = other.graph.nodes[j], item = make("li");
      item.append(make("strong", `${m.op} `), link(m.name, () => choose(other, j, true), 40));
      items.append(item);
    }
    box.append(items);
  } else if (data.after && pane.title === "Before") box.append(make("h4", "Became"), make("p", "nothing of its own: it was folded into its neighbours, or away", "faint"));
}

function tensors(box, pane, title, places) {
  if (!places.length) return;
  box.append(make("h4", title));
  const items = make("ul");
  for (const t of places) {
    const item = make("li"), tensor = pane.graph.tensors[t];
    if (!tensor) { item.append(make("span", "none", "faint")); items.append(item); continue; }
    const maker = title === "Inputs" ? pane.graph.nodes.findIndex((n) => n.outputs.includes(t)) : -1;
    item.append(maker >= 0 ? link(tensor.name, () => choose(pane, maker, true), 44) : short(tensor.name, 44));
    item.append(make("div", `${tensor.type}  ${tensor.shape}${tensor.constant ? "  constant" : ""}`, "faint"));
    if (tensor.quantization) item.append(make("div", tensor.quantization, "faint"));
    items.append(item);
  }
  box.append(items);
}

let turn = -1;
const found = () => panes.flatMap((pane) => [...pane.hits].map((i) => [pane, i]));

function search(word) {
  const wanted = word.trim().toLowerCase();
  turn = -1;
  for (const pane of panes) {
    pane.chosen = -1;
    const said = (n) => [n.op, n.name, n.rule, n.source, ...n.outputs.map((t) => pane.graph.tensors[t]?.name ?? "")].join("\n").toLowerCase();
    pane.hits = new Set(wanted ? pane.graph.nodes.flatMap((n, i) => said(n).includes(wanted) ? [i] : []) : []);
    pane.draw();
  }
  by("hits").textContent = wanted ? panes.map((pane) => `${pane.hits.size.toLocaleString("en")} ${pane.title.toLowerCase()}`).join(", ") : "";
  const box = by("details");
  box.replaceChildren();
  if (!wanted) { describe(panes[0] ?? { graph: { nodes: [] } }, -1); return; }
  for (const pane of panes) {
    box.append(make("h3", `${pane.title}: ${pane.hits.size.toLocaleString("en")}`));
    const items = make("ul"), hits = [...pane.hits];
    for (const i of hits.slice(0, FOUND)) {
      const n = pane.graph.nodes[i], item = make("li");
      item.append(make("strong", `${n.op} `), link(n.name, () => choose(pane, i, true), 40));
      items.append(item);
    }
    if (hits.length > FOUND) items.append(make("li", `and ${(hits.length - FOUND).toLocaleString("en")} more`, "faint"));
    box.append(items);
  }
}

// Go to the next of what was found, or back; the list of hits stays.
function step(steps) {
  const all = found();
  if (!all.length) return;
  turn = (turn + steps + all.length) % all.length;
  const [pane, i] = all[turn];
  for (const one of panes) one.chosen = -1;
  pane.chosen = i;
  pane.centre(i);
  by("hits").textContent = `${(turn + 1).toLocaleString("en")} of ${all.length.toLocaleString("en")}`;
}
