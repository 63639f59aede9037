// What all charts have in common. Chart.js comes with the page: its own script, before this one.
import {element} from "../dom";
import {percent, size, time} from "../format";
import {series as colors, variable} from "../theme";
import type {Bucket, Fault, Series} from "../data";

/* eslint-disable @typescript-eslint/no-explicit-any -- Chart.js as Debian packages it has no types */
declare const Chart: any;

export function setDefaults(): void {
  Chart.defaults.color = variable("--dim");
  Chart.defaults.borderColor = variable("--edge");
  Chart.defaults.font.family = 'system-ui, "DejaVu Sans", sans-serif';
  Chart.defaults.font.size = 12;
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.plugins.legend.labels.boxWidth = 18;
  Chart.defaults.plugins.legend.labels.boxHeight = 2;
  Chart.defaults.plugins.legend.labels.color = variable("--text");
}

export type Format = (value: number) => string;
export const axis = (title: string, format: (value: any, ...more: any[]) => string | number,
                     more: object = {}) => ({
  title: {display: true, text: title, color: variable("--dim")},
  ticks: {callback: format, maxTicksLimit: 8, maxRotation: 0},
  ...more,
});

// A chart replaces the one that is there.
export function chart(id: string, options: object): any {
  Chart.getChart(element(id))?.destroy();
  return new Chart(element(id), options);
}

// The moment that the time slider shows; null: the whole time.
let moment: number | null = null;
const overTimeCharts = new Map<string, any>();
export function showMoment(us: number | null): void {
  moment = us;
  for (const drawn of overTimeCharts.values()) drawn.draw();
}

// Lines across a chart over time: where faults begin and end, and the moment.
const timeLines = (faults: Fault[]) => ({
  id: "lines",
  afterDatasetsDraw({ctx, chartArea, scales}: any) {
    const line = (at: number | null, color: string, dash: number[]) => {
      if (at === null || at < scales.x.min || at > scales.x.max) return;
      const x = scales.x.getPixelForValue(at);
      ctx.save();
      ctx.strokeStyle = color;
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.moveTo(x, chartArea.top);
      ctx.lineTo(x, chartArea.bottom);
      ctx.stroke();
      ctx.restore();
    };
    for (const fault of faults)
      for (const at of [fault.at_us, fault.until_us]) line(at, variable("--fault"), [4, 3]);
    line(moment, variable("--text"), []);
  },
});

export interface TimeData { times_us: number[]; end_us: number; faults: Fault[] }
export function overTime(id: string, data: TimeData, series: Series[], title: string,
                         format: Format): void {
  element(id).parentElement!.hidden = series.length === 0;
  overTimeCharts.delete(id);
  if (series.length === 0) return;
  overTimeCharts.set(id, chart(id, {
    type: "line",
    plugins: [timeLines(data.faults)],
    data: {datasets: series.map((s, i) => ({
      label: s.name,
      data: s.values.map((y, j) => ({x: data.times_us[j], y})),
      borderColor: colors[i % colors.length], backgroundColor: colors[i % colors.length],
      borderWidth: 1.5, pointRadius: 0, stepped: false,
      borderDash: i < 4 ? [] : [5, 2],
    }))},
    options: {
      parsing: false, normalized: true,
      interaction: {mode: "nearest", axis: "x", intersect: false},
      scales: {x: axis("simulated time", time, {type: "linear", min: 0, max: data.end_us}),
               y: axis(title, format, {beginAtZero: true})},
      plugins: {tooltip: {callbacks: {
        title: (items: any) => time(items[0].parsed.x),
        label: (item: any) => `${item.dataset.label}: ${format(item.parsed.y)}`,
      }}},
    },
  }));
}

// directions: how many are used by how many tenths.
export function utilizations(directions: number[]): void {
  chart("utilization", {
    type: "bar",
    data: {
      labels: directions.map((_, i) => `${i * 10}-${i * 10 + 10} %`),
      datasets: [{data: directions, backgroundColor: colors[0], label: "directions of links"}],
    },
    options: {
      plugins: {legend: {display: false}},
      scales: {x: {title: {display: true, text: "utilization", color: variable("--dim")},
                   grid: {display: false}, ticks: {maxRotation: 60, autoSkip: false}},
               y: axis("directions of links", (v: number) => Number.isInteger(v) ? v : "",
                       {beginAtZero: true})},
    },
  });
}

