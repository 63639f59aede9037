// Draws the report of a scenario from the data in the page.
"use strict";
(() => {
  const {element, table, size, rate, time, percent, overTime, slowdown, utilizations, topology,
         head} = report;
  const data = JSON.parse(element("data").textContent);

  document.title = `${data.name}: simulation`;
  head(data, `${data.name}: ${data.nodes.filter((n) => !n.is_switch).length} hosts, ` +
      `${data.nodes.filter((n) => n.is_switch).length} switches, ${data.links.length} links; ` +
      `seed ${data.seed}; Verbena's simulated fabric`);
  const say = (id, what, words) => {
    element(id).hidden = !words;
    element(id).textContent = `${what}: ${words}`;
  };
  say("deadlock", "Deadlock, each port waits for the next", data.deadlock);
  say("watchdog", "PFC watchdog", data.watchdog);
  const faults = data.faults.map((f) => `${f.what} ${data.links[f.link]?.name ?? ""}` +
      (f.at_us === null ? "" : ` from ${time(f.at_us)}`) +
      (f.until_us === null ? "" : ` to ${time(f.until_us)}`));
  say("faults", "Faults", faults.slice(0, 20).join("; ") + (faults.length > 20 ? "; ..." : ""));

  if (data.flows.length) slowdown(data, "flow");
  overTime("queues", data, data.queues, "waiting", size);
  if (data.rates.length === 0)
    element("rates_note").textContent = "No congestion control holds these flows to a rate.";
  overTime("rates", data, data.rates, "rate", rate);
  overTime("loads", data, data.loads, "load", rate);
  utilizations(data.utilization);
  topology(data);
  if (data.paused.length)
    table(element("paused"), [data.held, "for", "of the time"],
          data.paused.map((p) => [p.name, time(p.us), percent(p.part)]));
})();
