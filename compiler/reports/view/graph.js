"use strict";
// One program as a graph: laid out by dagre in columns, drawn as SVG, panned and zoomed.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 172, HEIGHT = 42, GAP = 70;
// Texts are drawn from this zoom on: below it they could not be read.
const READABLE = 0.42;

function svg(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
  if (text !== null) made.textContent = text;
  return made;
}

// Where each column ends: a deep network is a chain, which fills a screen only in columns. Each ends
// where few values are alive, so few edges go from one column to another.
function columns(nodes, size) {
  const count = nodes.length;
  const last = nodes.map((_, k) => k);
  nodes.forEach((node, k) => (node.reads || []).forEach((read) => { last[read] = Math.max(last[read], k); }));
  const alive = new Array(count + 1).fill(0);
  last.forEach((end, k) => { for (let at = k + 1; at <= end; at++) alive[at] += 1; });
  const found = [];
  let start = 0;
  while (start < count) {
    let best = Math.min(start + size, count);
    if (count - start > 1.3 * size) {
      for (let end = start + Math.round(0.75 * size); end <= start + Math.round(1.25 * size); end++) {
        if (alive[end] < alive[best]) best = end;
      }
    } else {
      best = count;
    }
    found.push([start, best]);
    start = best;
  }
  return found;
}

// Columns of a height that fills the pane, by the shape of those of a first try on a few nodes.
function layout(nodes, aspect) {
  const size = Math.sqrt(5 * nodes.length), few = nodes.slice(0, Math.ceil(2 * size)), first = inColumns(few, size);
  const by = Math.sqrt((first.width * nodes.length) / few.length / first.height / aspect);
  return few.length === nodes.length && by > 0.8 && by < 1.25 ? first : inColumns(nodes, size * by);
}

// One column, laid out by dagre. Networks repeat themselves: columns with the same edges look alike.
function laidOut(start, end, nodes, known) {
  const reads = [];
  for (let k = start; k < end; k++) for (const read of nodes[k].reads || []) if (read >= start) reads.push([read - start, k - start]);
  const key = `${end - start} ${reads.join(" ")}`;
  if (known.has(key)) return known.get(key);
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 30, edgesep: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (let k = 0; k < end - start; k++) graph.setNode(k, { width: WIDTH, height: HEIGHT });
  for (const [from, to] of reads) graph.setEdge(from, to);
  dagre.layout(graph);
  known.set(key, graph);
  return graph;
}

function inColumns(nodes, size) {
  size = Math.min(Math.max(Math.round(size), 8), 110);
  const places = new Array(nodes.length), edges = [];
  let left = 0, height = 0;
  const known = new Map();
  for (const [start, end] of columns(nodes, size)) {
    const graph = laidOut(start, end, nodes, known);
    for (let k = start; k < end; k++) {
      for (const read of nodes[k].reads || []) if (read < start) edges.push({ from: read, to: k, points: null });
      const at = graph.node(k - start);
      places[k] = { x: left + at.x, y: at.y };
    }
    for (const edge of graph.edges()) {
      const points = graph.edge(edge).points.map((p) => [left + p.x, p.y]);
      edges.push({ from: start + Number(edge.v), to: start + Number(edge.w), points });
    }
    left += graph.graph().width + GAP;
    height = Math.max(height, graph.graph().height);
  }
  return { places, edges, width: Math.max(left - GAP, WIDTH), height: Math.max(height, HEIGHT) };
}

function curve(edge, places) {
  if (edge.points === null) {
    const from = places[edge.from], to = places[edge.to];
    const [x0, y0, x1, y1] = [from.x + WIDTH / 2, from.y, to.x - WIDTH / 2, to.y];
    const bend = Math.max(30, Math.min(Math.abs(x1 - x0) / 2, 160));
    return `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`;
  }
  const [first, ...rest] = edge.points;
  let text = `M${first[0]} ${first[1]}`;
  for (let k = 0; k < rest.length - 1; k++) {
    const [x, y] = rest[k], next = rest[k + 1], last = k === rest.length - 2;
    text += `Q${x} ${y} ${last ? next[0] : (x + next[0]) / 2} ${last ? next[1] : (y + next[1]) / 2}`;
  }
  return rest.length === 1 ? `${text}L${rest[0][0]} ${rest[0][1]}` : text;
}

// The end of a long name tells more than its start.
function shortened(text, most) {
  return text.length <= most ? text : "\u2026" + text.slice(text.length - most + 1);
}

