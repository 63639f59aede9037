// Draws the report of a job from the data in the page.
"use strict";
(() => {
  const {element, add, table, colors, dim, size, rate, time, percent, axis, chart, overTime,
         slowdown, utilizations, topology, head, svg} = report;
  const data = JSON.parse(element("data").textContent);
  const run = data.run;
  const show = (id) => { element(id).closest("section").hidden = false; };
  const gigabytes = (v) => `${Number((v / 1e9).toPrecision(4))}`;
  // Each name has its colour, on the whole page.
  const known = [];
  const colorOf = (name) => {
    if (!known.includes(name)) known.push(name);
    return colors[known.indexOf(name) % colors.length];
  };

  document.title = `${run.kind}, ${run.gpus} GPUs, ${run.technology}: simulation`;
  head({outcome: run.status, complete: run.status === "complete", summary: data.summary,
        scenario: run.scenario},
       `${run.kind}, ${run.gpus} GPUs in nodes of ${run.gpus_per_node}, ${run.technology}; ` +
       `seed ${run.seed}; Verbena's simulated fabric`);

  // --- the job

  const bars = (id, labels, datasets, title, format) => {
    show(id);
    element(id).parentElement.style.height = `${Math.max(120, 70 + 30 * labels.length)}px`;
    chart(id, {
      type: "bar", data: {labels, datasets},
      options: {
        indexAxis: "y",
        scales: {x: axis(title, format, {stacked: true, beginAtZero: true}),
                 y: {stacked: true, ticks: {autoSkip: false}}},
        plugins: {legend: {display: datasets.length > 1},
                  tooltip: {callbacks: {label: (item) =>
                      `${item.dataset.label}: ${format(item.parsed.x)}`}}},
      },
    });
  };
  const stacked = (id, things) => {  // [{name, parts: [[name, us]]}]
    const parts = [];
    things.forEach((thing) => thing.parts.forEach(([name, us]) => {
      if (us > 0 && !parts.includes(name)) parts.push(name);
    }));
    bars(id, things.map((thing) => thing.name), parts.map((name) => ({
      label: name, backgroundColor: name.startsWith("idle: ") ? colorOf(name.slice(6)) + "66" : colorOf(name),
      data: things.map((thing) => thing.parts.find(([n]) => n === name)?.[1] ?? 0),
    })), "time", time);
  };

  if (data.collectives) {
    const done = data.collectives.filter((row) => row[3] > 0);
    if (done.length)
      bars("busbw", done.map((row) => row[0]), [{label: "busbw, GB/s", backgroundColor: colors[0],
           data: done.map((row) => row[3])}], "bus bandwidth, GB/s", gigabytes);
    show("algorithms");
    table(element("algorithms"), ["algorithm", "time", "algbw, GB/s", "busbw, GB/s", "flow-level", ""],
          data.collectives.map(([name, seconds, algbw, busbw, flows, mistake]) => [
            name, seconds > 0 ? time(seconds * 1e6) : "-", gigabytes(algbw), gigabytes(busbw),
            flows === null ? "-" : time(flows * 1e6), mistake]));
  }
  const paths = Object.entries(data.runs).map(([name, r]) => ({name, parts: r.path}))
      .filter((r) => r.parts.some(([, us]) => us > 0));
  if (paths.length) stacked("path", paths);
  if (data.accounts) {
    stacked("accounts", data.accounts.map((account) => ({name: account.name, parts: [
      ...account.rows.map(([purpose, us]) => [purpose, us]),
      ...account.rows.map(([purpose, , us]) => [`idle: ${purpose}`, us])]})));
    const words = ([gpu, idle]) => `${percent(idle)} (GPU ${gpu})`;
    element("idle").textContent = `Computing, and idle before what it waited for. GPUs were idle ` +
        `for ${words(data.idle.least)} to ${words(data.idle.most)} of the time, the median is ` +
        `${words(data.idle.median)}. Shown are those with the least and the most.`;
  }
  if (data.operations?.length) {
    show("operations");
    table(element("operations"),
          ["communicator", "operation", "algorithm", "GPUs", "size", "times", "waiting", "time",
           "busbw, GB/s"],
          data.operations.map((row) => [...row.slice(0, 4), size(row[4]), row[5],
                                        time(row[6] * 1e-6), time(row[7] * 1e-6),
                                        gigabytes(row[8])]));
  }

  // --- one run

  const timeline = (chosen) => {
    show("timeline");
    element("timeline").replaceChildren();
    element("purposes").replaceChildren();
    const rows = chosen.timeline, step = run.kind !== "collective";
    element("timeline_note").textContent = step ?
        "For each GPU its computing, and the operations of each of its communicators." :
        "For each GPU its lanes: how long each eighth of their steps took. " +
        "Of many GPUs those that ended first and last.";
    const left = 190, width = 1240, high = step ? 14 : 6, gap = 8;
    let y = 4, before = null;
    const places = rows.map((row) => {
      if (before !== null && row.gpu !== before) y += gap;
      before = row.gpu;
      const at = y;
      y += high;
      return at;
    });
    const picture = svg(element("timeline"), "svg", {viewBox: `0 0 ${width} ${y + 26}`, width: "100%",
        role: "img", "aria-label": "timeline", style: "min-width:900px"});
    const x = (us) => left + (width - left - 10) * us / chosen.end_us;
    rows.forEach((row, i) => {
      const first = i === 0 || rows[i - 1].gpu !== row.gpu;
      if (first || step)
        svg(picture, "text", {x: left - 8, y: places[i] + (step ? 11 : 8), "text-anchor": "end",
            class: "small"}, (first ? `GPU ${row.gpu} ` : "") + (step ? row.lane : ""));
      row.spans.forEach(([begin, end, purpose, label]) => {
        const box = svg(picture, "rect", {x: x(begin), y: places[i],
            width: Math.max(0.4, x(end) - x(begin)), height: high - 1, class: "span",
            fill: step ? colorOf(purpose) : colors[0], "fill-opacity": step ? 1 : 0.25 + purpose / 11});
        svg(box, "title", {}, `GPU ${row.gpu}, ${step ? row.lane : `lane ${row.lane}`}: ${label}, ` +
            `${time(begin)} to ${time(end)}`);
      });
    });
    for (let i = 0; i <= 6; ++i)
      svg(picture, "text", {x: x(chosen.end_us * i / 6), y: y + 18, class: "small",
          "text-anchor": i === 6 ? "end" : i === 0 ? "start" : "middle"}, time(chosen.end_us * i / 6));
    if (!step) return;
    const purposes = [...new Set(rows.flatMap((row) => row.spans.map((span) => span[2])))];
    purposes.forEach((purpose) => {
      const box = add(element("purposes"), "i");
      box.style.cssText = `width:14px;background:${colorOf(purpose)}`;
      add(element("purposes"), "span", purpose);
    });
  };

  const showRun = (name) => {
    const chosen = data.runs[name];
    const held = run.technology === "infiniband" ? "without credits" : "paused";
    if (!data.timeline) timeline(chosen);
    element("slowdown").closest("section").hidden = chosen.flows.length === 0;
    if (chosen.flows.length) slowdown(chosen, "message");
    overTime("queues", chosen, chosen.queues, "waiting", size);
    overTime("loads", chosen, chosen.loads, "load", rate);
    utilizations(chosen.utilization);
    topology({nodes: data.nodes, links: chosen.links, circle: [], held, shows_hosts: data.shows_hosts});
    element("paused").replaceChildren();
    if (chosen.paused.length)
      table(element("paused"), [held, "for", "of the time"],
            chosen.paused.map((p) => [p.name, time(p.us), percent(p.part)]));
  };
  if (data.timeline) timeline({timeline: data.timeline, end_us: run.step_ps * 1e-6});
  const names = Object.keys(data.runs);
  names.forEach((name) => { add(element("run"), "option", name).value = name; });
  element("run").addEventListener("change", () => showRun(element("run").value));
  element("chooser").hidden = names.length < 2;
  element("network").hidden = names.length === 0;
  if (names.length) showRun(names[0]);

  table(element("queries"), ["of", "query"], data.queries);
})();
