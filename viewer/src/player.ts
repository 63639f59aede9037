// The time slider: it shows the whole run, or one moment of it, and plays.
import type {Fault} from "./data";
import {element, svg} from "./dom";
import {time} from "./format";

const kPlaySeconds = 12, kFewestMs = 60;

export interface Moments { points: number; point_us: number; end_us: number }

export class Player {
  point: number | null = null;  // null: the whole run
  private moments: Moments = {points: 1, point_us: 1, end_us: 1};
  private timer = 0;
  private readonly slider = element<HTMLInputElement>("moment");
  private readonly play = element<HTMLButtonElement>("play");
  private readonly whole = element<HTMLButtonElement>("whole");

  constructor(private readonly changed: () => void) {
    this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
    this.whole.addEventListener("click", () => this.show(null));
    this.play.addEventListener("click", () => this.timer ? this.stop() : this.start());
  }
  reset(moments: Moments): void {
    this.stop();
    this.moments = moments;
    this.slider.max = String(moments.points - 1);
    this.slider.value = "0";
    this.show(null);
  }
  show(point: number | null): void {
    this.point = point;
    if (point !== null) this.slider.value = String(point);
    this.whole.setAttribute("aria-pressed", String(point === null));
    const words = this.words();
    this.slider.setAttribute("aria-valuetext", words);
    element("moment_text").textContent = words;
    this.changed();
  }
  get us(): number | null { return this.point === null ? null : this.point * this.moments.point_us; }

  private words(): string {
    if (this.point === null) return "whole run";
    const from = this.point * this.moments.point_us;
    return `${time(from)} to ${time(Math.min(this.moments.end_us, from + this.moments.point_us))}`;
  }
  private start(): void {
    const last = this.moments.points - 1;
    if (this.point === null || this.point >= last) this.show(0);
    this.play.textContent = "Pause";
    this.timer = window.setInterval(() => {
      if (this.point === null || this.point >= last) return this.stop();
      this.show(this.point + 1);
    }, Math.max(kFewestMs, kPlaySeconds * 1000 / this.moments.points));
  }
  private stop(): void {
    window.clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = "Play";
  }
}

// Above the slider: the greatest amount anywhere at each moment, and when there were faults.
export function drawOverview(amounts: Float64Array, end_us: number, faults: Fault[],
                             words: string): void {
  const parent = element("overview"), width = 1000, height = 40;
  parent.replaceChildren();
  const picture = svg(parent, "svg", {viewBox: `0 0 ${width} ${height}`, width: "100%",
      height, preserveAspectRatio: "none", role: "img", "aria-label": `${words} over time`});
  const most = amounts.reduce((a, b) => Math.max(a, b), 0) || 1;
  for (const fault of faults) {
    if (fault.at_us === null) continue;
    const x = fault.at_us / end_us * width;
    const until = Math.min(width, (fault.until_us ?? end_us) / end_us * width);
    if (x > width) continue;
    svg(picture, "rect", {class: "fault", x, y: 0, width: Math.max(2, until - x), height});
  }
  const step = width / amounts.length;
  let path = `M0 ${height}`;
  amounts.forEach((value, i) => {
    const y = (height - 1 - value / most * (height - 4)).toFixed(1);
    path += `L${(i * step).toFixed(1)} ${y}L${((i + 1) * step).toFixed(1)} ${y}`;
  });
  svg(picture, "path", {class: "amount", d: `${path}L${width} ${height}Z`});
}