// A small picture of the whole with a frame around what is seen; a press goes there.
class Minimap {
  constructor(pane) {
    this.pane = pane;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "minimap";
    const { width, height } = pane.laid, by = Math.min(190 / width, 130 / height);
    [this.by, this.canvas.width, this.canvas.height] = [by, Math.ceil(width * by) + 8, Math.ceil(height * by) + 8];
    const go = (event) => {
      if (!event.buttons) return;
      const box = this.canvas.getBoundingClientRect(), [w, h] = pane.size();
      const [x, y] = [(event.clientX - box.left - 4) / by, (event.clientY - box.top - 4) / by];
      pane.show(pane.k, w / 2 - pane.k * x, h / 2 - pane.k * y);
    };
    this.canvas.addEventListener("pointerdown", go);
    this.canvas.addEventListener("pointermove", go);
  }

  show() {
    const { pane, canvas, by } = this, [width, height] = pane.size(), { k, x, y } = pane;
    const all = k * pane.laid.width <= width && k * pane.laid.height <= height;
    canvas.hidden = all;
    if (all) return;
    const ink = canvas.getContext("2d"), known = new Map();
    const colour = (name) => {
      if (!known.has(name)) {
        canvas.style.color = `var(${name})`;
        known.set(name, getComputedStyle(canvas).color);
      }
      return known.get(name);
    };
    ink.clearRect(0, 0, canvas.width, canvas.height);
    pane.nodes.forEach((node, at) => {
      const { family } = pane.look(node), place = pane.laid.places[at];
      ink.fillStyle = colour(family === null ? "--edge" : `--f${family % 8}`);
      ink.fillRect(4 + (place.x - WIDTH / 2) * by, 4 + (place.y - HEIGHT / 2) * by, WIDTH * by, Math.max(HEIGHT * by, 1.2));
    });
    ink.strokeStyle = colour("--ink");
    ink.lineWidth = 1.5;
    const [left, top] = [Math.max(4 - (x / k) * by, 1), Math.max(4 - (y / k) * by, 1)];
    ink.strokeRect(left, top, Math.min((width / k) * by, canvas.width - left - 1), Math.min((height / k) * by, canvas.height - top - 1));
  }
}

class GraphPane {
  // `look(node)` gives { label, sub, price, classes, family }; `choose(k)` is called on a click.
  constructor(box, nodes, look, choose) {
    this.nodes = nodes;
    this.look = look;
    this.box = box;
    this.laid = layout(nodes, this.size()[0] / this.size()[1]);
    this.full = new Set();
    this.most = nodes.reduce((most, node) => Math.max(most, node.seconds || 0), 0) || 1;
    this.svg = svg("svg", { role: "img", "aria-label": `${nodes.length} nodes` });
    this.plane = svg("g");
    const [near, far] = [this.laid.edges.filter((e) => e.points), this.laid.edges.filter((e) => !e.points)];
    const path = (edges) => edges.map((edge) => curve(edge, this.laid.places)).join("");
    this.plane.append(svg("path", { class: "edges far", d: path(far) }), svg("path", { class: "edges", d: path(near) }));
    this.lit = svg("path", { class: "edges lit" });
    this.plane.append(this.lit);
    this.elements = nodes.map((node, k) => this.draw(node, k));
    this.plane.append(...this.elements);
    this.svg.append(this.plane);
    this.map = new Minimap(this);
    this.attach();
    this.svg.addEventListener("click", (event) => {
      const found = event.target.closest(".node");
      if (found && !this.moved) choose(Number(found.dataset.k));
    });
    this.listen();
    this.start();
  }

  attach() {
    this.box.replaceChildren(this.svg, this.map.canvas, this.buttons());
  }

  // Begin with all if that can be read, else at the first node that a rewrite touched.
  start() {
    this.fit();
    if (this.k >= READABLE) return;
    const k = Math.max(this.nodes.findIndex((node) => this.look(node).classes.includes("ruled")), 0);
    const at = this.laid.places[k], zoom = 0.75, [width] = this.size();
    this.show(zoom, Math.min(width / 2 - zoom * at.x, 24), Math.min(24, 0.3 * this.size()[1] - zoom * at.y));
  }

  draw(node, k) {
    const at = this.laid.places[k], shown = this.look(node);
    const made = svg("g", { class: `node ${shown.classes}`, transform: `translate(${at.x - WIDTH / 2} ${at.y - HEIGHT / 2})` });
    made.dataset.k = String(k);
    if (shown.family !== null) made.style.setProperty("--c", `var(--f${shown.family % 8})`);
    made.append(svg("rect", { class: "box", width: WIDTH, height: HEIGHT, rx: 7 }));
    if (node.seconds) {
      const share = Math.max((WIDTH - 12) * node.seconds / this.most, 1.5);
      made.append(svg("rect", { class: "cost", x: 6, y: HEIGHT - 5, width: share.toFixed(1), height: 2.5, rx: 1.2 }));
    }
    return made;
  }

