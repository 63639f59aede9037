// report.html: draws the data in the page.
import {setDefaults} from "./charts/chart";
import {kFormat, type Report, type Run} from "./data";
import {add, element, show, table} from "./dom";
import {colorOf, drawJob, drawJobHead} from "./job";
import {NetworkView} from "./network";
import {drawRun} from "./run";
import {drawFaults, drawScenario} from "./scenario";
import {themeButton} from "./theme";
import {drawTimeline} from "./timeline";

class Page {
  private readonly isJob: boolean;
  private readonly network: NetworkView | null;
  private chosen: Run | null = null;

  constructor(private readonly report: Report) {
    this.isJob = report.kind === "job";
    this.drawHead();
    setDefaults();
    this.network = report.nodes ? new NetworkView(report) : null;
    if (this.isJob) drawJob(report);
    this.addRuns();
    this.addQueries();
    themeButton(element("theme"), () => this.redraw());
  }

  private drawHead(): void {
    const {report} = this, run = report.run;
    if (this.isJob) drawJobHead(report);
    else drawScenario(report);
    drawFaults(report);
    const outcome = this.isJob ? String(run!["status"]) : report.outcome!;
    const isGood = this.isJob ? outcome === "complete" : report.complete!;
    element("outcome").textContent = outcome;
    element("outcome").classList.add(isGood ? "good" : "bad");
    for (const [name, value] of report.summary) {
      const box = add(element("numbers"), "div");
      add(box, "span", name);
      add(box, "b", value);
    }
    element("scenario").textContent = this.isJob ? String(run!["scenario"]) : report.scenario!;
    element("scenario_name").textContent = this.isJob ? "The job" : "The scenario";
  }
  private addRuns(): void {
    const names = Object.keys(this.report.runs), chooser = element<HTMLSelectElement>("run");
    for (const name of names) add(chooser, "option", name).value = name;
    chooser.addEventListener("change", () => this.showRun(chooser.value));
    show("chooser", names.length > 1);
    element("network").hidden = element("charts").hidden = names.length === 0;
    if (this.report.timeline) this.drawStep();
    if (names.length) this.showRun(names[0]!);
  }
  private showRun(name: string): void {
    const run = this.chosen = this.report.runs[name]!;
    this.drawRun(run);
    this.network!.show(run);
  }
  private drawRun(run: Run): void {
    const isInfiniBand = this.report.run?.["technology"] === "infiniband";
    const held = this.report.held ?? (isInfiniBand ? "without credits" : "paused");
    drawRun(this.report, run, this.isJob ? "message" : "flow", held);
    if (run.timeline && !this.report.timeline)
      drawTimeline(run.timeline, run.end_us, this.report.run?.["kind"] !== "collective", colorOf);
  }
  private drawStep(): void {
    drawTimeline(this.report.timeline!, Number(this.report.run!["step_ps"]) * 1e-6, true, colorOf);
  }
  private addQueries(): void {
    const {queries} = this.report;
    element("sources").hidden = !queries;
    if (queries) table(element("queries"), ["of", "query"], queries);
  }
  private redraw(): void {
    setDefaults();
    if (this.isJob) drawJob(this.report);
    if (!this.chosen) return;
    this.drawRun(this.chosen);
    this.network!.redraw();
  }
}

const report = JSON.parse(element("data").textContent!) as Report;
if (report.format === kFormat) new Page(report);
else element("subtitle").textContent = `The data has format ${report.format}; this page shows ${kFormat}.`;
