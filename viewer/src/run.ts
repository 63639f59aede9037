// The charts of one run of a network.
import {overTime, slowdownBySize, slowdownOfOneSize, utilizations} from "./charts/chart";
import type {Report, Run} from "./data";
import {element, show, table} from "./dom";
import {percent, rate, size, time} from "./format";

export function drawRun(report: Report, run: Run, what: string, held: string): void {
  show("slowdown", run.flows.length > 0);
  if (run.flows.length) drawSlowdown(run, what);
  const data = {times_us: run.times_us, end_us: run.end_us, faults: report.faults ?? []};
  overTime("queues", data, run.queues, "waiting", size);
  overTime("loads", data, run.loads, "load", rate);
  show("rates", run.rates !== undefined);
  if (run.rates) {
    overTime("rates", data, run.rates, "rate", rate);
    if (run.rates.length === 0)
      element("rates_note").textContent = "No congestion control holds these flows to a rate.";
  }
  utilizations(run.utilization);
  show("paused", run.paused.length > 0);
  element("paused").replaceChildren();
  table(element("paused"), [held, "for", "of the time"],
        run.paused.map((p) => [p.name, time(p.us), percent(p.part)]));
}

// Points of one size would lie on each other.
function drawSlowdown(run: Run, what: string): void {
  const first = run.flows[0]![0];
  if (run.flows.every(([bytes]) => bytes === first)) slowdownOfOneSize(run.flows, what);
  else slowdownBySize(run.flows, run.buckets, what);
  element("buckets").replaceChildren();
  table(element("buckets"), [`${what} size`, `${what}s`, "p50", "p95", "p99"],
        run.buckets.map((b) => [b.most > 1e15 ? "more" : `to ${size(b.most)}`, b.flows,
                                b.p50.toFixed(2), b.p95.toFixed(2), b.p99.toFixed(2)]));
}
