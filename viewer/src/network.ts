// The part of the page about a network: the drawing, the time slider and the table of flows.
import {directionName, kQuantities, linkName, Use, type Fault, type Quantity, type Report, type Run,
        type TransferRow} from "./data";
import {add, element, oncePerFrame} from "./dom";
import {count, percent, plural, size, time} from "./format";
import {showMoment} from "./charts/chart";
import {drawOverview, Player} from "./player";
import {rampGradient} from "./theme";
import {Drawing, describe, type LinkLook, type Picked} from "./topology/drawing";
import {Tree, type Arrangement, type Bundle, type Item} from "./topology/tree";
import {TransferTable} from "./transfers";
import {Explainer} from "./why";

const kListedLinks = 24;

export class NetworkView {
  private quantity: Quantity = "load";
  private tree: Tree;
  private drawing: Drawing;
  private player: Player;
  private run!: Run;
  private use!: Use;
  private explainer!: Explainer;
  private table!: TransferTable;
  private path = new Set<number>();  // links of the flow that was picked
  private picked: Picked | null = null;
  private most = 1;
  private readonly faults: Fault[];
  private readonly faultsOf = new Map<number, Fault[]>();
  private readonly circle: Set<number>;
  private readonly what: string;
  private readonly held: string;

  constructor(private readonly report: Report) {
    this.faults = report.faults ?? [];
    for (const fault of this.faults)
      this.faultsOf.set(fault.link, [...(this.faultsOf.get(fault.link) ?? []), fault]);
    this.circle = new Set(report.circle ?? []);
    this.what = report.kind === "job" ? "message" : "flow";
    this.held = report.held ?? (report.run?.["technology"] === "infiniband" ? "without credits" : "paused");
    this.tree = this.newTree("switch");
    this.drawing = new Drawing(element("topology"), this.tree, {
      look: (bundle) => this.look(bundle),
      pick: (picked) => this.pick(picked),
      say: (words) => { element("announcement").textContent = words; },
    });
    const redraw = oncePerFrame(() => {
      this.drawing.recolor();
      showMoment(this.player.us);
      this.drawKey();
      this.listLinks();
    });
    this.player = new Player(() => { if (this.run) redraw(); });
    this.addControls();
  }

  show(run: Run): void {
    this.run = run;
    this.use = new Use(run.use);
    this.explainer = new Explainer({...this.report, held: this.held}, run, this.use);
    this.table = new TransferTable(this.report, run, this.explainer, (row) => this.showPath(row));
    this.path.clear();
    this.picked = null;
    this.drawing.select(null);
    this.fillQuantities();
    const {points, point_us, samples_per_point} = run.use;
    this.player.reset({points, point_us, end_us: run.end_us});
    element("sampling").textContent = `${plural(points, "moment")} of ${time(point_us)}, each of ` +
        `${plural(samples_per_point, "sample")}: the longest queue, the mean of the others.`;
    this.drawSelection();
    this.changed();
  }
  // After a change of the theme.
  redraw(): void { this.changed(); }

  // --- controls

  private newTree(arrangement: Arrangement): Tree {
    return new Tree(this.report.nodes!, this.report.links!, serversOf(this.report), arrangement);
  }
  private addControls(): void {
    const on = (id: string, act: () => void) => element(id).addEventListener("click", act);
    on("zoom_in", () => this.drawing.zoomBy(0.7));
    on("zoom_out", () => this.drawing.zoomBy(1.4));
    on("zoom_all", () => this.drawing.showAll());
    on("collapse_all", () => { this.tree.collapseAll(); this.drawing.rebuild(); this.drawing.showAll(); });
    on("expand_fit", () => { this.tree.expandToFit(); this.drawing.rebuild(); this.drawing.showAll(); });
    on("clear", () => { this.picked = null; this.path.clear(); this.drawing.select(null);
                        this.drawSelection(); this.drawing.recolor(); });
    const quantity = element<HTMLSelectElement>("quantity");
    quantity.addEventListener("change", () => {
      this.quantity = quantity.value as Quantity;
      this.changed();
    });
    const arrange = element<HTMLSelectElement>("arrange");
    const servers = new Set(serversOf(this.report).filter((server) => server >= 0));
    element("arrange_label").hidden = servers.size < 2;
    arrange.addEventListener("change", () => {
      this.tree = this.newTree(arrange.value as Arrangement);
      this.picked = null;
      this.drawing.show(this.tree);
      this.drawSelection();
    });
    const names = this.report.nodes!.name, find = element<HTMLInputElement>("find");
    const list = element("names");
    for (const name of names.slice(0, 5000)) add(list, "option").value = name;
    find.addEventListener("change", () => {
      const node = names.indexOf(find.value.trim());
      element("found").textContent = node < 0 && find.value ? "no such node" : "";
      if (node < 0) return;
      const item = this.tree.reveal(node);
      this.drawing.rebuild();
      this.drawing.moveTo(item);
      this.pick({item});
    });
  }
  private wordsOf(quantity: Quantity): string {
    return {load: "link use", queue: "queue", paused: `time ${this.held}`, marks: "ECN marks"}[quantity];
  }
  private textOf(quantity: Quantity, value: number): string {
    if (quantity === "queue") return size(value);
    return quantity === "marks" ? count(value) : percent(value / 1000);
  }
  private fillQuantities(): void {
    const chooser = element<HTMLSelectElement>("quantity");
    chooser.replaceChildren();
    for (const quantity of kQuantities) {
      const isThere = this.use.has(quantity) || this.run.totals[quantity].some((value) => value > 0);
      const option = add(chooser, "option", this.wordsOf(quantity) + (isThere ? "" : " (none)"));
      option.value = quantity;
      option.selected = quantity === this.quantity;
    }
  }

