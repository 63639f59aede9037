// The head of a scenario's report.
import {linkName, type Report} from "./data";
import {element, show} from "./dom";
import {count, plural, time} from "./format";

export function drawScenario(report: Report): void {
  const switches = report.nodes!.is_switch.filter((is) => is).length;
  const hosts = report.nodes!.name.length - switches;
  document.title = `${report.name}: simulation`;
  element("title").textContent = "Simulation";
  element("subtitle").textContent = `${report.name}: ${plural(hosts, "host")}, ` +
      `${count(switches)} switches, ${plural(report.links!.a.length, "link")}; ` +
      `seed ${report.seed}; Verbena's simulated fabric`;
  const say = (id: string, what: string, words: string | null | undefined) => {
    show(id, Boolean(words));
    element(id).textContent = `${what}: ${words}`;
  };
  say("deadlock", "Deadlock, each port waits for the next", report.deadlock);
  say("watchdog", "PFC watchdog", report.watchdog);
}

export function drawFaults(report: Report): void {
  const faults = (report.faults ?? []).map((f) => `${f.what} ${linkName(report, f.link)}` +
      (f.at_us === null ? "" : ` from ${time(f.at_us)}`) +
      (f.until_us === null ? "" : ` to ${time(f.until_us)}`));
  show("faults", faults.length > 0);
  element("faults").textContent =
      `Faults: ${faults.slice(0, 20).join("; ")}${faults.length > 20 ? "; ..." : ""}`;
}
