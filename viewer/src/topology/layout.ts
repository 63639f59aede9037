// Where the items of a tree are drawn: a row for each tier, each group above what hangs on it.
import type {Item, Tree} from "./tree";

export interface Place { item: Item; x: number; y: number }
export interface Frame { item: Item; x: number; y: number; width: number; height: number }
export interface Layout { places: Map<Item, Place>; frames: Frame[]; width: number; height: number }

const kGap = 104, kMostLowGap = 220, kTop = 44, kBottom = 48, kPadding = 7;
const kShape = 2.6;          // wider drawings get higher rows
const kMostSpread = 2.2;     // of what a row needs, where there is room

const widthOfOne = (item: Item): number => {
  if (item.children.length) return item.kind === "hosts" ? 48 : 62;
  return item.kind === "host" ? 22 : 38;
};
const isTop = (item: Item, of: Item) =>
    (item.kind === "switch" || item.kind === "switches") && item.level === of.level;
const sum = (items: Item[]): number => items.reduce((total, item) => total + widthOf(item), 0);

// The switches of a group stand above its other items; items of a set stand side by side.
function widthOf(item: Item): number {
  if (!item.expanded || !item.children.length) return widthOfOne(item);
  if (item.kind !== "group") return sum(item.children) + 2 * kPadding;
  const top = item.children.filter((child) => isTop(child, item));
  const below = item.children.filter((child) => !isTop(child, item));
  return Math.max(sum(top), sum(below), 60) + 2 * kPadding;
}

// Hosts are near their switches.
const lowGap = (gap: number) => Math.min(gap, kMostLowGap);
const yOf = (level: number, levels: number, gap: number): number =>
    level > 0 ? kTop + (levels - level) * gap : kTop + (levels - 1) * gap + lowGap(gap);

class Placer {
  readonly places = new Map<Item, Place>();
  readonly frames: Frame[] = [];
  constructor(private readonly levels: number, private readonly gap: number) {}

  private y(level: number): number { return yOf(level, this.levels, this.gap); }

  place(item: Item, left: number, width: number): void {
    if (!item.expanded || !item.children.length) {
      this.places.set(item, {item, x: left + width / 2, y: this.y(item.level)});
      return;
    }
    if (item.kind === "group") {
      this.inRow(item.children.filter((child) => isTop(child, item)), left, width);
      this.inRow(item.children.filter((child) => !isTop(child, item)), left, width);
    } else {
      this.inRow(item.children, left, width);
    }
    this.frame(item, left, width);
  }
  private inRow(items: Item[], left: number, width: number): void {
    const inner = width - 2 * kPadding, each = inner / (sum(items) || 1);
    let x = left + kPadding;
    for (const item of items) {
      const own = widthOf(item) * each;
      const isSpread = item.expanded && item.children.length > 0;
      const fits = isSpread ? Math.min(own, kMostSpread * widthOf(item)) : own;
      this.place(item, x + (own - fits) / 2, fits);
      x += own;
    }
  }
  private frame(item: Item, left: number, width: number): void {
    const isFramed = (item.kind === "group" && item.parent !== null) || item.kind === "server";
    if (!isFramed) return;
    const lowest = Math.min(...item.nodes.length ? this.levelsIn(item) : [item.level]);
    const y = this.y(item.level) - 30;
    this.frames.push({item, x: left + 2, y, width: width - 4, height: this.y(lowest) + 34 - y});
  }
  private levelsIn(item: Item): number[] {
    if (!item.expanded || !item.children.length) return [item.level];
    return item.children.flatMap((child) => this.levelsIn(child));
  }
}

export function layoutOf(tree: Tree): Layout {
  const rows = [tree.roots.filter((root) => root.kind !== "servers"),
                tree.roots.filter((root) => root.kind === "servers")].filter((row) => row.length);
  const width = Math.max(700, ...rows.map((row) => sum(row)));
  const levels = Math.max(1, tree.levels);
  const gap = Math.max(kGap, (width / kShape - kTop - kBottom) / levels);
  const placer = new Placer(levels, gap);
  for (const row of rows) {
    const each = width / sum(row);
    let x = 0;
    for (const root of row) {
      const own = widthOf(root) * each;
      placer.place(root, x, own);
      x += own;
    }
  }
  const lowest = Math.min(...[...placer.places.values()].map((place) => place.item.level));
  return {places: placer.places, frames: placer.frames, width,
          height: yOf(lowest, levels, gap) + kBottom};
}
