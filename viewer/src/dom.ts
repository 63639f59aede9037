// Elements of the page.

export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found as T;
}
export function show(id: string, visible = true): HTMLElement {
  const found = element(id);
  (found.closest<HTMLElement>("section") ?? found).hidden = !visible;
  return found;
}
export function add<K extends keyof HTMLElementTagNameMap>(
    parent: Element, tag: K, text?: string, attributes: Record<string, string> = {}):
    HTMLElementTagNameMap[K] {
  const child = document.createElement(tag);
  if (text !== undefined) child.textContent = text;
  for (const [key, value] of Object.entries(attributes)) child.setAttribute(key, value);
  parent.appendChild(child);
  return child;
}
export function svg<K extends keyof SVGElementTagNameMap>(
    parent: Element, tag: K, attributes: Record<string, string | number>, text?: string):
    SVGElementTagNameMap[K] {
  const child = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) child.setAttribute(key, String(value));
  if (text !== undefined) child.textContent = text;
  parent.appendChild(child);
  return child;
}
export function table(parent: Element, head: string[], rows: (string | number)[][]): void {
  const body = add(parent, "table");
  const first = add(add(body, "thead"), "tr");
  for (const cell of head) add(first, "th", cell, {scope: "col"});
  const rest = add(body, "tbody");
  for (const cells of rows) {
    const row = add(rest, "tr");
    for (const cell of cells) add(row, "td", String(cell));
  }
}
// Calls `draw` once for all that asked within a frame.
export function oncePerFrame(draw: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}
