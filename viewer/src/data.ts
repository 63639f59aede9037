// The data in the page, as the simulator writes it: docs/viewer.md describes the format.

export const kFormat = 1;

export interface Nodes { name: string[]; tier: number[]; is_switch: number[] }
export interface Links { a: number[]; b: number[]; bps: number[] }
export interface Fault { link: number; what: string; at_us: number | null; until_us: number | null }

export type Quantity = "load" | "queue" | "paused" | "marks";
export const kQuantities: Quantity[] = ["load", "queue", "paused", "marks"];

// A row of a quantity: the direction, then pairs of a point and the value from there on.
export type Changes = number[];
export interface UseData extends Record<Quantity, Changes[]> {
  points: number; point_us: number; samples_per_point: number;
}
// source, destination, bytes, start, end (null: not ended), time alone, path, and of jobs the lane
export type TransferRow =
    [number, number, number, number, number | null, number, number, number?];
export interface Transfers { all: number; rows: TransferRow[]; paths: number[][] }

export interface Series { name: string; values: number[] }
export interface Bucket {
  most: number; middle: number; flows: number; p50: number; p95: number; p99: number;
}
export interface Lane { gpu: number; lane: string | number; spans: [number, number, never, string][] }
export interface Run {
  end_us: number; times_us: number[];
  flows: [number, number][]; buckets: Bucket[];
  queues: Series[]; loads: Series[]; rates?: Series[];
  utilization: number[];
  paused: {name: string; us: number; part: number}[];
  totals: Record<Quantity, number[]>;
  use: UseData;
  transfers: Transfers;
  timeline?: Lane[];
  path?: [string, number][];
}

export interface Report {
  format: number; kind: "scenario" | "job";
  summary: [string, string][];
  nodes?: Nodes; links?: Links; faults?: Fault[];
  runs: Record<string, Run>;
  // of a scenario
  outcome?: string; complete?: boolean; held?: string; name?: string; seed?: number;
  scenario?: string; deadlock?: string | null; watchdog?: string | null; circle?: number[];
  // of a job
  run?: Record<string, string & number>;
  gpus?: [number, number][];  // node of its NIC, server
  collectives?: [string, number, number, number, number | null, string][];
  operations?: [string, string, string, number, number, number, number, number, number][];
  accounts?: {name: string; rows: [string, number, number][]}[];
  idle?: Record<"least" | "median" | "most", [number, number]>;
  timeline?: Lane[];
  queries?: [string, string][];
}

// The use of links over time, looked up by direction: twice the link's number, and one more for
// what the end b sends.
export class Use {
  readonly points: number;
  private readonly rows = new Map<Quantity, Map<number, Float64Array>>();

  constructor(readonly data: UseData) {
    this.points = data.points;
    for (const quantity of kQuantities) {
      const rows = new Map<number, Float64Array>();
      for (const [direction, ...changes] of data[quantity])
        rows.set(direction!, filled(changes, data.points));
      this.rows.set(quantity, rows);
    }
  }
  has(quantity: Quantity): boolean { return this.rows.get(quantity)!.size > 0; }
  of(quantity: Quantity, direction: number): Float64Array | undefined {
    return this.rows.get(quantity)!.get(direction);
  }
  at(quantity: Quantity, direction: number, point: number): number {
    return this.of(quantity, direction)?.[point] ?? 0;
  }
  // The greatest value of all directions at each point.
  most(quantity: Quantity): Float64Array {
    const most = new Float64Array(this.points);
    for (const row of this.rows.get(quantity)!.values())
      for (let i = 0; i < this.points; ++i) most[i] = Math.max(most[i]!, row[i]!);
    return most;
  }
  // The mean at each point of the directions that had any.
  mean(quantity: Quantity): Float64Array {
    const mean = new Float64Array(this.points), rows = this.rows.get(quantity)!;
    for (const row of rows.values())
      for (let i = 0; i < this.points; ++i) mean[i]! += row[i]! / rows.size;
    return mean;
  }
  pointAt(us: number): number {
    return Math.max(0, Math.min(this.points - 1, Math.floor(us / this.data.point_us)));
  }
}

function filled(changes: number[], points: number): Float64Array {
  const values = new Float64Array(points);
  for (let i = 0; i < changes.length; i += 2)
    values.fill(changes[i + 1]!, changes[i]!, changes[i + 2] ?? points);
  return values;
}

export const linkName = (report: Report, link: number): string =>
    `${report.nodes!.name[report.links!.a[link]!]}-${report.nodes!.name[report.links!.b[link]!]}`;

// "leaf0 -> spine1"
export function directionName(report: Report, direction: number): string {
  const link = direction >> 1, {a, b} = report.links!;
  const [from, to] = direction & 1 ? [b[link]!, a[link]!] : [a[link]!, b[link]!];
  return `${report.nodes!.name[from]} → ${report.nodes!.name[to]}`;
}
