// The network as a tree of groups, so that thousands of nodes can be drawn as some dozens of items.
//
// A group of tier t is a part of the network that hangs together by switches up to that tier: a pod
// of a Clos network, a rail, a switch with its hosts. It has its switches of tier t, and the groups
// below them. Arranged by servers, hosts hang on no group: they stand in a row of servers, so that
// rails and planes are seen as such.
import type {Links, Nodes} from "../data";

export type Kind = "group" | "switches" | "hosts" | "servers" | "server" | "switch" | "host";
export interface Item {
  id: number; kind: Kind; level: number; label: string;
  children: Item[]; parent: Item | null; expanded: boolean;
  nodes: number[];  // all that are in it
}
export type Arrangement = "switch" | "server";

const kBlock = 32, kMostSiblings = 64;
const kMostItems = 170, kMostBundles = 1400;

export interface Bundle { a: Item; b: Item; links: number[] }

export class Tree {
  readonly roots: Item[] = [];
  readonly levels: number;
  private readonly neighbours: number[][];
  private nextId = 0;

  // servers: of each node, -1: none.
  constructor(readonly nodes: Nodes, readonly links: Links, readonly servers: number[],
              arrangement: Arrangement) {
    this.levels = Math.max(...nodes.tier, 0);
    this.neighbours = nodes.name.map(() => []);
    links.a.forEach((a, i) => {
      this.neighbours[a]!.push(links.b[i]!);
      this.neighbours[links.b[i]!]!.push(a);
    });
    const all = nodes.name.map((_, node) => node);
    const shown = arrangement === "server" ? all.filter((node) => nodes.is_switch[node]) : all;
    const groups = this.groupsOf(this.levels, shown);
    this.roots.push(...this.inBlocks(groups, "group"));
    if (arrangement === "server") this.roots.push(this.serverRow(all));
    this.expandToFit();
  }

  private item(kind: Kind, level: number, label: string, children: Item[], nodes?: number[]): Item {
    const item: Item = {id: this.nextId++, kind, level, label, children, parent: null,
                        expanded: false, nodes: nodes ?? children.flatMap((child) => child.nodes)};
    for (const child of children) child.parent = item;
    return item;
  }
  private leaf(node: number): Item {
    const isSwitch = this.nodes.is_switch[node] === 1;
    return this.item(isSwitch ? "switch" : "host", this.nodes.tier[node]!, this.nodes.name[node]!,
                     [], [node]);
  }

  // Of nodes whose tiers are `level` at most.
  private groupsOf(level: number, nodes: number[]): Item[] {
    if (nodes.length === 0) return [];
    return this.partsOf(nodes).flatMap((part) => {
      const top = part.filter((node) => this.nodes.tier[node] === level);
      const rest = part.filter((node) => this.nodes.tier[node] !== level);
      if (top.length === 0 && level > 0) return this.groupsOf(level - 1, rest);
      return [this.group(level, top, rest)];
    });
  }
  private group(level: number, top: number[], rest: number[]): Item {
    if (level === 0) return this.leaf(top[0]!);
    const switches = top.length === 1 ? [this.leaf(top[0]!)] :
        [this.set("switches", level, top.map((node) => this.leaf(node)))];
    const hosts = level === 1 ? rest : rest.filter((node) => this.isDirectHost(node, top));
    const below = level === 1 ? [] : this.groupsOf(level - 1, rest.filter((n) => !hosts.includes(n)));
    const children = [...switches, ...this.inBlocks(below, "group")];
    if (hosts.length > 0)
      children.push(hosts.length === 1 ? this.leaf(hosts[0]!) :
          this.set("hosts", 0, hosts.map((node) => this.leaf(node))));
    return this.item("group", level, this.groupName(level, top, children), children);
  }
  // A host whose only switches are these.
  private isDirectHost(node: number, top: number[]): boolean {
    return !this.nodes.is_switch[node] && this.neighbours[node]!.every((n) => top.includes(n));
  }
  private groupName(level: number, top: number[], children: Item[]): string {
    if (level === this.levels) return "network";
    if (top.length === 1) return this.nodes.name[top[0]!]!;
    const first = /^\D*(\d+)\./.exec(this.nodes.name[top[0]!]!)?.[1];
    const isPod = children.some((child) => child.kind === "group");
    if (first !== undefined && isPod) return `pod ${first}`;
    return `${this.nodes.name[top[0]!]} … ${this.nodes.name[top.at(-1)!]}`;
  }

