"use strict";
// The page: tabs, what is chosen, what is found. All text goes in as text, never as markup.

const data = JSON.parse(document.getElementById("report").textContent);
const $ = (id) => document.getElementById(id);
const LEVELS = Object.keys(data.levels), SIDES = ["before", "after"];
const state = { level: null, panes: {}, laid: {}, rewrite: null, tab: "program" };

function make(name, content = null, classes = "") {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  if (typeof content === "string") made.textContent = content;
  else if (Array.isArray(content)) made.append(...content.filter((c) => c !== null));
  return made;
}

function act(text, does, classes = "") {
  const made = make("button", text, classes);
  made.type = "button";
  made.addEventListener("click", does);
  return made;
}

function milliseconds(seconds) {
  const ms = Math.abs(seconds) * 1e3, digits = ms >= 100 ? 0 : ms >= 10 ? 1 : ms >= 1 ? 2 : 3;
  if (ms && ms < 0.1) return `${seconds < 0 ? "\u2212" : ""}${(ms * 1e3).toFixed(ms < 0.01 ? 2 : 1)} \u00b5s`;
  return `${seconds < 0 ? "\u2212" : ""}${ms.toFixed(digits)} ms`;
}

const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
const dot = (family) => {
  const made = make("span", null, "dot");
  if (family !== null) made.style.setProperty("--c", `var(--f${family % 8})`);
  return made;
};

function table(head, rows, numbers = []) {
  const cell = (name, content, k) => {
    const made = make(name, content instanceof Node ? [content] : String(content));
    if (numbers.includes(k)) made.className = "number";
    return made;
  };
  const line = (name, cells) => make("tr", cells.map((c, k) => cell(name, c, k)));
  return make("table", [make("thead", [line("th", head)]), make("tbody", rows.map((r) => line("td", r)))]);
}

// --- head ------------------------------------------------------------------------------------

