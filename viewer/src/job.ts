// The parts of a job's report that are about no network: algorithms, where the time went, GPUs.
import {bars} from "./charts/chart";
import type {Report} from "./data";
import {element, show, table} from "./dom";
import {percent, size, time} from "./format";
import {series as colors} from "./theme";

const gigabytes = (v: number) => `${Number((v / 1e9).toPrecision(4))}`;

// Each name has its colour, on the whole page.
const known: string[] = [];
export function colorOf(name: string): string {
  if (!known.includes(name)) known.push(name);
  return colors[known.indexOf(name) % colors.length]!;
}

interface Thing { name: string; parts: [string, number][] }
function stacked(id: string, things: Thing[]): void {
  const parts: string[] = [];
  for (const thing of things)
    for (const [name, us] of thing.parts) if (us > 0 && !parts.includes(name)) parts.push(name);
  const idle = "idle: ";
  show(id);
  bars(id, things.map((thing) => thing.name), parts.map((name) => ({
    label: name,
    backgroundColor: name.startsWith(idle) ? colorOf(name.slice(idle.length)) + "66" : colorOf(name),
    data: things.map((thing) => thing.parts.find(([n]) => n === name)?.[1] ?? 0),
  })), "time", time);
}

export function drawJobHead(report: Report): void {
  const run = report.run!;
  document.title = `${run["kind"]}, ${run["gpus"]} GPUs, ${run["technology"]}: simulation`;
  element("title").textContent = "Job";
  element("subtitle").textContent = `${run["kind"]}, ${run["gpus"]} GPUs in nodes of ` +
      `${run["gpus_per_node"]}, ${run["technology"]}; seed ${run["seed"]}; Verbena's simulated fabric`;
}

export function drawJob(report: Report): void {
  if (report.collectives) drawCollectives(report.collectives);
  const paths = Object.entries(report.runs).map(([name, r]) => ({name, parts: r.path ?? []}))
      .filter((r) => r.parts.some(([, us]) => us > 0));
  if (paths.length) stacked("path", paths);
  if (report.accounts && report.idle) drawAccounts(report.accounts, report.idle);
  if (report.operations?.length) {
    element("operations").replaceChildren();
    show("operations");
    table(element("operations"),
          ["communicator", "operation", "algorithm", "GPUs", "size", "times", "waiting", "time",
           "busbw, GB/s"],
          report.operations.map((row) => [row[0], row[1], row[2], row[3], size(row[4]), row[5],
                                          time(row[6] * 1e-6), time(row[7] * 1e-6),
                                          gigabytes(row[8])]));
  }
}

function drawCollectives(collectives: NonNullable<Report["collectives"]>): void {
  const done = collectives.filter((row) => row[3] > 0);
  show("algorithms");
  if (done.length)
    bars("busbw", done.map((row) => row[0]), [{label: "busbw, GB/s", backgroundColor: colors[0]!,
         data: done.map((row) => row[3])}], "bus bandwidth, GB/s", gigabytes);
  element("algorithms").replaceChildren();
  table(element("algorithms"), ["algorithm", "time", "algbw, GB/s", "busbw, GB/s", "flow-level", ""],
        collectives.map(([name, seconds, algbw, busbw, flows, mistake]) => [
          name, seconds > 0 ? time(seconds * 1e6) : "-", gigabytes(algbw), gigabytes(busbw),
          flows === null ? "-" : time(flows * 1e6), mistake]));
}

function drawAccounts(accounts: NonNullable<Report["accounts"]>,
                      idle: NonNullable<Report["idle"]>): void {
  stacked("accounts", accounts.map((account) => ({name: account.name, parts: [
    ...account.rows.map(([purpose, us]): [string, number] => [purpose, us]),
    ...account.rows.map(([purpose, , us]): [string, number] => [`idle: ${purpose}`, us])]})));
  const words = ([gpu, part]: [number, number]) => `${percent(part)} (GPU ${gpu})`;
  element("idle").textContent = `Computing, and idle before what it waited for. GPUs were idle ` +
      `for ${words(idle.least)} to ${words(idle.most)} of the time, the median is ` +
      `${words(idle.median)}. Shown are those with the least and the most.`;
}
