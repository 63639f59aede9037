// The topology as an SVG picture: items of a tree, and the links between them, coloured and drawn
// wider by an amount.
import {add, svg} from "../dom";
import {plural} from "../format";
import {ramp} from "../theme";
import {layoutOf, type Frame, type Layout, type Place} from "./layout";
import type {Bundle, Item, Tree} from "./tree";
import {Zoom} from "./zoom";

export interface LinkLook {
  value: number;  // 0 .. 1
  isFaulty: boolean; isInCircle: boolean; isOnPath: boolean;
  text: string;
}
export type Picked = {bundle: Bundle} | {item: Item};
export interface DrawingEvents {
  look(bundle: Bundle): LinkLook;
  pick(picked: Picked): void;
  say(words: string): void;
}
interface Room { room: number; longest: number }  // longest: characters
interface Label extends Room { text: SVGTextElement; up: boolean; away: number }
interface Line { bundle: Bundle; path: SVGPathElement; cross: SVGPathElement; from: Place; to: Place; bend: number }

const kNear = 7;  // pixels
const kDense = 300;  // lines: thinner ones then

const valueOf = (line: Line) => Number(line.path.dataset["value"]);

export const describe = (item: Item): string => {
  if (item.kind === "switch" || item.kind === "host") return `${item.kind} ${item.label}`;
  return `${item.label}, ${plural(item.nodes.length, "node")}`;
};

export class Drawing {
  readonly picture: SVGSVGElement;
  private readonly zoom: Zoom;
  private readonly tip: HTMLElement;
  private layout: Layout;
  private lines: Line[] = [];
  private labels: Label[] = [];
  private bodies = new Map<Item, SVGGElement>();
  private cursor: Item | null = null;
  private selection: Picked | null = null;

