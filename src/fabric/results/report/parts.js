// What the reports' pages have in common: numbers in words, tables, charts.
"use strict";
const report = (() => {
  const element = (id) => document.getElementById(id);
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colors = ["#3b7ddd", "#e07b39", "#2f9e6e", "#b04ac7", "#c9a227", "#d1495b", "#3aa6b9", "#7d8597"];

  const withPrefix = (value, units, base = 1000) => {
    let i = 0;
    while (i + 1 < units.length && Math.abs(value) >= base * 0.99995) { value /= base; ++i; }
    return `${Number(value.toPrecision(4))} ${units[i]}`;
  };
  const size = (octets) => withPrefix(octets, ["B", "kB", "MB", "GB", "TB"]);
  const rate = (bps) => withPrefix(bps, ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"]);
  const time = (us) => withPrefix(us * 1e6, ["ps", "ns", "us", "ms", "s"]);
  const percent = (part) => `${(part * 100).toFixed(1)} %`;

  const add = (parent, tag, text) => {
    const child = document.createElement(tag);
    if (text !== undefined) child.textContent = text;
    parent.appendChild(child);
    return child;
  };
  const table = (parent, head, rows) => {
    const body = add(parent, "table");
    const first = add(body, "tr");
    head.forEach((cell) => add(first, "th", cell));
    rows.forEach((cells) => {
      const row = add(body, "tr");
      cells.forEach((cell) => add(row, "td", cell));
    });
  };

  // data: {outcome, complete, summary: [[name, value]], scenario}
  const head = (data, subtitle) => {
    const outcome = element("outcome");
    outcome.textContent = data.outcome;
    outcome.classList.add(data.complete ? "good" : "bad");
    element("subtitle").textContent = subtitle;
    data.summary.forEach(([name, value]) => {
      const box = add(element("numbers"), "div");
      add(box, "span", name);
      add(box, "b", value);
    });
    element("scenario").textContent = data.scenario;
  };

  const text = style("--text"), dim = style("--dim"), edge = style("--edge");
  Chart.defaults.color = dim;
  Chart.defaults.borderColor = edge;
  Chart.defaults.font.family = 'system-ui, "DejaVu Sans", sans-serif';
  Chart.defaults.font.size = 12;
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.plugins.legend.labels.boxWidth = 18;
  Chart.defaults.plugins.legend.labels.boxHeight = 2;
  Chart.defaults.plugins.legend.labels.color = text;

  const axis = (title, format, more = {}) => ({
    title: {display: true, text: title, color: dim},
    ticks: {callback: format, maxTicksLimit: 8, maxRotation: 0},
    ...more,
  });
  const timeAxis = (end_us) =>
      axis("simulated time", time, {type: "linear", min: 0, max: end_us});
  // Where faults begin and end: lines across a chart over time.
  const faultLines = (faults) => ({
    id: "faults",
    afterDatasetsDraw(chart) {
      const {ctx, chartArea, scales} = chart;
      (faults ?? []).flatMap((f) => [f.at_us, f.until_us]).forEach((at) => {
        if (at === null || at < scales.x.min || at > scales.x.max) return;
        const x = scales.x.getPixelForValue(at);
        ctx.save();
        ctx.strokeStyle = colors[5];
        ctx.setLineDash([4, 3]);
        ctx.beginPath();
        ctx.moveTo(x, chartArea.top);
        ctx.lineTo(x, chartArea.bottom);
        ctx.stroke();
        ctx.restore();
      });
    },
  });
  // A chart replaces the one that is there.
  const chart = (id, options) => {
    Chart.getChart(element(id))?.destroy();
    return new Chart(element(id), options);
  };
  // data: {times_us, end_us}; series: [{name, values}], a value for each time.
  const overTime = (id, data, series, title, format) => {
    element(id).parentElement.hidden = series.length === 0;
    if (series.length === 0) return;
    chart(id, {
      type: "line",
      plugins: [faultLines(data.faults)],
      data: {datasets: series.map((s, i) => ({
        label: s.name,
        data: s.values.map((v, j) => ({x: data.times_us[j], y: v})),
        borderColor: colors[i % colors.length], backgroundColor: colors[i % colors.length],
        borderWidth: 1.5, pointRadius: 0, stepped: false,
      }))},
      options: {
        parsing: false, normalized: true,
        interaction: {mode: "nearest", axis: "x", intersect: false},
        scales: {x: timeAxis(data.end_us), y: axis(title, format, {beginAtZero: true})},
        plugins: {tooltip: {callbacks: {
          title: (items) => time(items[0].parsed.x),
          label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
        }}},
      },
    });
  };

  // Points of one size would lie on each other: how many flows were how slow, in their order.
  const ofOneSize = (data, what) => {
    const slow = data.flows.map(([, slowdown]) => slowdown).sort((a, b) => a - b);
    chart("slowdown", {
      type: "line",
      data: {datasets: [{
        label: `${what}s of ${size(data.flows[0][0])}`, borderColor: colors[0],
        backgroundColor: colors[0], borderWidth: 2, pointRadius: slow.length > 200 ? 0 : 2.5,
        stepped: true,
        data: slow.map((value, i) => ({x: value, y: (i + 1) / slow.length})),
      }]},
      options: {
        parsing: false,
        scales: {x: axis("slowdown", (v) => v, {type: "linear"}),
                 y: axis(`part of the ${what}s that were not slower`, percent, {min: 0, max: 1})},
        plugins: {tooltip: {callbacks: {label: (item) =>
            `${percent(item.parsed.y)}: slowdown up to ${item.parsed.x.toFixed(2)}`}}},
      },
    });
    buckets(data, what);
  };
  const buckets = (data, what) => {
    element("buckets").replaceChildren();
    table(element("buckets"), [`${what} size`, `${what}s`, "p50", "p95", "p99"], data.buckets.map((b) => [
      b.most > 1e15 ? "more" : `to ${size(b.most)}`, b.flows, b.p50.toFixed(2), b.p95.toFixed(2),
      b.p99.toFixed(2)]));
  };

  // Each of data.flows is [octets, slowdown]; data.buckets are of sizes; what: "flow" or "message".
  const slowdown = (data, what) => {
    const first = data.flows[0][0];
    if (data.flows.every(([octets]) => octets === first)) return ofOneSize(data, what);
    const line = (name, key, color) => ({
      type: "line", label: name, borderColor: color, backgroundColor: color, borderWidth: 2,
      pointRadius: 3, data: data.buckets.map((b) => ({x: b.middle, y: b[key]})),
    });
    const sets = [{
      type: "scatter", label: `${what}s`, pointRadius: 2.5, borderColor: "transparent",
      backgroundColor: style("--dim") + "99", data: data.flows.map(([x, y]) => ({x, y})),
    }];
    if (data.buckets.length > 1)
      sets.unshift(line("p50", "p50", colors[0]), line("p95", "p95", colors[1]),
                   line("p99", "p99", colors[5]));
    const most = Math.max(1, ...data.flows.map((f) => f[1]));
    const sizes = data.flows.map((f) => f[0]);
    const decade = (v) => Number.isInteger(Math.log10(v) + 1e-9 | 0) &&
        Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;
    chart("slowdown", {
      data: {datasets: sets},
      options: {
        scales: {
          x: {type: "logarithmic", title: {display: true, text: `${what} size`, color: dim},
              min: Math.min(...sizes) / 1.5, max: Math.max(...sizes) * 1.5,
              ticks: {callback: (v, i, all) => all.length < 8 || decade(v) ? size(v) : "",
                      maxRotation: 0, autoSkip: false}},
          y: {type: most > 30 ? "logarithmic" : "linear", min: most > 30 ? 0.9 : 0,
              title: {display: true, text: "slowdown", color: dim},
              ticks: {callback: (v, i, all) => most <= 30 || decade(v) ? v : "", autoSkip: false}},
        },
        plugins: {tooltip: {callbacks: {label: (item) =>
            `${item.dataset.label}: ${size(item.parsed.x)}, slowdown ${item.parsed.y.toFixed(2)}`}}},
      },
    });
    buckets(data, what);
  };

  // utilization: directions of links by tenths.
  const utilizations = (utilization) => chart("utilization", {
    type: "bar",
    data: {
      labels: utilization.map((n, i) => `${i * 10}-${i * 10 + 10} %`),
      datasets: [{data: utilization, backgroundColor: colors[0], label: "directions of links"}],
    },
    options: {
      plugins: {legend: {display: false}},
      scales: {x: {title: {display: true, text: "utilization", color: dim}, grid: {display: false},
                   ticks: {maxRotation: 60, autoSkip: false}},
               y: axis("directions of links", (v) => Number.isInteger(v) ? v : "",
                       {beginAtZero: true})},
    },
  });

  const svg = (parent, tag, attributes, content) => {
    const child = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(attributes).forEach(([key, value]) => child.setAttribute(key, value));
    if (content !== undefined) child.textContent = content;
    parent.appendChild(child);
    return child;
  };
  const mix = (part) => {  // from calm to red
    const hex = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));
    const a = hex(style("--calm")), b = [222, 45, 38];
    return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * part)).join(",")})`;
  };
  // What links can be coloured by: [words, value of a direction, text, most]. `most`: of the scale;
  // null: the largest there is.
  const quantities = (data) => {
    const faulty = new Set((data.faults ?? []).map((fault) => data.links[fault.link]));
    const list = [[`time ${data.held}`, (link, i) => link.paused[i], percent, null]];
    if (data.links.some((link) => link.utilization))
      list.push(["utilization", (link, i) => link.utilization[i], percent, 1],
                ["longest queue", (link, i) => link.queue[i], size, null]);
    if (faulty.size)
      list.push(["faults", (link) => faulty.has(link) ? 1 : 0, (v) => v ? "faulty" : "none", 1]);
    return {list, faulty};
  };
  // Wheel and mouse change which part of the picture is seen.
  const zoomable = (picture, width, height) => {
    let view = [0, 0, width, height], held = null;
    const show = () => picture.setAttribute("viewBox", view.join(" "));
    const place = (event) => {
      const box = picture.getBoundingClientRect();
      return [view[0] + (event.clientX - box.left) / box.width * view[2],
              view[1] + (event.clientY - box.top) / box.height * view[3]];
    };
    picture.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x, y] = place(event), by = event.deltaY < 0 ? 0.8 : 1.25;
      const part = Math.min(1, view[2] * by / width);
      view = [x - (x - view[0]) * (part * width / view[2]), y - (y - view[1]) * (part * height / view[3]),
              part * width, part * height];
      if (part === 1) view = [0, 0, width, height];
      show();
    }, {passive: false});
    picture.addEventListener("mousedown", (event) => { held = place(event); });
    picture.addEventListener("mousemove", (event) => {
      if (!held) return;
      const [x, y] = place(event);
      view = [view[0] + held[0] - x, view[1] + held[1] - y, view[2], view[3]];
      show();
    });
    picture.addEventListener("mouseup", () => { held = null; });
    picture.addEventListener("mouseleave", () => { held = null; });
    picture.addEventListener("dblclick", () => { view = [0, 0, width, height]; show(); });
  };
  // Of each tier the nodes to be drawn; hosts of a switch as one where they are too many.
  const rowsOf = (data) => {
    const tiers = [];
    data.nodes.forEach((node, i) => {
      if (!data.shows_hosts && !node.is_switch) return;
      (tiers[node.tier] ||= []).push(i);
    });
    return tiers.filter((tier) => tier).reverse();
  };
  const hostsBelow = (data) => {
    const counts = {};
    if (data.shows_hosts) return counts;
    data.links.forEach((link) => {
      for (const [host, above] of [[link.a, link.b], [link.b, link.a]])
        if (!data.nodes[host].is_switch) counts[above] = (counts[above] ?? 0) + 1;
    });
    return counts;
  };
  const drawTopology = (data, quantity, faulty) => {
    const [words, valueOf, textOf, scale] = quantity;
    const largest = (link) => Math.max(valueOf(link, 0), valueOf(link, 1));
    element("topology").replaceChildren();
    const rows = rowsOf(data), below = hostsBelow(data);
    const widest = Math.max(...rows.map((row) => row.length));
    const width = Math.max(720, widest * 34), gap = 96, height = 40 + gap * (rows.length - 1) + 46;
    const picture = svg(element("topology"), "svg", {
      viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img",
      "aria-label": `${words} on the topology`, style: `min-width:${Math.min(width, 1100)}px;max-height:560px`});
    zoomable(picture, width, height);
    const at = [];
    rows.forEach((row, r) => row.forEach((node, i) => {
      at[node] = [(i + 0.5) * width / row.length, 28 + r * gap];
    }));
    const most = scale ?? Math.max(...data.links.map(largest), 0);
    const ordered = data.links.slice().sort((a, b) => largest(a) - largest(b));
    const circle = new Set(data.circle.map((link) => data.links[link]));
    const beside = {};  // links between the same two nodes
    ordered.forEach((link) => (beside[`${link.a} ${link.b}`] ||= []).push(link));
    ordered.forEach((link) => {
      const from = at[link.a], to = at[link.b];
      if (!from || !to) return;
      const value = largest(link);
      const others = beside[`${link.a} ${link.b}`];
      const shift = 5 * (others.indexOf(link) - (others.length - 1) / 2);
      const flat = from[1] === to[1] && Math.abs(from[0] - to[0]) > 1.5 * width / rows.at(-1).length;
      const [x, y] = [(from[0] + to[0]) / 2 + shift, (from[1] + to[1]) / 2 + (flat ? -34 : 0)];
      const line = svg(picture, "path", {
        d: `M${from[0] + shift} ${from[1]} Q${x} ${y} ${to[0] + shift} ${to[1]}`, fill: "none",
        class: "link", stroke: mix(most > 0 ? Math.min(1, value / most) : 0),
        "stroke-width": value > 0 ? 2.5 : 1.2});
      if (circle.has(link)) line.setAttribute("stroke-dasharray", "7 4");
      else if (faulty.has(link)) line.setAttribute("stroke-dasharray", "2 4");
      svg(line, "title", {}, `${link.name}: ${words} ${textOf(value)}` +
          (faulty.has(link) ? "; has faults" : "") +
          (circle.has(link) ? "; part of the deadlock" : ""));
    });
    data.nodes.forEach((node, i) => {
      if (!at[i]) return;
      const [x, y] = at[i];
      if (node.is_switch)
        svg(picture, "rect", {x: x - 11, y: y - 8, width: 22, height: 16, rx: 3, fill: text});
      else
        svg(picture, "circle", {cx: x, cy: y, r: 6, fill: text});
      const above = node.is_switch && node.tier > 0;
      const crowded = rows.find((row) => row.includes(i)).length > 40;
      if (!crowded)
        svg(picture, "text", {x, y: above ? y - 13 : y + 20, "text-anchor": "middle"}, node.name);
      if (below[i])
        svg(picture, "text", {x, y: y + 20, "text-anchor": "middle"}, `${below[i]} hosts`);
    });
    const key = add(element("topology"), "div");
    key.className = "key";
    add(key, "span", textOf(0));
    add(key, "i").style.background = `linear-gradient(90deg, ${mix(0)}, ${mix(1)})`;
    add(key, "span", most > 0 ? `${words} ${textOf(most)}` : `${words}: nowhere`);
    if (data.circle.length) add(key, "span", "(dashes: the deadlock)");
  };
  // data: {nodes, links, circle, held, shows_hosts, faults}; a link has `paused`, the part of the time
  // for which each of its directions was, and may have `utilization` and `queue` of each.
  const topology = (data) => {
    const {list, faulty} = quantities(data);
    const chooser = element("quantity");
    if (chooser) {
      chooser.replaceChildren();
      list.forEach(([words]) => add(chooser, "option", words));
      chooser.onchange = () => drawTopology(data, list[chooser.selectedIndex], faulty);
    }
    drawTopology(data, list[0], faulty);
  };
  return {element, add, table, style, colors, text, dim, size, rate, time, percent, axis, chart,
          overTime, slowdown, utilizations, topology, head, svg};
})();