export interface Bars { label: string; backgroundColor: string; data: number[] }
export function bars(id: string, labels: string[], datasets: Bars[], title: string,
                     format: Format): void {
  element(id).parentElement!.style.height = `${Math.max(120, 70 + 30 * labels.length)}px`;
  chart(id, {
    type: "bar", data: {labels, datasets},
    options: {
      indexAxis: "y",
      scales: {x: axis(title, format, {stacked: true, beginAtZero: true}),
               y: {stacked: true, ticks: {autoSkip: false}}},
      plugins: {legend: {display: datasets.length > 1},
                tooltip: {callbacks: {label: (item: any) =>
                    `${item.dataset.label}: ${format(item.parsed.x)}`}}},
    },
  });
}

// Points of one size would lie on each other: how many flows were how slow, in their order.
export function slowdownOfOneSize(flows: [number, number][], what: string): void {
  const slow = flows.map(([, slowdown]) => slowdown).sort((a, b) => a - b);
  chart("slowdown", {
    type: "line",
    data: {datasets: [{
      label: `${what}s of ${size(flows[0]![0])}`, borderColor: colors[0],
      backgroundColor: colors[0], borderWidth: 2, pointRadius: slow.length > 200 ? 0 : 2.5,
      stepped: true,
      data: slow.map((value, i) => ({x: value, y: (i + 1) / slow.length})),
    }]},
    options: {
      parsing: false,
      scales: {x: axis("slowdown", (v: number) => v, {type: "linear"}),
               y: axis(`part of the ${what}s that were not slower`, percent, {min: 0, max: 1})},
      plugins: {tooltip: {callbacks: {label: (item: any) =>
          `${percent(item.parsed.y)}: slowdown up to ${item.parsed.x.toFixed(2)}`}}},
    },
  });
}

const isDecade = (v: number) => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;
export function slowdownBySize(flows: [number, number][], buckets: Bucket[], what: string): void {
  const line = (name: "p50" | "p95" | "p99", color: string, dash: number[]) => ({
    type: "line", label: name, borderColor: color, backgroundColor: color, borderWidth: 2,
    borderDash: dash, pointRadius: 3, data: buckets.map((b) => ({x: b.middle, y: b[name]})),
  });
  const sets: object[] = [{
    type: "scatter", label: `${what}s`, pointRadius: 2.5, borderColor: "transparent",
    backgroundColor: variable("--dim") + "99", data: flows.map(([x, y]) => ({x, y})),
  }];
  if (buckets.length > 1)
    sets.unshift(line("p50", colors[0]!, []), line("p95", colors[4]!, [6, 3]),
                 line("p99", colors[1]!, [2, 3]));
  const most = flows.reduce((so, [, y]) => Math.max(so, y), 1);
  const sizes = flows.map(([x]) => x).sort((a, b) => a - b);
  const isLog = most > 30;
  chart("slowdown", {
    data: {datasets: sets},
    options: {
      scales: {
        x: {type: "logarithmic",
            title: {display: true, text: `${what} size`, color: variable("--dim")},
            min: sizes[0]! / 1.5, max: sizes.at(-1)! * 1.5,
            ticks: {callback: (v: number, _: number, all: unknown[]) =>
                        all.length < 8 || isDecade(v) ? size(v) : "",
                    maxRotation: 0, autoSkip: false}},
        y: {type: isLog ? "logarithmic" : "linear", min: isLog ? 0.9 : 0,
            title: {display: true, text: "slowdown", color: variable("--dim")},
            ticks: {callback: (v: number) => !isLog || isDecade(v) ? v : "", autoSkip: false}},
      },
      plugins: {tooltip: {callbacks: {label: (item: any) =>
          `${item.dataset.label}: ${size(item.parsed.x)}, slowdown ${item.parsed.y.toFixed(2)}`}}},
    },
  });
}
