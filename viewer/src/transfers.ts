// The table of flows or messages: those that lost most time, or those through what is selected.
import type {Report, Run, TransferRow} from "./data";
import {add, element} from "./dom";
import {count, size, time} from "./format";
import type {Explainer} from "./why";

const kShownRows = 50;

interface Column { name: string; key: (row: TransferRow) => number }

export class TransferTable {
  private rows: number[] = [];
  private sortedBy = "lost";
  private ascending = false;
  private shown = kShownRows;

  constructor(private readonly report: Report, private readonly run: Run,
              private readonly explainer: Explainer,
              private readonly pick: (row: TransferRow) => void) {}

  show(rows: number[], heading: string, note: string): void {
    this.rows = rows;
    this.shown = kShownRows;
    element("transfers_heading").textContent = heading;
    element("transfers_note").textContent = note;
    this.draw();
  }

  private end(row: TransferRow): number { return row[4] ?? this.run.end_us; }
  private lost(row: TransferRow): number {
    return row[4] === null ? Infinity : row[4] - row[3] - row[5];
  }
  private columns(): Column[] {
    const what = this.report.kind === "job" ? ["posted", "took"] : ["start", "took"];
    return [{name: "source", key: (row) => row[0]}, {name: "destination", key: (row) => row[1]},
            {name: "bytes", key: (row) => row[2]}, {name: what[0]!, key: (row) => row[3]},
            {name: what[1]!, key: (row) => this.end(row) - row[3]},
            {name: "lost", key: (row) => this.lost(row)},
            {name: "slowdown", key: (row) => (this.end(row) - row[3]) / row[5]}];
  }
  private nameOf(end: number): string {
    if (this.report.kind === "scenario") return this.report.nodes!.name[end]!;
    const node = this.report.gpus?.[end]?.[0];
    const name = node === undefined ? undefined : this.report.nodes?.name[node];
    return name ? `GPU ${end} (${name})` : `GPU ${end}`;
  }
  private draw(): void {
    const parent = element("transfers"), columns = this.columns();
    parent.replaceChildren();
    if (this.rows.length === 0) return;
    const table = add(parent, "table", undefined, {class: "transfers"});
    const head = add(add(table, "thead"), "tr");
    for (const column of columns) {
      const cell = add(head, "th", undefined, {scope: "col"});
      const isSorted = column.name === this.sortedBy;
      cell.setAttribute("aria-sort", isSorted ? this.ascending ? "ascending" : "descending" : "none");
      const mark = isSorted ? this.ascending ? " ▲" : " ▼" : "";
      add(cell, "button", column.name + mark, {type: "button"}).addEventListener("click", () => {
        this.ascending = isSorted && !this.ascending;
        this.sortedBy = column.name;
        this.draw();
        parent.querySelectorAll<HTMLElement>("th button")[columns.indexOf(column)]!.focus();
      });
    }
    add(head, "th", "what slowed it", {scope: "col", class: "why"});
    const key = columns.find((column) => column.name === this.sortedBy)!.key;
    const all = this.run.transfers.rows, sign = this.ascending ? 1 : -1;
    const compare = (a: number, b: number) => {
      const [x, y] = [key(all[a]!), key(all[b]!)];
      return x === y ? a - b : (x < y ? -1 : 1) * sign;
    };
    const body = add(table, "tbody");
    for (const i of [...this.rows].sort(compare).slice(0, this.shown)) this.addRow(body, all[i]!);
    if (this.rows.length > this.shown)
      add(parent, "button", `Show more (${count(this.rows.length - this.shown)} left)`,
          {type: "button", class: "more"}).addEventListener("click", () => {
        const before = this.shown;
        this.shown += 4 * kShownRows;
        this.draw();
        parent.querySelectorAll<HTMLElement>("td button")[before]?.focus();
      });
  }
  private addRow(body: Element, row: TransferRow): void {
    const line = add(body, "tr"), first = add(line, "td");
    const button = add(first, "button", this.nameOf(row[0]),
                       {type: "button", title: "shows its path in the drawing"});
    button.addEventListener("click", () => {
      body.querySelector("tr.selected")?.classList.remove("selected");
      line.classList.add("selected");
      this.pick(row);
    });
    const lost = this.lost(row);
    for (const text of [this.nameOf(row[1]), size(row[2]), time(row[3]),
                        row[4] === null ? "not ended" : time(row[4] - row[3]),
                        Number.isFinite(lost) ? time(Math.max(0, lost)) : "–",
                        ((this.end(row) - row[3]) / row[5]).toFixed(2)])
      add(line, "td", text);
    const lane = row[7] === undefined ? "" : `lane ${row[7]}: `;
    add(line, "td", lane + this.explainer.why(row), {class: "why"});
  }
}
