// Where nodes stand. dagre lays out each stretch between two nodes that every path goes through, so that the time it
// takes grows with the longest stretch and not with the graph; blocks of a network repeat, and are laid out once.
// Stretches beyond its reach are laid out in plain layers: what it takes grows with the nodes and with the layers that edges
// pass through. In large graphs edges that reach far shape nothing.
const HEIGHT = 36, ROW = 66, GAP = 18, SMALL = 200, BY_DAGRE = 3600, REACH = 300, FAN = 12, NEAR = 40;

const NAME = "600 12px system-ui, sans-serif", SHAPE = "10px system-ui, sans-serif";

const ruler = new OffscreenCanvas(1, 1).getContext("2d"), widths = new Map();
function measure(text, font) {
  const key = font + text;
  if (!widths.has(key)) { ruler.font = font; widths.set(key, ruler.measureText(text).width); }
  return widths.get(key);
}

function place(graph, shown) {
  const { nodes } = graph, visible = nodes.map((_, i) => i).filter(shown);
  for (const i of visible) {
    const node = nodes[i], [name, shape] = graph.label(node);
    node.w = Math.max(measure(name, NAME) + 20, measure(shape, SHAPE) + 16, 48);
    node.x = node.y = 0;
  }
  const rank = new Map(visible.map((i, k) => [i, k]));
  const edges = graph.edges.filter((edge) => shown(edge.tail) && shown(edge.head));
  for (const edge of edges) {
    edge.points = null;
    edge.far = visible.length > SMALL && rank.get(edge.head) - rank.get(edge.tail) > (graph.next[edge.tail].length > FAN ? NEAR : REACH);
  }
  const near = edges.filter((edge) => !edge.far);
  const known = new Map();
  let y = 0;
  for (const stretch of divide(visible, rank, near)) y = layOut(graph, stretch, y, known);
  return edges;
}

// Stretches of nodes, each with its edges; neighbours share the node that every path goes through.
function divide(visible, rank, edges) {
  const reach = new Array(visible.length).fill(0), inner = [];
  for (const edge of edges) { const tail = rank.get(edge.tail); reach[tail] = Math.max(reach[tail], rank.get(edge.head)); }
  const joints = [];
  let furthest = 0;
  for (let k = 0; k < visible.length; k++) {
    if (furthest <= k && k > 0 && reach[k] > k) joints.push(k);
    furthest = Math.max(furthest, reach[k]);
  }
  let start = 0;
  const owner = new Array(visible.length);
  for (const end of [...joints, visible.length - 1]) {
    if (end - start < 1 && inner.length) continue;
    if (end !== visible.length - 1 && end - start < 12) continue; // short stretches go together
    for (let k = start; k < end; k++) owner[k] = inner.length;
    inner.push({ nodes: visible.slice(start, end + 1), edges: [], joined: inner.length > 0 });
    start = end;
  }
  for (const edge of edges) {
    const stretch = inner[owner[rank.get(edge.tail)]];
    if (stretch && rank.get(edge.head) <= rank.get(stretch.nodes.at(-1))) stretch.edges.push(edge);
  }
  return inner;
}

// Lay out one stretch below y; its first node stays where the stretch before has put it. Returns where the next begins.
function layOut(graph, stretch, y, known) {
  const { nodes } = graph, first = nodes[stretch.nodes[0]], from = { x: first.x, y: first.y };
  const levels = findLevels(stretch);
  const passed = stretch.edges.reduce((sum, { tail, head }) => sum + levels.get(head) - levels.get(tail), stretch.nodes.length);
  if (passed > BY_DAGRE || !byDagre(graph, stretch, known)) layers(graph, stretch, levels);
  const dx = stretch.joined ? from.x - first.x : -first.x, dy = stretch.joined ? from.y - first.y : y;
  let bottom = y;
  for (const i of stretch.nodes) { nodes[i].x += dx; nodes[i].y += dy; bottom = Math.max(bottom, nodes[i].y); }
  for (const edge of stretch.edges) edge.points = edge.points?.map((p) => ({ x: p.x + dx, y: p.y + dy })) ?? null;
  return bottom + ROW;
}

function byDagre(graph, stretch, known) {
  const numbers = new Map(stretch.nodes.map((i, k) => [i, k])), ends = stretch.edges.map((edge) => [numbers.get(edge.tail), numbers.get(edge.head)]);
  const key = JSON.stringify([stretch.nodes.map((i) => Math.round(graph.nodes[i].w)), ends]);
  if (!known.has(key)) {
    const laid = new dagre.graphlib.Graph({ multigraph: true });
    laid.setGraph({ ranksep: ROW - HEIGHT, nodesep: GAP });
    laid.setDefaultEdgeLabel(() => ({}));
    stretch.nodes.forEach((i, k) => laid.setNode(String(k), { width: graph.nodes[i].w, height: HEIGHT }));
    ends.forEach(([tail, head], k) => laid.setEdge(String(tail), String(head), {}, String(k)));
    try { dagre.layout(laid); } catch { return false; }
    known.set(key, {
      nodes: stretch.nodes.map((_, k) => laid.node(String(k))),
      edges: ends.map(([tail, head], k) => laid.edge(String(tail), String(head), String(k)).points),
    });
  }
  const found = known.get(key);
  stretch.nodes.forEach((i, k) => { graph.nodes[i].x = found.nodes[k].x; graph.nodes[i].y = found.nodes[k].y; });
  stretch.edges.forEach((edge, k) => { edge.points = found.edges[k]; });
  return true;
}

// The layer of each node: the longest path to it.
function findLevels(stretch) {
  const levels = new Map(stretch.nodes.map((i) => [i, 0])), below = new Map(stretch.nodes.map((i) => [i, []]));
  for (const { tail, head } of stretch.edges) below.get(tail).push(head);
  for (const i of stretch.nodes) for (const head of below.get(i)) levels.set(head, Math.max(levels.get(head), levels.get(i) + 1));
  return levels;
}

// Plain layers, each ordered by where its sources stand: linear in time.
function layers(graph, stretch, levels) {
  const { nodes } = graph, above = new Map(stretch.nodes.map((i) => [i, []])), rows = [];
  for (const { tail, head } of stretch.edges) above.get(head).push(tail);
  for (const i of stretch.nodes) (rows[levels.get(i)] ??= []).push(i);
  rows.forEach((row, level) => {
    const want = new Map(row.map((i) => [i, mean(above.get(i).map((tail) => nodes[tail].x))]));
    row.sort((a, b) => want.get(a) - want.get(b));
    let right = -Infinity, shift = 0;
    for (const i of row) {
      const node = nodes[i];
      node.x = Math.max(want.get(i), right + node.w / 2);
      node.y = level * ROW;
      right = node.x + node.w / 2 + GAP;
      shift += want.get(i) - node.x;
    }
    for (const i of row) nodes[i].x += shift / row.length;
  });
}

const mean = (numbers) => numbers.length ? numbers.reduce((sum, one) => sum + one, 0) / numbers.length : 0;
