// What slowed a flow or a message: what the links of its path did while it was under way. Each cause
// is weighed by the time that it can have cost; the greatest are named.
import {directionName, linkName, type Report, type Run, type TransferRow, type Use} from "./data";
import {count, percent, plural, size, time} from "./format";

const kLittle = 0.05;       // of the time alone: not slowed
const kBusy = 0.7;          // a link with so much load is taken for shared
const kWorthNaming = 0.3;   // of the greatest cause

interface Cause { us: number; words: string }

function ofSamePair(row: TransferRow, others: TransferRow[]): string {
  const same = others.filter((other) => other[0] === row[0] && other[1] === row[1]).length;
  if (same === 0) return "";
  return ` (${same === others.length ? "all" : count(same)} of the same two ends)`;
}

export class Explainer {
  private readonly byDirection = new Map<number, number[]>();

  constructor(private readonly report: Report, private readonly run: Run,
              private readonly use: Use) {
    run.transfers.rows.forEach((row, i) => {
      for (const direction of this.pathOf(row)) {
        const list = this.byDirection.get(direction);
        if (list) list.push(i);
        else this.byDirection.set(direction, [i]);
      }
    });
  }
  pathOf(row: TransferRow): number[] { return this.run.transfers.paths[row[6]] ?? []; }
  // Rows, the slowest first.
  through(directions: Iterable<number>): number[] {
    const found = new Set<number>();
    for (const direction of directions)
      for (const i of this.byDirection.get(direction) ?? []) found.add(i);
    return [...found].sort((a, b) => a - b);
  }

  why(row: TransferRow): string {
    const [, , , start, end, alone] = row;
    const until = end ?? this.run.end_us, lost = until - start - alone;
    const first = end === null ? "has not ended; " : "";
    if (end !== null && lost <= kLittle * alone) return "nothing: it took what it takes alone";
    const path = this.pathOf(row);
    if (path.length === 0) return `${first}no path in the network: it stayed in its server`;
    const causes = [...this.faults(path, start, until),
                    ...path.flatMap((direction) => this.ofDirection(row, direction, start, until))]
        .filter((cause) => cause.us > 0).sort((a, b) => b.us - a.us);
    const worth = causes.filter((cause) => cause.us >= kWorthNaming * causes[0]!.us &&
                                           cause.us >= kLittle * lost).slice(0, 2);
    if (worth.length) return first + worth.map((cause) => cause.words).join("; ");
    const busiest = Math.max(...path.map((direction) => this.load(direction, start, until)));
    return `${first}its sender: no link of its path was busier than ${percent(busiest)} ` +
        "(congestion control, retransmission or the host)";
  }

  private faults(path: number[], start: number, until: number): Cause[] {
    const links = new Set(path.map((direction) => direction >> 1));
    return (this.report.faults ?? []).filter((fault) => links.has(fault.link)).map((fault) => {
      const from = Math.max(start, fault.at_us ?? start);
      const overlap = Math.min(until, fault.until_us ?? until) - from;
      const name = linkName(this.report, fault.link);
      if (fault.what === "rules") return {us: overlap / 10, words: `faults injected on ${name}`};
      return {us: overlap, words: fault.what === "down" ?
          `${name} was down from ${time(fault.at_us ?? 0)}` : `${fault.what} on ${name}`};
    });
  }
  private ofDirection(row: TransferRow, direction: number, start: number, until: number): Cause[] {
    const name = directionName(this.report, direction);
    const paused = this.sum("paused", direction, start, until) / 1000;
    const queue = this.most(direction, start, until);
    const bps = this.report.links!.bps[direction >> 1]!;
    const load = this.load(direction, start, until);
    const held = this.report.held ?? "paused";
    const causes: Cause[] = [
      {us: paused, words: `${held} for ${time(paused)} at ${name}`},
      {us: queue * 8e6 / bps, words: `queue of up to ${size(queue)} at ${name}`}];
    const others = this.others(row, direction, start, until);
    if (load >= kBusy && others.length > 0) {
      const own = row[2] * 8e6 / bps;
      const atLeast = this.run.transfers.all > this.run.transfers.rows.length ? "at least " : "";
      causes.push({us: load * (until - start) - own, words: `shared ${name}, ${percent(load)} busy, ` +
          `with ${atLeast}${plural(others.length, "other")}${ofSamePair(row, others)}`});
    }
    return causes;
  }
  // Those that were under way over the direction at the same time.
  private others(row: TransferRow, direction: number, start: number, until: number):
      TransferRow[] {
    return (this.byDirection.get(direction) ?? []).map((i) => this.run.transfers.rows[i]!)
        .filter((other) => other !== row && other[3] < until &&
                           (other[4] ?? this.run.end_us) > start);
  }
  // Values times the time for which they held, in microseconds.
  private sum(quantity: "paused" | "load", direction: number, start: number, until: number): number {
    const values = this.use.of(quantity, direction);
    if (!values) return 0;
    const step = this.use.data.point_us;
    let total = 0;
    for (let i = this.use.pointAt(start); i <= this.use.pointAt(until); ++i)
      total += values[i]! * Math.max(0, Math.min(until, (i + 1) * step) - Math.max(start, i * step));
    return total;
  }
  private load(direction: number, start: number, until: number): number {
    return this.sum("load", direction, start, until) / 1000 / Math.max(1e-9, until - start);
  }
  private most(direction: number, start: number, until: number): number {
    const values = this.use.of("queue", direction);
    if (!values) return 0;
    let most = 0;
    for (let i = this.use.pointAt(start); i <= this.use.pointAt(until); ++i) most = Math.max(most, values[i]!);
    return most;
  }
}
