// Where nodes stand. dagre lays out each stretch between two nodes that every path goes through, so that the time it
// takes grows with the longest stretch and not with the graph; stretches beyond its reach are laid out in plain layers.
const HEIGHT = 36, ROW = 66, GAP = 18, BY_DAGRE = 600, REACH = 300;

function place(graph, shown) {
  const { nodes } = graph, visible = nodes.map((_, i) => i).filter(shown);
  for (const i of visible) {
    const node = nodes[i], [name, shape] = graph.label(node);
    node.w = Math.max(name.length * 7.2 + 20, shape.length * 5.6 + 16, 48);
    node.x = node.y = 0;
  }
  const rank = new Map(visible.map((i, k) => [i, k]));
  const edges = graph.edges.filter((edge) => shown(edge.tail) && shown(edge.head));
  for (const edge of edges) { edge.points = null; edge.far = rank.get(edge.head) - rank.get(edge.tail) > REACH && visible.length > BY_DAGRE; }
  const near = edges.filter((edge) => !edge.far);
  let y = 0;
  for (const stretch of divide(visible, rank, near)) y = layOut(graph, stretch, y);
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
function layOut(graph, stretch, y) {
  const { nodes } = graph, first = nodes[stretch.nodes[0]], from = { x: first.x, y: first.y };
  if (stretch.nodes.length > BY_DAGRE || !byDagre(graph, stretch)) layers(graph, stretch);
  const dx = stretch.joined ? from.x - first.x : -first.x, dy = stretch.joined ? from.y - first.y : y;
  for (const i of stretch.nodes) { nodes[i].x += dx; nodes[i].y += dy; }
  for (const edge of stretch.edges) edge.points = edge.points?.map((p) => ({ x: p.x + dx, y: p.y + dy })) ?? null;
  return Math.max(...stretch.nodes.map((i) => nodes[i].y)) + ROW;
}

function byDagre(graph, stretch) {
  const laid = new dagre.graphlib.Graph({ multigraph: true });
  laid.setGraph({ ranksep: ROW - HEIGHT, nodesep: GAP });
  laid.setDefaultEdgeLabel(() => ({}));
  for (const i of stretch.nodes) laid.setNode(String(i), { width: graph.nodes[i].w, height: HEIGHT });
  stretch.edges.forEach((edge, k) => laid.setEdge(String(edge.tail), String(edge.head), {}, String(k)));
  try { dagre.layout(laid); } catch { return false; }
  for (const i of stretch.nodes) { const at = laid.node(String(i)); graph.nodes[i].x = at.x; graph.nodes[i].y = at.y; }
  stretch.edges.forEach((edge, k) => { edge.points = laid.edge(String(edge.tail), String(edge.head), String(k)).points; });
  return true;
}

// Layers by longest path, each ordered by where its sources stand: linear in time.
function layers(graph, stretch) {
  const { nodes } = graph, layer = new Map(stretch.nodes.map((i) => [i, 0])), above = new Map(stretch.nodes.map((i) => [i, []]));
  for (const { tail, head } of stretch.edges) above.get(head).push(tail);
  const rows = [];
  for (const i of stretch.nodes) {
    for (const tail of above.get(i)) layer.set(i, Math.max(layer.get(i), layer.get(tail) + 1));
    (rows[layer.get(i)] ??= []).push(i);
  }
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
