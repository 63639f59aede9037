// The timeline of a job: what each lane of a GPU did when.
import type {Lane} from "./data";
import {add, element, show, svg} from "./dom";
import {time} from "./format";
import {series as colors} from "./theme";

export function drawTimeline(rows: Lane[], end_us: number, isStep: boolean,
                             colorOf: (name: string) => string): void {
  show("timeline");
  element("timeline").replaceChildren();
  element("purposes").replaceChildren();
  element("timeline_note").textContent = isStep ?
      "For each GPU its computing, and the operations of each of its communicators." :
      "For each GPU its lanes: how long each eighth of their steps took. " +
      "Of many GPUs those that ended first and last.";
  const left = 190, width = 1240, high = isStep ? 14 : 6, gap = 8;
  let y = 4, before: number | null = null;
  const places = rows.map((row) => {
    if (before !== null && row.gpu !== before) y += gap;
    before = row.gpu;
    const at = y;
    y += high;
    return at;
  });
  const picture = svg(element("timeline"), "svg", {viewBox: `0 0 ${width} ${y + 26}`, width: "100%",
      role: "img", "aria-label": "timeline", style: "min-width:900px"});
  const x = (us: number) => left + (width - left - 10) * us / end_us;
  rows.forEach((row, i) => {
    const isFirst = i === 0 || rows[i - 1]!.gpu !== row.gpu;
    if (isFirst || isStep)
      svg(picture, "text", {x: left - 8, y: places[i]! + (isStep ? 11 : 8), "text-anchor": "end",
          class: "small"}, (isFirst ? `GPU ${row.gpu} ` : "") + (isStep ? row.lane : ""));
    for (const [begin, end, purpose, label] of row.spans) {
      const box = svg(picture, "rect", {x: x(begin), y: places[i]!,
          width: Math.max(0.4, x(end) - x(begin)), height: high - 1, class: "span",
          fill: isStep ? colorOf(purpose) : colors[0]!,
          "fill-opacity": isStep ? 1 : 0.25 + purpose / 11});
      svg(box, "title", {}, `GPU ${row.gpu}, ${isStep ? row.lane : `lane ${row.lane}`}: ${label}, ` +
          `${time(begin)} to ${time(end)}`);
    }
  });
  for (let i = 0; i <= 6; ++i)
    svg(picture, "text", {x: x(end_us * i / 6), y: y + 18, class: "small",
        "text-anchor": i === 6 ? "end" : i === 0 ? "start" : "middle"}, time(end_us * i / 6));
  if (!isStep) return;
  for (const purpose of new Set(rows.flatMap((row) => row.spans.map((span) => String(span[2]))))) {
    add(element("purposes"), "i").style.cssText = `width:14px;background:${colorOf(purpose)}`;
    add(element("purposes"), "span", purpose);
  }
}
