"""Figures of all rounds, and what is made of them: medians, ratios, a table, JSON."""

import dataclasses
import statistics


@dataclasses.dataclass
class Series:
    """The values of one measurement, in the order of the rounds; None where it gave none."""
    values: list

    @property
    def known(self):
        return [value for value in self.values if value is not None]

    @property
    def median(self):
        return statistics.median(self.known) if self.known else None

    def text(self):
        if not self.known:
            return "-"
        return f"{figure(self.median)} ({figure(min(self.known))}..{figure(max(self.known))})"


@dataclasses.dataclass
class Line:
    """One case: ours, and each peer with its ratio."""
    case: object
    ours: Series
    peers: list  # of (Peer, Series)

    def ratio(self, series):
        """Ours to theirs: the median over the rounds in which both gave a value."""
        pairs = [(a, b) for a, b in zip(self.ours.values, series.values) if a and b]
        return statistics.median(a / b for a, b in pairs) if pairs else None

    def met(self, peer, series):
        """None: no goal, or no ratio."""
        ratio = self.ratio(series)
        if peer.goal is None or ratio is None:
            return None
        return ratio <= peer.goal if self.case.less_is_better else ratio >= peer.goal

    def met_absolute(self):
        if self.case.goal is None or self.ours.median is None:
            return None
        if self.case.less_is_better:
            return self.ours.median <= self.case.goal
        return self.ours.median >= self.case.goal


def figure(value):
    """Three significant digits."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def goal_text(case, goal, met, unit=""):
    if goal is None:
        return ""
    word = {True: "met", False: "**not met**", None: "not measured"}[met]
    return f"{'<=' if case.less_is_better else '>='} {goal:.3g}{unit and ' ' + unit}: {word}"


def table(lines):
    """Markdown: one row for each case and peer."""
    rows = ["| path | what | Verbena, median (min..max) | beside | median (min..max) | ratio | goal |",
            "|---|---|---:|---|---:|---:|---|"]
    for line in lines:
        case = line.case
        first = [case.site, case.what, f"{line.ours.text()} {case.unit}"]
        if case.goal is not None:
            goal = goal_text(case, case.goal, line.met_absolute(), case.unit)
            rows.append(f"| {' | '.join(first)} | | | | {goal} |")
            first = ["", "", ""]
        for peer, series in line.peers:
            ratio = line.ratio(series)
            name = f"*{peer.name}*" if peer.is_limit else peer.name
            rows.append(f"| {' | '.join(first)} | {name} | {series.text()} | "
                        f"{'-' if ratio is None else f'{figure(ratio)}x'} | "
                        f"{goal_text(case, peer.goal, line.met(peer, series))} |")
            first = ["", "", ""]
    return "\n".join(rows)


def as_json(lines, machine):
    return {
        "machine": machine,
        "cases": [{
            "name": line.case.name, "path": line.case.site, "what": line.case.what,
            "unit": line.case.unit, "measured_with": str(line.case.ours),
            "ours": line.ours.values, "goal": line.case.goal, "goal_met": line.met_absolute(),
            "peers": [{
                "name": peer.name, "measured_with": str(peer.measurement),
                "is_limit_of_the_machine": peer.is_limit, "values": series.values,
                "ratio": line.ratio(series), "goal": peer.goal, "goal_met": line.met(peer, series),
            } for peer, series in line.peers],
        } for line in lines],
    }