  // Texts are added when a node is first seen close by.
  write(k) {
    if (this.full.has(k)) return;
    this.full.add(k);
    const shown = this.look(this.nodes[k]);
    const made = this.elements[k];
    made.append(svg("title", {}, `${this.nodes[k].place}\n${this.nodes[k].ir.slice(0, 300)}`));
    made.append(svg("text", { x: 10, y: 17 }, shortened(shown.label, shown.price ? 15 : 21)));
    if (shown.price) made.append(svg("text", { class: "price", x: WIDTH - 9, y: 17 }, shown.price));
    if (shown.sub) made.append(svg("text", { class: "sub", x: 10, y: 31 }, shortened(shown.sub, 24)));
  }

  buttons() {
    const made = document.createElement("div");
    made.className = "zoom";
    for (const [text, title, act] of [
      ["\u2212", "Zoom out", () => this.zoomBy(1 / 1.4)],
      ["+", "Zoom in", () => this.zoomBy(1.4)],
      ["Fit", "Show all", () => this.fit()],
    ]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.title = title;
      button.addEventListener("click", act);
      made.append(button);
    }
    return made;
  }

  size() {
    return [this.box.clientWidth || 600, this.box.clientHeight || 500];
  }

  fit() {
    const [width, height] = this.size(), edge = 24;
    const k = Math.min((width - 2 * edge) / this.laid.width, (height - 2 * edge) / this.laid.height, 1.1);
    this.show(k, (width - k * this.laid.width) / 2, Math.max((height - k * this.laid.height) / 2, edge));
  }

  show(k, x, y) {
    this.k = Math.min(Math.max(k, 0.02), 2.5);
    [this.x, this.y] = [x, y];
    this.plane.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${this.k.toFixed(4)})`);
    this.svg.classList.toggle("far", this.k < READABLE);
    this.map.show();
    if (!this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.writeVisible(); });
    }
  }

  writeVisible() {
    if (this.k < READABLE) return;
    const [width, height] = this.size();
    this.laid.places.forEach((at, k) => {
      const [x, y] = [this.x + this.k * at.x, this.y + this.k * at.y];
      if (x > -200 && x < width + 200 && y > -100 && y < height + 100) this.write(k);
    });
  }

  zoomBy(factor, at = null) {
    const [width, height] = this.size(), [x, y] = at || [width / 2, height / 2];
    const k = Math.min(Math.max(this.k * factor, 0.02), 2.5), by = k / this.k;
    this.show(k, x - (x - this.x) * by, y - (y - this.y) * by);
  }

  centre(k) {
    const at = this.laid.places[k], zoom = Math.max(this.k, 0.8), [width, height] = this.size();
    // Near an edge of the program the pane is not left half empty.
    const within = (to, room, whole) => {
      const spare = room - zoom * whole;
      return spare >= 48 ? spare / 2 : Math.max(Math.min(room / 2 - zoom * to, 24), spare - 24);
    };
    this.show(zoom, within(at.x, width, this.laid.width), within(at.y, height, this.laid.height));
  }

  listen() {
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = this.svg.getBoundingClientRect();
      this.zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), [event.clientX - box.left, event.clientY - box.top]);
    }, { passive: false });
    let from = null;
    this.svg.addEventListener("pointerdown", (event) => {
      from = [event.clientX - this.x, event.clientY - this.y, event.clientX, event.clientY];
      this.moved = false;
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (from === null) return;
      if (Math.hypot(event.clientX - from[2], event.clientY - from[3]) > 4) this.moved = true;
      if (!this.moved) return;
      this.svg.classList.add("moving");
      this.show(this.k, event.clientX - from[0], event.clientY - from[1]);
    });
    const stop = () => { from = null; this.svg.classList.remove("moving"); };
    for (const name of ["pointerup", "pointerleave", "pointercancel"]) this.svg.addEventListener(name, stop);
  }

  // Mark chosen nodes with their edges, and go to the first.
  mark(chosen, go) {
    const set = new Set(chosen);
    this.elements.forEach((element, k) => element.classList.toggle("on", set.has(k)));
    const edges = this.laid.edges.filter((edge) => set.has(edge.from) || set.has(edge.to));
    this.lit.setAttribute("d", chosen.length <= 40 ? edges.map((e) => curve(e, this.laid.places)).join("") : "");
    if (go && chosen.length) this.centre(chosen[0]);
  }

  find(hits) {
    this.svg.classList.toggle("finding", hits !== null);
    const set = new Set(hits || []);
    this.elements.forEach((element, k) => element.classList.toggle("hit", set.has(k)));
  }
}