  // Parts that hang together.
  private partsOf(nodes: number[]): number[][] {
    const left = new Set(nodes), parts: number[][] = [];
    for (const start of nodes) {
      if (!left.delete(start)) continue;
      const part = [start];
      for (let i = 0; i < part.length; ++i)
        for (const next of this.neighbours[part[i]!]!) if (left.delete(next)) part.push(next);
      parts.push(part.sort((a, b) => a - b));
    }
    return parts;
  }

  private set(kind: Kind, level: number, members: Item[]): Item {
    const what = {switches: "switches", hosts: "hosts", servers: "servers", group: "groups",
                  server: "NICs", switch: "", host: ""}[kind];
    const children = this.inBlocks(members, kind);
    return this.item(kind, level, `${members.length} ${what}`, children);
  }
  // Many siblings become blocks of some.
  private inBlocks(members: Item[], kind: Kind): Item[] {
    if (members.length <= kMostSiblings) return members;
    const blocks: Item[] = [];
    const each = Math.max(kBlock, Math.ceil(members.length / kMostSiblings));
    for (let i = 0; i < members.length; i += each) {
      const some = members.slice(i, i + each);
      blocks.push(this.item(kind, some[0]!.level, `${some[0]!.label} … ${some.at(-1)!.label}`, some));
    }
    return blocks;
  }
  private serverRow(all: number[]): Item {
    const byServer = new Map<number, number[]>();
    for (const node of all) {
      if (this.nodes.is_switch[node]) continue;
      const server = this.servers[node]!;
      const members = byServer.get(server);
      if (members) members.push(node);
      else byServer.set(server, [node]);
    }
    const servers = [...byServer].map(([server, members]) =>
        this.item("server", 0, server < 0 ? "others" : `server ${server}`,
                  members.map((node) => this.leaf(node))));
    return this.set("servers", 0, servers);
  }

  // --- what is drawn

  visible(): Item[] {
    const items: Item[] = [];
    const walk = (item: Item) => {
      if (item.expanded && item.children.length) item.children.forEach(walk);
      else items.push(item);
    };
    this.roots.forEach(walk);
    return items;
  }
  expandedItems(): Item[] {
    const items: Item[] = [];
    const walk = (item: Item) => {
      if (!item.expanded || !item.children.length) return;
      items.push(item);
      item.children.forEach(walk);
    };
    this.roots.forEach(walk);
    return items;
  }
  // The links between the items that are drawn, by pairs of items.
  bundles(visible = this.visible()): Bundle[] {
    const itemOf: (Item | undefined)[] = [];
    for (const item of visible) for (const node of item.nodes) itemOf[node] = item;
    const bundles = new Map<number, Bundle>();
    this.links.a.forEach((from, link) => {
      const a = itemOf[from], b = itemOf[this.links.b[link]!];
      if (!a || !b || a === b) return;
      const key = Math.min(a.id, b.id) * this.nextId + Math.max(a.id, b.id);
      const bundle = bundles.get(key);
      if (bundle) bundle.links.push(link);
      else bundles.set(key, {a, b, links: [link]});
    });
    return [...bundles.values()];
  }
  // Expands alike items together, from the top, as long as the drawing is not crowded.
  expandToFit(): void {
    this.collapseAll();
    for (let changed = true; changed;) {
      changed = false;
      const classes = new Map<string, Item[]>();
      for (const item of this.visible())
        if (item.children.length) {
          const key = `${item.kind} ${item.level}`;
          classes.set(key, [...(classes.get(key) ?? []), item]);
        }
      const order = (item: Item) => (item.kind === "hosts" || item.kind === "server" ? -10 : 0) + item.level;
      for (const items of [...classes.values()].sort((a, b) => order(b[0]!) - order(a[0]!))) {
        for (const item of items) item.expanded = true;
        const visible = this.visible();
        if (visible.length <= kMostItems && this.bundles(visible).length <= kMostBundles) {
          changed = true;
          break;
        }
        for (const item of items) item.expanded = false;
      }
    }
  }
  collapseAll(): void {
    const walk = (item: Item) => { item.expanded = false; item.children.forEach(walk); };
    this.roots.forEach(walk);
    for (const root of this.roots) root.expanded = root.children.length > 0;
  }
  // Expands what hides a node. The item that stands for it.
  reveal(node: number): Item {
    const walk = (items: Item[]): Item => {
      const item = items.find((candidate) => candidate.nodes.includes(node))!;
      if (!item.children.length) return item;
      item.expanded = true;
      return walk(item.children);
    };
    return walk(this.roots);
  }
}
