"use strict";
// Everything that stems from a model reaches the page as text nodes or canvas text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);

function make(tag, text, cls) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = String(text);
  if (cls) made.className = cls;
  return made;
}

// A colour of the style sheet as it is in the scheme that is on; those known are forgotten when that changes.
const colours = new Map();
function colour(name) {
  if (!colours.has(name)) {
    by("probe").style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(by("probe")).color);
  }
  return colours.get(name);
}

const isDark = () => {
  const scheme = document.documentElement.style.colorScheme;
  return scheme ? scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

// Long names differ at their ends: the middle goes, the whole is shown by the pointer.
function short(text, most = 56) {
  const shown = text.length <= most ? text : `${text.slice(0, Math.ceil(most / 3))}…${text.slice(-Math.floor(most * 2 / 3))}`;
  const made = make("span", shown);
  if (shown !== text) made.title = text;
  return made;
}

function link(text, act, most) {
  const made = make("button", null, "link");
  made.type = "button";
  made.append(short(text, most));
  made.addEventListener("click", act);
  return made;
}

function bar(share, name = "bar") {
  const made = make("span", null, name);
  made.style.width = `${Math.max(0.5, 100 * share)}%`;
  const rail = make("span", null, "rail");
  rail.append(made);
  return rail;
}

function number(value) {
  return value.toLocaleString("en", { maximumSignificantDigits: 4, minimumSignificantDigits: Number.isInteger(value) || value >= 1000 ? undefined : 3 });
}

// A table of rows of texts, numbers and elements; columns of numbers stand to the right.
function table(id, heads, rows) {
  const box = by(id);
  if (!rows.length) return;
  const numeric = heads.map((_, i) => rows.some((row) => typeof row[i] === "number"));
  const made = make("table"), head = make("tr"), top = make("thead"), body = make("tbody");
  heads.forEach((one, i) => {
    const cell = make("th", one, numeric[i] ? "n" : "");
    cell.scope = "col";
    head.append(cell);
  });
  for (const row of rows) {
    const line = make("tr");
    row.forEach((one, i) => {
      const cell = make("td", null, numeric[i] ? "n" : "");
      if (typeof one === "number") cell.textContent = Number.isInteger(one) ? one.toLocaleString("en") : number(one);
      else if (one instanceof Node) cell.append(one);
      else cell.append(String(one ?? "").length > 72 ? short(one, 72) : one ?? "");
      line.append(cell);
    });
    body.append(line);
  }
  top.append(head);
  made.append(top, body);
  box.append(made);
  if (rows.length > 10) { box.tabIndex = 0; box.setAttribute("role", "region"); box.setAttribute("aria-label", heads.join(", ")); }
}

function list(rows) {
  const made = make("dl");
  for (const [term, text] of rows) {
    if (text === "" || text === null || text === undefined) continue;
    const said = make("dd");
    said.append(text instanceof Node ? text : String(text));
    made.append(make("dt", term), said);
  }
  return made;
}