  // --- amounts

  private changed(): void {
    const total = this.run.totals[this.quantity].reduce((a, b) => Math.max(a, b), 0);
    const moments = this.use.most(this.quantity).reduce((a, b) => Math.max(a, b), 0);
    this.most = this.quantity === "load" ? 1000 : Math.max(total, moments);
    this.drawing.rank();
    const isLoad = this.quantity === "load";  // some link is busy at nearly all times
    drawOverview(isLoad ? this.use.mean("load") : this.use.most(this.quantity),
                 this.run.use.points * this.run.use.point_us, this.faults,
                 `${isLoad ? "mean" : "greatest"} ${this.wordsOf(this.quantity)}`);
    this.drawKey();
    this.listLinks();
  }
  private scale(): number {
    if (this.quantity === "load") return 1000;
    const point = this.player.point;
    return point === null ? Math.max(1, ...[this.run.totals[this.quantity].reduce((a, b) => Math.max(a, b), 0)]) :
        this.quantity === "marks" ? Math.max(1, this.use.most("marks").reduce((a, b) => Math.max(a, b), 0)) : Math.max(1, this.most);
  }
  private valueOf(direction: number): number {
    const point = this.player.point;
    return point === null ? this.run.totals[this.quantity][direction] ?? 0 :
        this.use.at(this.quantity, direction, point);
  }
  private valueOfLink(link: number): number {
    return Math.max(this.valueOf(2 * link), this.valueOf(2 * link + 1));
  }
  private isFaulty(link: number): boolean {
    const us = this.player.us, step = this.run.use.point_us;
    return (this.faultsOf.get(link) ?? []).some((fault) => us === null || fault.at_us === null ||
        (fault.at_us < us + step && (fault.until_us ?? Infinity) > us));
  }
  private look(bundle: Bundle): LinkLook {
    if (!this.run) return {value: 0, isFaulty: false, isInCircle: false, isOnPath: false, text: ""};
    let most = 0, busiest = bundle.links[0]!;
    for (const link of bundle.links) {
      const value = this.valueOfLink(link);
      if (value > most) { most = value; busiest = link; }
    }
    const faulty = bundle.links.filter((link) => this.isFaulty(link));
    const several = bundle.links.length > 1 ? ` (the most of ${bundle.links.length} links)` : "";
    const fault = faulty.length ? `; ${this.faultText(faulty[0]!)}` : "";
    return {value: most / this.scale(), isFaulty: faulty.length > 0,
            isInCircle: bundle.links.some((link) => this.circle.has(link)),
            isOnPath: bundle.links.some((link) => this.path.has(link)),
            text: `${linkName(this.report, busiest)}: ${this.wordsOf(this.quantity)} ` +
                this.textOf(this.quantity, most) + several + fault};
  }
  private faultText(link: number): string {
    return this.faultsOf.get(link)!.map((fault) => fault.what === "rules" ? "faults injected" :
        `${fault.what}${fault.at_us === null ? "" : ` from ${time(fault.at_us)}`}` +
        (fault.until_us === null ? "" : ` to ${time(fault.until_us)}`)).join(", ");
  }
  private drawKey(): void {
    const key = element("key");
    key.replaceChildren();
    add(key, "span", this.textOf(this.quantity, 0));
    add(key, "i").style.background = rampGradient();
    add(key, "span", `${this.textOf(this.quantity, this.scale())} ${this.wordsOf(this.quantity)}`);
    if (this.faults.length) add(key, "span", "✕ dotted: has faults", {class: "faultkey"});
    if (this.circle.size) add(key, "span", "dashed: the deadlock");
    if (this.path.size) add(key, "span", "outlined: path of the flow", {class: "pathkey"});
  }

  // --- what is selected

