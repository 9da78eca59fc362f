"use strict";
// Where the time goes as a treemap, and how a search got on as a curve.

// Rectangles of given areas that fill a box, each as square as can be (Bruls, Huizing, van Wijk 2000).
function squarified(values, x, y, width, height) {
  const total = values.reduce((sum, v) => sum + v, 0), found = [];
  if (!total || width <= 0 || height <= 0) return found;
  const scale = (width * height) / total;
  let start = 0;
  while (start < values.length) {
    const side = Math.min(width, height);
    let sum = 0, end = start, worst = Infinity;
    while (end < values.length) {
      const next = sum + values[end] * scale, thick = next / side;
      const ratio = Math.max(...[values[start], values[end]].map((v) => {
        const long = (v * scale) / thick;
        return Math.max(long / thick, thick / long);
      }));
      if (ratio > worst) break;
      [sum, worst, end] = [next, ratio, end + 1];
    }
    const thick = sum / side;
    let along = 0;
    for (let k = start; k < end; k++) {
      const long = (values[k] * scale) / thick;
      found.push(width >= height ? [x, y + along, thick, long] : [x + along, y, long, thick]);
      along += long;
    }
    if (width >= height) { x += thick; width -= thick; } else { y += thick; height -= thick; }
    start = end;
  }
  return found;
}

// `kernels` as { label, seconds, family }, largest first; areas of two maps compare if `whole` is the same.
function treemap(kernels, whole, choose) {
  const W = 580, H = 380, total = kernels.reduce((sum, k) => sum + k.seconds, 0);
  const by = Math.sqrt(Math.min(total / whole, 1)), made = svg("svg", { class: "chart treemap", viewBox: `0 0 ${W} ${H}` });
  squarified(kernels.map((k) => k.seconds), 0, 0, W * by, H * by).forEach(([x, y, width, height], k) => {
    const kernel = kernels[k], tile = svg("g");
    tile.append(svg("title", {}, `${kernel.label}\n${milliseconds(kernel.seconds)}, ${percent(kernel.seconds / total)}`));
    const rect = svg("rect", { class: "tile", x, y, width: Math.max(width, 0.5), height: Math.max(height, 0.5), rx: 3 });
    rect.style.setProperty("--c", kernel.family === null ? "var(--edge)" : `var(--f${kernel.family % 8})`);
    tile.append(rect);
    const room = Math.floor((width - 12) / 7.4), time = milliseconds(kernel.seconds);
    if (height > 20 && room >= Math.min(kernel.source ? kernel.source.length : kernel.label.length, 8)) {
      const label = kernel.label.length > room && kernel.source ? kernel.source : kernel.label;
      tile.append(svg("text", { x: x + 6, y: y + 15 }, shortened(label, room)));
      if (height > 36 && time.length <= room) tile.append(svg("text", { class: "soft", x: x + 6, y: y + 30 }, time));
    }
    tile.addEventListener("click", () => choose(kernel));
    made.append(tile);
  });
  return made;
}

// Steps of the best price over the time of all searches, one colour a search. Each search has a price
// of its own (of the program, of its products), so each is drawn as a part of what it began with.
function curveChart(searches) {
  const W = 1160, H = 300, left = 86, right = 16, top = 16, bottom = 40;
  const points = searches.flatMap((search) => search.points);
  const made = svg("svg", { class: "chart curve", viewBox: `0 0 ${W} ${H}` });
  const end = Math.max(...searches.map((s) => s.end), 1e-9);
  const step = [0.01, 0.02, 0.05, 0.1, 0.2].find((s) => (1 - Math.min(...points.map((p) => p[3]))) / s < 5) || 0.25;
  const low = Math.min(1 - 2 * step, step * Math.floor(Math.min(...points.map((p) => p[3])) / step + 1e-9)), high = 1;
  const x = (t) => left + (t / end) * (W - left - right);
  const y = (v) => top + (1 - (v - low) / (high - low)) * (H - top - bottom);
  for (let value = high; value > low - 1e-9; value -= step) {
    made.append(svg("line", { class: "axis", x1: left, x2: W - right, y1: y(value), y2: y(value) }));
    made.append(svg("text", { class: "soft", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, percent(value)));
  }
  const second = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800].find((s) => end / s <= 10) || 10 ** Math.ceil(Math.log10(end / 10));
  for (let t = 0; t <= end; t += second) {
    made.append(svg("text", { class: "soft", x: x(t), y: H - 20, "text-anchor": "middle" }, `${t.toFixed(second < 1 ? 1 : 0)} s`));
  }
  searches.forEach((search, k) => {
    if (!search.points.length) return;
    const colour = `var(--f${k % 8})`;
    let text = "";
    search.points.forEach((p, at) => {
      text += at === 0 ? `M${x(p[0])} ${y(p[3])}` : `H${x(p[0])}V${y(p[3])}`;
    });
    const line = svg("path", { class: "line", d: `${text}H${x(search.end)}` });
    line.style.setProperty("--c", colour);
    made.append(line);
    search.points.forEach((p, at) => {
      if (at > 0 && p[2] === search.points[at - 1][2]) return;
      const point = svg("circle", { class: "point", cx: x(p[0]), cy: y(p[3]), r: 4.5 });
      point.style.setProperty("--c", colour);
      point.append(svg("title", {}, `${search.name}: ${milliseconds(p[2])} after ${p[0].toFixed(2)} s, ${p[1]} looked at`));
      made.append(point);
    });
  });
  return made;
}

// The stages of the run one after the other, as parts of a bar.
function stagesChart(stages, searches) {
  const W = 1160, H = 56, total = stages.reduce((sum, s) => sum + s[1], 0) || 1;
  const made = svg("svg", { class: "chart stages", viewBox: `0 0 ${W} ${H}` });
  let at = 0;
  stages.forEach(([name, seconds]) => {
    const width = (seconds / total) * W, tile = svg("g");
    const rect = svg("rect", { class: "tile", x: at, y: 0, width: Math.max(width, 0.5), height: 34, rx: 3 });
    const search = searches.findIndex((s) => s.name === name);
    rect.style.setProperty("--c", search < 0 ? "var(--edge)" : `var(--f${search % 8})`);
    tile.append(svg("title", {}, `${name}: ${seconds.toFixed(2)} s`), rect);
    if (width > 8 * name.length + 12) {
      tile.append(svg("text", { x: at + 8, y: 21 }, name));
      tile.append(svg("text", { class: "soft", x: at + 8, y: 50 }, `${seconds.toFixed(1)} s`));
    }
    at += width;
    made.append(tile);
  });
  return made;
}