  constructor(parent: HTMLElement, private tree: Tree, private readonly events: DrawingEvents) {
    this.layout = layoutOf(tree);
    this.picture = svg(parent, "svg", {
      width: "100%", role: "application", tabindex: 0, id: "picture",
      "aria-label": "topology: arrow keys move between switches and hosts, Enter selects, " +
          "E expands, C collapses, plus and minus zoom, 0 shows all"});
    this.tip = add(parent, "div", "", {class: "tip", hidden: ""});
    this.zoom = new Zoom(this.picture, () => this.sizeLines());
    this.picture.addEventListener("click", (event) => this.onClick(event));
    this.picture.addEventListener("dblclick", (event) => this.onDoubleClick(event));
    this.picture.addEventListener("pointermove", (event) => this.hover(event));
    this.picture.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.picture.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.sizeLines()).observe(this.picture);
    this.show(tree);
  }

  // --- what is drawn

  show(tree: Tree): void {
    this.tree = tree;
    this.cursor = null;
    this.rebuild();
    this.zoom.fit(this.layout.width, this.layout.height);
  }
  rebuild(): void {
    this.layout = layoutOf(this.tree);
    this.picture.replaceChildren();
    this.lines = [];
    this.labels = [];
    this.bodies.clear();
    for (const frame of this.layout.frames) {
      svg(this.picture, "rect", {class: "frame", x: frame.x, y: frame.y, width: frame.width,
                                 height: frame.height, rx: 6});
    }
    const bundles = this.tree.bundles();
    for (const bundle of bundles) this.addLine(bundle);
    const room = this.roomInRows();
    for (const place of this.layout.places.values()) this.addBody(place, room);
    for (const frame of this.layout.frames) this.addFrameLabel(frame);
    this.picture.style.maxHeight = "620px";
    this.picture.style.aspectRatio = `${this.layout.width} / ${this.layout.height}`;
    this.zoom.resize(this.layout.width, this.layout.height);
    this.select(this.selection);
    this.rank();
  }
  private addLine(bundle: Bundle): void {
    const from = this.layout.places.get(bundle.a)!, to = this.layout.places.get(bundle.b)!;
    const isFlat = from.y === to.y;
    const bend = isFlat ? -Math.min(60, 14 + Math.abs(from.x - to.x) / 8) : 0;
    const path = svg(this.picture, "path", {
      class: "link", fill: "none",
      d: `M${from.x} ${from.y} Q${(from.x + to.x) / 2} ${(from.y + to.y) / 2 + 2 * bend} ${to.x} ${to.y}`});
    const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2 + bend];
    const cross = svg(this.picture, "path", {
      class: "cross", d: `M${x - 5} ${y - 5}L${x + 5} ${y + 5}M${x + 5} ${y - 5}L${x - 5} ${y + 5}`});
    this.lines.push({bundle, path, cross, from, to, bend});
  }
  // How far neighbours in a row are apart, at least, and how long their longest name is.
  private roomInRows(): Map<string, Room> {
    const rows = new Map<string, Place[]>();
    for (const place of this.layout.places.values()) {
      const row = rows.get(rowOf(place));
      if (row) row.push(place);
      else rows.set(rowOf(place), [place]);
    }
    const rooms = new Map<string, Room>();
    for (const [key, row] of rows) {
      row.sort((a, b) => a.x - b.x);
      const room = row.reduce((least, place, i) => i ? Math.min(least, place.x - row[i - 1]!.x) : least, 200);
      rooms.set(key, {room, longest: Math.max(...row.map((place) => place.item.label.length))});
    }
    return rooms;
  }
  private addLabel(parent: Element, words: string, label: Omit<Label, "text">): void {
    this.labels.push({text: svg(parent, "text", {"text-anchor": "middle"}, words), ...label});
  }
  // A group of hosts is known by its switches.
  private addFrameLabel(frame: Frame): void {
    if (frame.item.kind === "group" && frame.item.level < 2) return;
    const group = svg(this.picture, "g", {
      class: "framename", transform: `translate(${frame.x + frame.width / 2} ${frame.y + frame.height})`});
    this.addLabel(group, frame.item.label, {
      room: frame.width, longest: frame.item.label.length, up: true, away: 2});
  }
  private addBody(place: Place, rooms: Map<string, Room>): void {
    const {item, x, y} = place, {room, longest} = rooms.get(rowOf(place))!;
    const body = svg(this.picture, "g", {
      class: `item ${item.kind}`, id: `item${item.id}`, role: "img",
      transform: `translate(${x} ${y})`,
      "aria-label": describe(item) + (item.children.length ? ", collapsed" : "")});
    this.bodies.set(item, body);
    svg(body, "title", {}, describe(item));
    if (item.children.length) {
      const width = Math.min(58, Math.max(18, room - 8));
      svg(body, "rect", {class: "stack", x: -width / 2 + 4, y: -8, width, height: 22, rx: 4});
      svg(body, "rect", {class: "box", x: -width / 2, y: -12, width, height: 22, rx: 4});
      svg(body, "text", {y: 3, "text-anchor": "middle", class: "inside"}, `${item.nodes.length}`);
    } else if (item.kind === "switch") {
      svg(body, "rect", {class: "box", x: -11, y: -8, width: 22, height: 16, rx: 3});
    } else {
      svg(body, "circle", {class: "box", r: 6});
    }
    const up = item.level > 0;
    this.addLabel(body, item.label, {room, longest, up, away: up ? 11 : item.children.length ? 15 : 8});
  }

  // --- amounts

  // The greatest amounts on top.
  rank(): void {
    this.recolor();
    const byValue = [...this.lines].sort((a, b) => valueOf(a) - valueOf(b));
    const first = [...this.bodies.values()][0];
    if (!first) return;
    for (const {path} of byValue) this.picture.insertBefore(path, first);
    for (const {cross} of byValue) this.picture.insertBefore(cross, first);
  }
  recolor(): void {
    const isDense = this.lines.length > kDense;
    for (const line of this.lines) {
      const look = this.events.look(line.bundle);
      const {path, cross} = line;
      path.style.stroke = ramp(look.value);
      path.dataset["value"] = look.value.toFixed(3);
      const least = isDense ? 0.4 : line.bundle.links.length > 1 ? 1.6 : 1.1;
      path.style.setProperty("--wide", (least + (isDense ? 2.4 : 3) * look.value).toFixed(2));
      path.classList.toggle("faulty", look.isFaulty);
      path.classList.toggle("circle", look.isInCircle);
      path.classList.toggle("onpath", look.isOnPath);
      cross.style.display = look.isFaulty ? "" : "none";
    }
  }
  // Widths are of the screen: the style multiplies them by this.
  private sizeLines(): void {
    const pixel = this.zoom.pixel;
    this.picture.style.setProperty("--pixel", String(pixel));
    for (const {text, room, longest, up, away} of this.labels) {
      text.style.display = longest * 6.9 * pixel <= room ? "" : "none";
      text.setAttribute("y", String(up ? -away - 3 * pixel : away + 11 * pixel));
    }
  }

  // --- choices

  select(picked: Picked | null): void {
    this.selection = picked;
    const links = new Set(picked && "bundle" in picked ? picked.bundle.links : []);
    for (const {bundle, path} of this.lines)
      path.classList.toggle("selected", bundle.links.some((link) => links.has(link)));
    for (const [item, body] of this.bodies)
      body.classList.toggle("selected", picked !== null && "item" in picked && picked.item === item);
  }
  zoomBy(factor: number): void { this.zoom.by(factor); }
  showAll(): void { this.zoom.all(); }
  expand(item: Item): void {
    if (!item.children.length) return;
    item.expanded = true;
    this.rebuild();
    this.moveTo(item.children[0]!.expanded ? this.tree.visible()[0]! : item.children[0]!);
    this.events.say(`${item.label} expanded: ${plural(item.children.length, "item")}`);
  }
  collapse(item: Item): void {
    const group = item.expanded ? item : item.parent;
    if (!group || !group.parent && group.kind === "group") return;
    group.expanded = false;
    this.rebuild();
    this.moveTo(group);
    this.events.say(`${group.label} collapsed`);
  }
  // Shows the item as the one that keys act on.
  moveTo(item: Item): void {
    this.bodies.get(this.cursor!)?.classList.remove("cursor");
    const body = this.bodies.get(item);
    if (!body) return;
    this.cursor = item;
    body.classList.add("cursor");
    this.picture.setAttribute("aria-activedescendant", body.id);
    const {x, y} = this.layout.places.get(item)!;
    this.zoom.reveal(x, y);
  }

  // --- mouse

  private itemAt(event: MouseEvent): Item | null {
    const body = (event.target as Element).closest("g.item");
    if (!body) return null;
    for (const [item, its] of this.bodies) if (its === body) return item;
    return null;
  }
  private lineAt(event: MouseEvent): Line | null {
    const [x, y] = this.zoom.place(event);
    let best: Line | null = null, least = kNear * this.zoom.pixel;
    for (const line of this.lines) {
      const away = distance(line, x, y);
      if (away < least) { least = away; best = line; }
    }
    return best;
  }
  private onClick(event: MouseEvent): void {
    if (this.zoom.moved) return;
    const item = this.itemAt(event);
    if (item) {
      this.moveTo(item);
      return this.events.pick({item});
    }
    const line = this.lineAt(event);
    if (line) this.events.pick({bundle: line.bundle});
  }
  private onDoubleClick(event: MouseEvent): void {
    const item = this.itemAt(event);
    if (!item) return;
    if (item.children.length) this.expand(item);
    else this.collapse(item);
  }
  private hover(event: PointerEvent): void {
    const line = this.itemAt(event) ? null : this.lineAt(event);
    this.tip.hidden = !line;
    this.picture.style.cursor = line ? "pointer" : "";
    if (!line) return;
    this.tip.textContent = this.events.look(line.bundle).text;
    const box = this.picture.parentElement!.getBoundingClientRect();
    this.tip.style.left = `${Math.min(event.clientX - box.left + 12, box.width - 260)}px`;
    this.tip.style.top = `${event.clientY - box.top + 14}px`;
  }

  // --- keys

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const at = this.cursor;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.step(-1, 0, event.shiftKey), ArrowRight: () => this.step(1, 0, event.shiftKey),
      ArrowUp: () => this.step(0, -1, event.shiftKey), ArrowDown: () => this.step(0, 1, event.shiftKey),
      "+": () => this.zoom.by(0.7), "=": () => this.zoom.by(0.7), "-": () => this.zoom.by(1.4),
      "0": () => this.zoom.all(),
      Enter: () => at && this.events.pick({item: at}), " ": () => at && this.events.pick({item: at}),
      e: () => at && this.expand(at), c: () => at && this.collapse(at),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
  // To the nearest item that way; with shift the picture moves.
  private step(dx: number, dy: number, moves: boolean): void {
    if (moves) return this.zoom.pan(dx / 5, dy / 5);
    const places = [...this.layout.places.values()];
    const from = this.cursor && this.layout.places.get(this.cursor);
    if (!from) return this.moveTo(places[0]!.item);
    let best: Place | null = null, least = Infinity;
    for (const place of places) {
      const along = (place.x - from.x) * dx + (place.y - from.y) * dy;
      const aside = Math.abs((place.x - from.x) * dy) + Math.abs((place.y - from.y) * dx) * 20;
      if (along > 0.5 && along + aside < least) { least = along + aside; best = place; }
    }
    if (!best) return;
    this.moveTo(best.item);
    this.events.say(describe(best.item));
  }
}

const rowOf = ({item, y}: Place) => `${item.children.length > 0} ${item.kind === "host"} ${y}`;
// From a point to a line, which may be bent.
function distance({from, to, bend}: Line, x: number, y: number): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const part = Math.max(0, Math.min(1, ((x - from.x) * dx + (y - from.y) * dy) / (dx * dx + dy * dy || 1)));
  const up = 4 * part * (1 - part) * bend;
  return Math.hypot(x - from.x - part * dx, y - from.y - part * dy - up);
}
