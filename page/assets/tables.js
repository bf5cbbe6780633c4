// The figures and tables of the page; a row that is about a node leads there.
function go(paneTitle, test) {
  const pane = panes.find((one) => one.title === paneTitle), i = pane ? pane.graph.nodes.findIndex(test) : -1;
  if (i < 0) return;
  choose(pane, i, true);
  by("graphs").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

const leads = (paneTitle, name, test, most) => {
  const pane = panes.find((one) => one.title === paneTitle);
  return pane?.graph.nodes.some(test) ? link(name, () => go(paneTitle, test), most) : short(name, most);
};

function figures() {
  by("verdict").textContent = data.verdict;
  by("verdict").title = data.verdict;
  by("verdict").className = data.state;
  for (const [term, value, note] of data.cards) {
    if (!term) continue;
    const card = make("div", null, "card");
    card.append(make("span", term, "faint"), make("strong", value), make("span", note, "faint"));
    by("cards").append(card);
  }
  by("facts").append(list(data.facts));
  table("interface", ["", "name", "type", "shape", ...(data.after ? ["after the conversion"] : [])], data.interface.map((row) => data.after ? row : row.slice(0, 4)));
  table("constants", ["constants of", "bytes before", "bytes after"], Object.entries(data.constants).map(([n, [a, b]]) => [n, a, b]));
}

function operators() {
  data.operators.forEach((counts, i) => {
    const most = Math.max(1, ...counts.map(([, count]) => count));
    table(i ? "after" : "before", ["operator", i ? "after" : "before", ""], counts.map(([name, count]) => [link(name, () => { by("search").value = name; search(name); by("graphs").scrollIntoView(); }), count, bar(count / most)]));
  });
}

function refusals() {
  if (!data.message) return;
  by("refused").hidden = false;
  if (!data.refusals.length) { by("message").textContent = data.message; by("message").hidden = false; return; }
  const groups = new Map();
  for (const one of data.refusals) {
    const key = JSON.stringify([one.operator, one.reasons]);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  for (const ones of groups.values()) {
    const card = make("div", null, "refusal"), places = make("p");
    card.append(make("h3", `${ones[0].operator} × ${ones.length}`));
    for (const reason of ones[0].reasons) card.append(make("p", reason));
    for (const one of ones.slice(0, 50)) places.append(leads("Before", one.node, (n) => n.source === one.source || n.name === one.source), " ");
    if (ones.length > 50) places.append(`and ${ones.length - 50} more`);
    card.append(places);
    by("refusals").append(card);
  }
  if (data.advice) by("advice").prepend(make("li", data.advice));
  by("advice").hidden = false;
}

function permutations() {
  table("cut", ["Transpose", "order", "elements moved", "stands behind", "stands before", "why"], data.transposes.map((t) => [
    leads("After", t.name, (n) => n.name === t.name && n.side === "cut", 40), t.perm, t.elements, short(t.before, 44), short(t.after, 44), t.purpose || "neither can run in the other order"]));
  if (!data.transposes.length) by("cut").append(make("p", data.after ? "None is left." : "Nothing was converted.", "faint"));
}

function rules() {
  const places = new Map();
  for (const place of data.after ? panes.at(-1).graph.nodes.map((n) => n.rule) : []) if (place) places.set(place.split(" ")[0], place);
  table("fired", ["rule", "file and line", "fired", "tried", "milliseconds"], data.rules.map(([name, count, tried, seconds]) => {
    const place = places.get(name), at = place?.match(/\((.*)\)$/)?.[1] ?? "";
    const shown = link(name, () => { by("search").value = place ?? name; search(place ?? name); by("graphs").scrollIntoView(); });
    return [place ? shown : name, at, count, tried ?? "", seconds === null || seconds === undefined ? "" : 1000 * seconds];
  }));
  if (!data.rules.length) by("fired").append(make("p", "None.", "faint"));
}
