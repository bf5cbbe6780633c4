// A graph as it is drawn: nodes of the model, and pills for what goes in and comes out.
const NAMED = ["op", "name", "rule", "source", "side", "inputs", "outputs", "attributes", "constant"];

// Texts that occur often are told by their place.
const TEXTS = data.texts;

class Graph {
  constructor(found) {
    this.tensors = found.tensors.map(([name, type, shape, quantization, constant]) => ({ name: TEXTS[name], type: TEXTS[type], shape: TEXTS[shape], quantization: TEXTS[quantization], constant }));
    this.more = found.more;
    const made = found.nodes.map((row) => Object.fromEntries(NAMED.map((name, i) => [name, row[i]])));
    for (const node of made) for (const told of ["op", "name", "rule", "source", "attributes"]) node[told] = TEXTS[node[told]];
    this.count = made.length;
    this.hasConstants = made.some((node) => node.constant);
    this.nodes = this.interleave(made, found.inputs, found.outputs);
    this.nodes.forEach((node, i) => { node.at = i; });
    this.connect();
  }

  // Pills stand beside what reads or yields them, and what computes a constant beside what reads that.
  interleave(made, inputs, outputs) {
    const readers = new Map(), yields = new Map(), first = new Map(), makers = new Map();
    made.forEach((node) => node.outputs.forEach((t) => makers.set(t, node)));
    made.forEach((node) => node.inputs.forEach((t) => { if (t >= 0 && !readers.has(t)) readers.set(t, node); }));
    outputs.forEach((t) => yields.set(t, [...(yields.get(t) ?? []), t]));
    const pill = (t, op) => ({ op, name: this.tensors[t].name, rule: "", source: "", side: "end", inputs: op === "output" ? [t] : [], outputs: op === "input" ? [t] : [], attributes: "", constant: 0 });
    for (const t of inputs) { const node = readers.get(t); if (node) first.set(node, [...(first.get(node) ?? []), pill(t, "input")]); }
    const placed = new Set(), order = [];
    const put = (node) => {
      if (placed.has(node)) return;
      placed.add(node);
      for (const t of node.inputs) { const maker = makers.get(t); if (maker?.constant && !placed.has(maker)) put(maker); }
      order.push(...(first.get(node) ?? []), node);
      for (const t of node.outputs) for (const out of yields.get(t) ?? []) order.push(pill(out, "output"));
    };
    for (const node of made) if (!node.constant) put(node);
    for (const node of made) put(node);
    for (const t of inputs) {
      if (!readers.has(t)) order.push(pill(t, "input"));
      for (const out of yields.get(t) ?? []) order.push(pill(out, "output"));
    }
    return order;
  }

  connect() {
    const makers = new Map();
    this.nodes.forEach((node, i) => node.outputs.forEach((t) => { if (t >= 0) makers.set(t, i); }));
    this.next = this.nodes.map(() => []);
    this.last = this.nodes.map(() => []);
    this.edges = [];
    this.nodes.forEach((node, head) => {
      for (const t of new Set(node.inputs)) {
        const tail = makers.get(t);
        if (tail === undefined || tail === head || this.next[tail].includes(head)) continue;
        this.edges.push({ tail, head, tensor: t });
        this.next[tail].push(head);
        this.last[head].push(tail);
      }
    });
  }

  // What is written in a node: its operator, and below it the shape that it yields.
  label(node) {
    const t = this.tensors[node.op === "output" ? node.inputs[0] : node.outputs[0]];
    // Sizes that are known at run time alone have names, which are long.
    const shape = !t || t.shape === "?" ? "" : t.shape.split(" × ").map((one) => /^\d+$/.test(one) || one === "scalar" || one.length === 1 ? one : "?").join(" × ");
    const name = node.side === "end" ? `${node.op} ${node.name}` : node.op;
    return [name.length > 26 ? `${name.slice(0, 25)}…` : name, shape.length > 30 ? `${shape.slice(0, 29)}…` : shape];
  }
}
