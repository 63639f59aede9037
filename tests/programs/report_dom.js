// Runs the scripts of a report in node, with as much of a DOM as they need, and prints as JSON what
// they have drawn: the title, charts, links of the topology, and by what links can be coloured.
//
// usage: node report_dom.js report.html
"use strict";
const html = require("fs").readFileSync(process.argv[2], "utf8");

const make = (tag) => ({
  tag, children: [], style: {}, classList: {add() {}, toggle() {}}, attributes: {}, dataset: {},
  get textContent() { return this.text ?? ""; },
  set textContent(text) { this.text = text; },
  get parentElement() { return this.parent ?? (this.parent = make("div")); },
  appendChild(child) { this.children.push(child); child.parent = this; return child; },
  replaceChildren() { this.children = []; },
  setAttribute(key, value) { this.attributes[key] = value; },
  getAttribute(key) { return this.attributes[key]; },
  addEventListener() {},
  closest() { return this.parentElement; },
  querySelector() { return make("x"); },
  querySelectorAll() { return []; },
  getBoundingClientRect() { return {left: 0, top: 0, width: 100, height: 100}; },
});
const elements = {};
for (const [, id] of html.matchAll(/id="([^"]+)"/g)) elements[id] = make("x");
elements.data.textContent = html.match(/id="data">([\s\S]*?)<\/script>/)[1];
global.document = {
  getElementById: (id) => elements[id] ?? null,
  createElement: make,
  createElementNS: (space, tag) => make(tag),
  documentElement: make("html"),
};
global.window = {addEventListener() {}};
global.getComputedStyle = () => ({getPropertyValue: () => "#aabbcc"});
const charts = {};
global.Chart = function Chart(element, options) {
  charts[Object.keys(elements).find((id) => elements[id] === element)] = options;
};
Chart.defaults = {font: {}, plugins: {legend: {labels: {}}}};
Chart.getChart = () => undefined;

const scripts = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map((match) => match[1]);
(0, eval)(scripts.slice(1).join("\n"));  // all but the charts' library

const links = () => {
  const found = [];
  const walk = (node) => {
    if (node.attributes.class === "link") found.push(node.attributes.stroke);
    node.children.forEach(walk);
  };
  walk(elements.topology);
  return found;
};
const quantities = {};
(elements.quantity?.children ?? []).forEach((option, i) => {
  elements.quantity.selectedIndex = i;
  elements.quantity.onchange();
  quantities[option.text] = new Set(links()).size;
});
console.log(JSON.stringify({
  title: document.title, links: links().length, quantities, faults: elements.faults?.text ?? "",
  charts: Object.keys(charts).sort(),
  slowdown: charts.slowdown?.data.datasets[0].type ?? charts.slowdown?.type,
}));