function head() {
  $("title").textContent = data.title;
  $("asked").textContent = data.asked;
  const { before, tuned, after, kind } = data.cost;
  const entry = (name, value, classes = "") => make("div", [make("dt", name), make("dd", value, classes)]);
  const entries = [entry(`before (${kind})`, milliseconds(before))];
  if (tuned !== undefined && tuned !== before) entries.push(entry("kernels tuned", milliseconds(tuned)));
  entries.push(entry("after", milliseconds(after)));
  if (after) entries.push(entry("as fast", `${(before / after).toFixed(2)}\u00d7`, before > 1.005 * after ? "gain" : ""));
  $("cost").append(...entries);
  const names = { program: "Program", time: "Where the time goes", search: "Search", rejected: `Rejected (${data.rejected.length})` };
  for (const id of Object.keys(names)) {
    const button = act(names[id], () => tab(id));
    button.id = `tab-${id}`;
    button.setAttribute("role", "tab");
    $("tabs").append(button);
  }
  $("theme").addEventListener("click", () => theme(isDark() ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(null));
  theme(null);
}

const isDark = () => {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  $("theme").textContent = isDark() ? "Light" : "Dark";
  for (const side of SIDES) if (state.panes[side]) state.panes[side].map.show();
}

function tab(id) {
  state.tab = id;
  for (const name of ["program", "time", "search", "rejected"]) {
    $(name).hidden = name !== id;
    $(`tab-${name}`).setAttribute("aria-selected", String(name === id));
  }
  const fill = { time: timeTab, search: searchTab, rejected: rejectedTab }[id];
  if (fill && !$(id).hasChildNodes()) $(id).append(fill());
  if (id !== "program") $("details").hidden = true;
  find();
}

// --- the program -----------------------------------------------------------------------------

// Which rewrites touch a node: positions in data.rewrites.
const touching = {};
for (const level of LEVELS) {
  touching[level] = { before: new Map(), after: new Map() };
  data.rewrites.forEach((rewrite, k) => {
    (rewrite.at[level] || [[], []]).forEach((nodes, side) => nodes.forEach((node) => {
      const known = touching[level][SIDES[side]];
      known.set(node, [...(known.get(node) || []), k]);
    }));
  });
}

// Of the rewrites that touch a node the one that gains most gives it its colour.
function familyOf(rewrites) {
  if (!rewrites.length) return null;
  const own = rewrites.map((k) => data.rewrites[k]);
  return own.reduce((best, one) => (one.delta < best.delta ? one : best)).family;
}

function look(side) {
  return (node) => {
    const k = node.k, rewrites = touching[state.level][side].get(k) || [];
    const family = familyOf(rewrites);
    const end = node.op === "input" || node.op === "output";
    const other = data.levels[state.level][side === "before" ? "after" : "before"];
    const changed = !end && other !== null && node.pair === undefined;
    const classes = [end ? "end" : "", changed ? "changed" : "", rewrites.length ? "ruled" : "", node.when === "run" ? "" : "idle"];
    return {
      label: end ? node.op : node.op.slice(node.op.indexOf(".") + 1),
      sub: end ? node.place : node.source || (node.shapes || []).map((s) => s.join("\u00d7")).join(", "),
      price: node.seconds ? milliseconds(node.seconds) : node.when === "once" ? "once" : "",
      classes: classes.join(" "),
      family,
    };
  };
}

function showLevel(level) {
  state.level = level;
  for (const button of $("levels").children) button.setAttribute("aria-pressed", String(button.textContent === level));
  for (const side of SIDES) {
    const graph = data.levels[level][side], box = $(side), key = `${level} ${side}`;
    const caption = box.parentElement.querySelector("figcaption");
    const seconds = graph ? graph.nodes.reduce((sum, node) => sum + (node.seconds || 0), 0) : 0;
    const told = graph ? `${graph.nodes.length} nodes, ${milliseconds(seconds)} ${level === "kernel" ? "modelled" : "op by op"}` : "";
    caption.replaceChildren(make("b", side === "before" ? "Before" : "After"), make("span", told));
    if (graph === null) {
      state.panes[side] = null;
      box.replaceChildren(make("p", `The program ${side === "after" ? "that was found " : ""}is below this level: see the next one.`, "empty"));
      continue;
    }
    graph.nodes.forEach((node, k) => { node.k = k; });
    if (!state.laid[key]) state.laid[key] = new GraphPane(box, graph.nodes, look(side), (k) => chooseNode(side, k));
    else state.laid[key].attach();
    state.panes[side] = state.laid[key];
  }
  if (state.rewrite !== null) markRewrite(state.rewrite);
  find();
}

function mark(chosen, go) {
  for (const side of SIDES) if (state.panes[side]) state.panes[side].mark(chosen[side], go !== side);
}

function chooseNode(side, k) {
  const node = data.levels[state.level][side].nodes[k], other = side === "before" ? "after" : "before";
  const rewrites = touching[state.level][side].get(k) || [];
  let there = node.pair === undefined ? [] : [node.pair];
  if (!there.length && rewrites.length) there = data.rewrites[rewrites[0]].at[state.level][SIDES.indexOf(other)];
  state.rewrite = null;
  current(null);
  nodeDetails(side, node, rewrites);
  mark({ [side]: [k], [other]: there }, side);
}

function markRewrite(k) {
  const at = data.rewrites[k].at[state.level] || [[], []];
  mark({ before: at[0], after: at[1] }, null);
}

function chooseRewrite(k) {
  state.rewrite = k;
  if (state.tab !== "program") tab("program");
  const here = data.rewrites[k].at;
  const seen = (level) => here[level] && (here[level][0].length || here[level][1].length);
  if (!seen(state.level)) {
    const level = LEVELS.find(seen);
    if (level) showLevel(level);
  }
  rewriteDetails(data.rewrites[k]);
  markRewrite(k);
  current(k);
}

function current(k) {
  for (const button of $("rules").querySelectorAll("[data-k]")) button.setAttribute("aria-current", String(Number(button.dataset.k) === k));
}

function rulesList() {
  const found = [make("h2", "Rewrites")];
  if (!data.rewrites.length) found.push(make("p", data.message || "None: the program is as it was.", "soft"));
  data.families.forEach((family, number) => {
    const own = data.rewrites.map((r, k) => [r, k]).filter(([r]) => r.family === number);
    const entries = own.slice(0, 400).map(([rewrite, k]) => {
      const button = act("", () => chooseRewrite(k));
      button.dataset.k = String(k);
      button.append(make("span", rewrite.short || rewrite.rule), make("span", rewrite.delta ? milliseconds(rewrite.delta) : "", "count"));
      return make("li", [button]);
    });
    const summary = make("summary", [dot(number), make("span", family), make("span", `${own.length}`, "count")]);
    const group = make("details", [summary, make("ul", entries)]);
    group.open = data.families.length <= 3 && own.length <= 12;
    found.push(group);
  });
  $("rules").replaceChildren(...found);
  const key = (classes, text) => make("span", [make("i", null, `key ${classes}`), make("span", text)]);
  $("legend").append(key("changed", "differs from the other side"), key("price", "share of the slowest node"));
}

// --- details ---------------------------------------------------------------------------------

function details(title, family, rows, rest) {
  const close = act("\u00d7", () => { $("details").hidden = true; }, "close");
  close.title = "Close";
  const list = make("dl", rows.filter((row) => row[1] !== "" && row[1] !== null && row[1] !== undefined)
    .flatMap(([name, value]) => [make("dt", name), make("dd", value instanceof Node ? [value] : String(value))]));
  $("details").replaceChildren(close, make("h2", [family === undefined ? null : dot(family), make("span", title)]), list, ...rest);
  $("details").hidden = false;
}

const ir = (name, text) => [make("h3", name), make("pre", text || "(nothing)")];

function prices(seconds) {
  const [before, after] = seconds, made = make("span", `${milliseconds(before)} \u2192 ${milliseconds(after)}`);
  made.className = after < before ? "better" : after > before ? "worse" : "";
  return made;
}

function nodeDetails(side, node, rewrites) {
  const made = rewrites.map((k) => act(data.rewrites[k].rule, () => chooseRewrite(k), "link"));
  const list = made.map((button) => make("div", [button]));
  details(node.op, undefined, [
    ["source node", node.source || (node.op === "input" || node.op === "output" ? node.place : "")],
    ["side", side],
    ["price", node.seconds ? `${milliseconds(node.seconds)} modelled` : { once: "runs once, before the program", free: "free: index expressions" }[node.when] || ""],
    ["shape", (node.shapes || []).map((s) => s.join("\u00d7") || "scalar").join(", ")],
    ["made by", (node.rules || []).join(", ")],
  ], [...(list.length ? [make("h3", "Rewrites here"), ...list] : []), ...ir("IR", node.ir)]);
}

// The e-graph around a rewrite: a card a class, a line a form; the chosen form is marked.
function equalForms(classes) {
  const cards = classes.map(({ value, forms, more }) => {
    const lines = forms.map((form) => make("li", [
      make("code", form.ir),
      make("span", `${form.chosen ? "chosen, " : ""}${form.seconds ? milliseconds(form.seconds) : "free"}, ${form.rule || "of the program"}`, "soft"),
    ], form.chosen ? "chosen" : ""));
    const rest = more ? [make("li", `and ${more} more`, "soft")] : [];
    return make("section", [make("b", value), make("ul", [...lines, ...rest])], "forms");
  });
  return [make("h3", "Equal forms in the e-graph"), ...cards];
}

function rewriteDetails(rewrite) {
  const steps = data.rewrites.map((r, k) => [r, k]).filter(([r]) => r.place === rewrite.place && r.family === rewrite.family);
  const rest = [];
  if (rewrite.before !== undefined) rest.push(...ir("IR before", rewrite.before));
  if (rewrite.became) rest.push(...ir("Alone, after this step", rewrite.became));
  if (rewrite.before !== undefined) rest.push(...ir(rewrite.became ? "IR after all steps" : "IR after", rewrite.after));
  if (rewrite.equal) rest.push(...equalForms(rewrite.equal));
  if (steps.length > 1) {
    rest.push(make("h3", "All steps at this place"));
    const list = make("ol", steps.map(([r, k]) => make("li", [act(r.rule, () => chooseRewrite(k), "link")])));
    rest.push(list);
  }
  details(rewrite.rule, rewrite.family, [
    ["source node", rewrite.source],
    ["op", rewrite.place],
    ["proof", rewrite.proof],
    ["price", rewrite.seconds ? prices(rewrite.seconds) : ""],
    ["gain", rewrite.delta ? milliseconds(rewrite.delta) : ""],
    ["error", rewrite.error === undefined || rewrite.error === null ? "" : rewrite.error.toExponential(1)],
    ["floats", rewrite.floats],
    ["infinities", rewrite.infinities],
  ], rest);
}

// --- other tabs ------------------------------------------------------------------------------

function timeTab() {
  const sheet = make("div", null, "sheet");
  const totals = SIDES.map((side) => data.kernels[side].reduce((sum, k) => sum + k.seconds, 0));
  sheet.append(make("p", `Each kernel by its ${data.kernels.kind} time; equal areas are equal times. A colour is a kind of kernel.`, "soft"));
  const two = make("div", null, "two");
  SIDES.forEach((side, k) => {
    const kernels = [...data.kernels[side]].sort((a, b) => b.seconds - a.seconds);
    const told = make("div");
    const column = make("div", [make("h2", `${side === "before" ? "Before" : "After"}: ${kernels.length} kernels, ${milliseconds(totals[k])}`)]);
    const choose = (kernel) => goTo(side, kernel);
    column.append(treemap(kernels, Math.max(...totals), choose), told);
    column.append(table(["kernel", "time", "share"], kernels.slice(0, 12).map((kernel) => [
      make("span", [dot(kernel.family), document.createTextNode(` ${kernel.label}`)]), milliseconds(kernel.seconds), percent(kernel.seconds / (totals[k] || 1)),
    ]), [1, 2]));
    two.append(column);
  });
  sheet.append(two);
  return sheet;
}

// Show a kernel in the program: the node at its source, or of its name.
function goTo(side, kernel) {
  tab("program");
  showLevel("kernel");
  const graph = data.levels.kernel[side];
  const k = graph === null ? -1 : graph.nodes.findIndex((node) => kernel.source && node.source === kernel.source);
  if (k < 0) return;
  chooseNode(side, k);
  state.panes[side].centre(k);
}

function searchTab() {
  const sheet = make("div", null, "sheet");
  if (data.message) sheet.append(make("p", data.message));
  if (!data.searches.length) {
    sheet.append(make("p", "No search ran: this is the program as every compilation rewrites it."));
    return sheet;
  }
  const drawn = data.searches.filter((search) => search.points.length);
  if (drawn.length) {
    sheet.append(make("h2", "Best price over time"), make("p", "The best that each search had found so far, as a part of the price that it began with. Point at a step for its price.", "soft"));
    sheet.append(curveChart(data.searches));
  }
  sheet.append(make("h2", "The searches"));
  sheet.append(table(["search", "time", "looked at", "candidates", "ended", "outcome"], data.searches.map((search, k) => [
    make("span", [dot(k), document.createTextNode(` ${search.name}`)]), search.seconds === null ? "" : `${search.seconds.toFixed(1)} s`,
    search.looked_at, search.candidates, search.stop_reason, `${search.kept ? "kept" : "nothing kept"}: ${search.reason}`,
  ]), [1, 3]));
  if (data.stages.length) sheet.append(make("h2", "Where the run's time went"), stagesChart(data.stages, data.searches));
  if (data.matches.length) {
    sheet.append(make("h2", "Matches in the e-graph"), make("p", "How often each rule added something to the e-graph of saturation.", "soft"));
    sheet.append(table(["rule", "times"], data.matches, [1]));
  }
  return sheet;
}

function rejectedTab() {
  const sheet = make("div", null, "sheet");
  if (!data.rejected.length) sheet.append(make("p", "Nothing was rejected."));
  else {
    sheet.append(make("p", "What was not applied, and why.", "soft"));
    sheet.append(table(["what", "why", "where"], data.rejected.map((entry) => {
      const where = entry.places.length === 1 ? document.createTextNode(entry.places[0]) : make("details", [
        make("summary", `${entry.places.length} places`), make("ul", entry.places.map((place) => make("li", place))),
      ]);
      return [entry.rule, entry.reason, where];
    })));
  }
  return sheet;
}

// --- find ------------------------------------------------------------------------------------

let hits = [], hit = -1;

// In ops and source nodes; in the IR, which names what a node reads, only where these have nothing.
function found_in(nodes, text) {
  for (const of of [(node) => `${node.op} ${node.place}`, (node) => node.ir]) {
    const found = [...nodes.keys()].filter((k) => of(nodes[k]).toLowerCase().includes(text));
    if (found.length) return found;
  }
  return [];
}

function find() {
  const text = $("find").value.trim().toLowerCase();
  [hits, hit] = [[], -1];
  for (const row of document.querySelectorAll("#rejected tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(text);
  for (const side of SIDES) {
    const pane = state.panes[side];
    if (!pane) continue;
    const found = text === "" ? null : found_in(pane.nodes, text);
    pane.find(found);
    hits.push(...(found || []).map((k) => [side, k]));
  }
  $("hits").textContent = text === "" ? "" : `${hits.length} found`;
}

function nextHit(by) {
  if (!hits.length) return;
  hit = (hit + by + hits.length) % hits.length;
  const [side, k] = hits[hit];
  if (state.tab !== "program") tab("program");
  state.panes[side].centre(k);
  chooseNode(side, k);
  $("hits").textContent = `${hit + 1} of ${hits.length}`;
}

$("find").addEventListener("input", find);
$("find").addEventListener("keydown", (event) => {
  if (event.key === "Enter") nextHit(event.shiftKey ? -1 : 1);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== $("find")) { event.preventDefault(); $("find").focus(); }
  if (event.key === "Escape") { $("find").value = ""; find(); $("details").hidden = true; }
});

head();
rulesList();
for (const level of LEVELS) $("levels").append(act(level, () => showLevel(level)));
tab("program");
showLevel(data.first);
document.documentElement.dataset.ready = "yes";
