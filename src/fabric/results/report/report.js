// Draws the report of a scenario from the data in the page.
"use strict";
(() => {
  const {element, table, size, rate, time, percent, overTime, slowdown, utilizations, topology,
         head} = report;
  const data = JSON.parse(element("data").textContent);

  head(data, `${data.nodes.filter((n) => !n.is_switch).length} hosts, ` +
      `${data.nodes.filter((n) => n.is_switch).length} switches, ${data.links.length} links; ` +
      `seed ${data.seed}; Verbena's simulated fabric`);
  const say = (id, what, words) => {
    element(id).hidden = !words;
    element(id).textContent = `${what}: ${words}`;
  };
  say("deadlock", "Deadlock, each port waits for the next", data.deadlock);
  say("watchdog", "PFC watchdog", data.watchdog);

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
