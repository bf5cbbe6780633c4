// Error of each layer, time of each part, latency of each operator.
const FLOOR = 1e-9;
const VERDICTS = [["equal", "faint", "equal"], ["close", "accent", "within the tolerance"], ["spread", "warn", "within the spread of the interpreter's kernels"], ["different", "cut", "differs"]];
let drawn = null;

function errors() {
  const steps = data.layers, box = by("plot");
  if (!steps.length) { box.append(make("p", data.layers_note, "faint")); return; }
  draw();
  table("layers", ["", "operator", "tensor", "verdict", "error", "over the largest magnitude"], steps.map((s, i) => [i, leads("Before", s.operator, (n) => n.source === s.operator || n.name === s.operator, 40), s.name, s.verdict, s.error, s.relative === null ? "" : s.relative.toExponential(1)]));
  new ResizeObserver(() => { if (drawn && box.clientWidth && Math.abs(drawn.width - box.clientWidth) > 2) drawn.setSize({ width: box.clientWidth, height: 240 }); }).observe(box);
}

function draw() {
  const steps = data.layers, box = by("plot"), faint = colour("faint"), line = colour("line");
  const axis = { stroke: faint, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const decades = (_, ticks) => ticks.map((t) => Math.abs(Math.log10(t) - Math.round(Math.log10(t))) < 1e-6 ? t : null);
  const used = VERDICTS.filter(([verdict]) => steps.some((s) => s.verdict === verdict));
  const points = (ink) => ({ show: true, size: 7, fill: ink, stroke: ink });
  const named = (i) => i === null || !steps[i] ? "" : `${i}: ${steps[i].operator}, ${steps[i].error}`;
  drawn?.destroy();
  drawn = new uPlot({
    width: box.clientWidth || 900, height: 240,
    cursor: { points: { show: false } },
    scales: { x: { time: false, range: [-0.5, steps.length - 0.5] }, y: { distr: 3 } },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((t) => Number.isInteger(t) ? t : "") },
      { ...axis, size: 64, grid: { ...axis.grid, filter: decades }, ticks: { ...axis.ticks, filter: decades }, values: (_, ticks) => ticks.map((t) => !t ? "" : t <= FLOOR ? "0" : t.toExponential(0)) },
    ],
    series: [
      { label: "layer", value: (_, i) => named(i) },
      ...used.map(([, ink, label]) => ({ label, stroke: colour(ink), paths: () => null, points: points(colour(ink)), value: (_, v) => v === null || v === undefined ? "" : v <= FLOOR ? "0" : v.toExponential(1) })),
    ],
  }, [steps.map((_, i) => i), ...used.map(([verdict]) => steps.map((s) => s.verdict === verdict ? Math.max(FLOOR, s.relative ?? FLOOR) : null))], box);
  drawn.over.addEventListener("click", () => {
    const step = steps[drawn.cursor.idx];
    if (step) go("Before", (n) => n.source === step.operator || n.name === step.operator);
  });
}

function costs() {
  const whole = data.parts.reduce((sum, [, s]) => sum + s, 0), most = Math.max(1e-9, ...data.parts.map(([, s]) => s));
  table("parts", ["part", "milliseconds", "share", ""], data.parts.map(([name, s]) => [name, 1000 * s, `${(100 * s / whole).toFixed(0)} %`, bar(s / most)]));
  if (!data.parts.length) by("parts").append(make("p", "Nothing was converted.", "faint"));
}

function latency() {
  const { sides, kernels, note } = data.latency;
  if (!sides.length) { by("latency").append(make("p", note, "faint")); return; }
  const slowest = Math.max(...sides.map(([, median]) => median));
  table("latency", ["one run of", "median ms", "least ms", "times the first", ""], sides.map(([name, median, least, ratio]) => [name, median, least, ratio.toFixed(2), bar(median / slowest)]));
  const sums = new Map();
  for (const [, operator, ms] of kernels) { const [n, t] = sums.get(operator) ?? [0, 0]; sums.set(operator, [n + 1, t + ms]); }
  const ranked = [...sums].sort((a, b) => b[1][1] - a[1][1]), all = ranked.reduce((sum, [, [, t]]) => sum + t, 0);
  table("kernels", ["operator of the runtime", "nodes", "ms", "share", ""], ranked.map(([operator, [n, t]]) => [operator, n, t, `${(100 * t / all).toFixed(0)} %`, bar(t / ranked[0][1][1])]));
  table("slowest", ["slowest nodes", "operator", "ms", ""], [...kernels].sort((a, b) => b[2] - a[2]).slice(0, 100).map(([node, operator, ms], _, rows) => [leads("After", node, (n) => n.name === node), operator, ms, bar(ms / rows[0][2])]));
}