  private pick(picked: Picked): void {
    this.picked = picked;
    this.path.clear();
    this.drawing.select(picked);
    this.drawing.recolor();
    this.drawSelection();
    element("announcement").textContent = element("transfers_heading").textContent;
  }
  private linksOf(picked: Picked): number[] {
    if ("bundle" in picked) return picked.bundle.links;
    const inside = new Set(picked.item.nodes), {a, b} = this.report.links!;
    return a.flatMap((from, link) => inside.has(from) !== inside.has(b[link]!) ? [link] : []);
  }
  private allRows(): number[] { return this.run.transfers.rows.map((_, i) => i); }
  private drawSelection(): void {
    const {all, rows} = this.run.transfers, picked = this.picked;
    const kept = rows.length < all ? ` Kept are the ${count(rows.length)} of ${count(all)} ` +
        `${this.what}s that lost most time.` : "";
    element("clear").hidden = picked === null;
    this.listLinks();
    this.drawButtons();
    if (picked === null) {
      const steps = this.report.kind === "job" ? "Slowest steps: messages that lost most time" :
          "Slowest flows, and what slowed them";
      return this.table.show(this.allRows(), steps,
          `A ${this.what} loses what it takes longer than alone. Select a link or a switch in the ` +
          `drawing for the ${this.what}s through it.${kept}`);
    }
    const directions = this.linksOf(picked).flatMap((link) => [2 * link, 2 * link + 1]);
    const through = this.explainer.through(directions);
    const name = "item" in picked ? describe(picked.item) : this.bundleName(picked.bundle);
    this.table.show(through, `${plural(through.length, this.what)} through ${name}`,
                    (through.length ? "Those that lost most time first." : "") + kept);
  }
  private bundleName(bundle: Bundle): string {
    if (bundle.links.length === 1) return `link ${linkName(this.report, bundle.links[0]!)}`;
    return `${bundle.links.length} links ${bundle.a.label} - ${bundle.b.label}`;
  }
  private drawButtons(): void {
    const parent = element("selection_buttons"), picked = this.picked;
    parent.replaceChildren();
    if (!picked || !("item" in picked)) return;
    const button = (words: string, act: (item: Item) => void) =>
        add(parent, "button", words, {type: "button"}).addEventListener("click", () => act(picked.item));
    if (picked.item.children.length) button(`Expand ${picked.item.label}`, (item) => this.drawing.expand(item));
    const group = picked.item.parent;
    if (group?.parent) button(`Collapse ${group.label}`, (item) => this.drawing.collapse(item));
  }
  // The links of what is selected, with their amounts: buttons that select one.
  private listLinks(): void {
    const parent = element("links"), picked = this.picked;
    const focused = (document.activeElement as HTMLElement | null)?.dataset["link"];
    parent.replaceChildren();
    if (!picked || !this.run) return;
    const links = this.linksOf(picked).sort((x, y) => this.valueOfLink(y) - this.valueOfLink(x) || x - y);
    for (const link of links.slice(0, kListedLinks)) {
      const forth = this.textOf(this.quantity, this.valueOf(2 * link));
      const back = this.textOf(this.quantity, this.valueOf(2 * link + 1));
      const button = add(parent, "button", `${linkName(this.report, link)}  ${forth} → ← ${back}`,
                         {type: "button", "data-link": String(link),
                          title: directionName(this.report, 2 * link)});
      if (this.isFaulty(link)) button.classList.add("bad");
      button.addEventListener("click", () => this.pick({bundle: this.oneLink(link)}));
      if (focused === String(link)) button.focus();
    }
    if (links.length > kListedLinks) add(parent, "span", `and ${count(links.length - kListedLinks)} more`);
  }
  private oneLink(link: number): Bundle {
    const around = this.tree.bundles().find((bundle) => bundle.links.includes(link));
    return {...(around ?? {a: this.tree.roots[0]!, b: this.tree.roots[0]!}), links: [link]};
  }
  private showPath(row: TransferRow): void {
    this.path = new Set(this.explainer.pathOf(row).map((direction) => direction >> 1));
    this.drawing.recolor();
    this.drawKey();
    element("announcement").textContent = this.path.size ? "path: " +
        this.explainer.pathOf(row).map((d) => directionName(this.report, d)).join(", ") : "no path";
    const points = this.run.use.points * this.run.use.point_us;
    if (row[3] < points) this.player.show(this.use.pointAt((row[3] + (row[4] ?? this.run.end_us)) / 2));
  }
}

// Of each node: of a job its GPU's server; else as its name "n7.g0" says; -1: none.
function serversOf(report: Report): number[] {
  const servers = report.nodes!.name.map((name, node) => {
    const match = report.nodes!.is_switch[node] ? null : /^n(\d+)\.g\d+$/.exec(name);
    return match ? Number(match[1]) : -1;
  });
  for (const [node, server] of report.gpus ?? []) servers[node] = server;
  return servers;
}
