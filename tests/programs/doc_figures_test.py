#!/usr/bin/env python3
"""Figures of simulations in docs/ are what the commands give today.

A document has them between `<!-- figures: NAME -->` and `<!-- end of figures -->`. Each NAME has a
function here that runs the commands. With --write the documents get what they give.

usage: doc_figures_test.py [BUILD_DIR] [--write] [-k PATTERN]
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

import testing

WRITE = "--write" in sys.argv
if WRITE:
    sys.argv.remove("--write")
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-")
                     else "build/release").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 300


def verbena(*arguments, text=None):
    done = subprocess.run([BUILD / "bin" / "verbena", *map(str, arguments)], cwd=ROOT, input=text,
                          capture_output=True, text=True, timeout=LIMIT_S, check=True)
    return done.stdout


def sim(scenario, *settings, text=None):
    arguments = [part for setting in settings for part in ("--set", setting)]
    return json.loads(verbena("sim", scenario, "--json", *arguments, text=text))["metrics"]


def console(*arguments, kept=lambda line: True):
    lines = [line for line in verbena(*arguments).splitlines() if kept(line)]
    command = " ".join(["$ verbena", *arguments])
    return "\n".join(["```", command, *(line.rstrip() for line in lines), "```"])


def rails():
    return console("sim", "examples/allreduce_rails.yaml")


def plan():
    table = re.compile(r"(\s+time\s|\s+GB/s|rocev2|infiniband|iwarp|tcp)")
    lines = verbena("plan", "examples/allreduce_rails.yaml", "--set", "size=1MiB").splitlines()
    first = next(i for i, line in enumerate(lines) if re.match(r"\s+time", line))
    last = next(i for i in range(first, len(lines)) if not table.match(lines[i]))
    return "\n".join(["```", "$ verbena plan examples/allreduce_rails.yaml --set size=1MiB -o plan/",
                      "...", *(line.rstrip() for line in lines[first:last]), "...", "```"])


def irn():
    rows = ["| PFC | retransmission | p50 | p95 | p99 | packets dropped |", "|---|---|---|---|---|---|"]
    for pfc, kind, name in (("on", "go_back_n", "go-back-N"), ("off", "go_back_n", "go-back-N"),
                            ("off", "selective_repeat", "selective repeat")):
        runs = [sim("examples/lossy_irn.yaml", f"pfc={pfc}", f"retransmission.kind={kind}",
                    f"seed={seed}") for seed in (1, 2, 3)]
        cells = [", ".join(f"{run[f'slowdown.{part}']:.2f}" for run in runs)
                 for part in ("p50", "p95", "p99")]
        drops = ", ".join(f"{run['drops']:.0f}" for run in runs) if pfc == "off" else "0"
        rows.append(f"| {pfc} | {name} | {' | '.join(cells)} | {drops} |")
    return "\n".join(rows)


def spraying():
    rows = ["| `ecmp` | retransmission | p50 | p99 | sent again |", "|---|---|---:|---:|---:|"]
    for mode, name, settings in (
            ("flow", "go-back-N", []), ("spray", "go-back-N", []),
            ("spray", "selective repeat", ["retransmission.kind=selective_repeat"]),
            ("spray", "selective repeat, `reordering: 32`",
             ["retransmission.kind=selective_repeat", "retransmission.reordering=32"])):
        run = sim("examples/ecmp_collisions.yaml", f"switch.ecmp={mode}", *settings)
        rows.append(f"| `{mode}` | {name} | {run['slowdown.p50']:.2f} | {run['slowdown.p99']:.2f} "
                    f"| {run['retransmissions']:.0f} |")
    return "\n".join(rows)


def tcp():
    rows = ["| | FCT max | busy link | dropped | sent again | pauses |", "|---|---:|---:|---:|---:|---:|"]
    for name, settings in (("RoCEv2, DCQCN", []), ("iWARP, CUBIC", ["technology=iwarp"]),
                           ("TCP, CUBIC", ["technology=tcp"]),
                           ("TCP, Reno", ["technology=tcp", "tcp.congestion_control=reno"]),
                           ("TCP, DCTCP", ["technology=tcp", "tcp.congestion_control=dctcp"])):
        run = sim("examples/tcp_vs_rdma.yaml", *settings)
        rows.append(f"| {name} | {run['fct.max'] * 1e3:.2f} ms | {run['utilization.max'] * 100:.1f} % "
                    f"| {run['drops']:.0f} | {run['retransmissions']:.0f} | {run['pauses']:.0f} |")
    return "\n".join(rows)


def dcqcn():
    rows = ["| rate | K | `dcqcn` | `dcqcn_paper` | `dcqcn_nvidia` |", "|---|---:|---|---|---|"]
    for gigabits in (25, 100, 400):
        for senders in (2, 8, 16):
            cells = []
            for profile in ("dcqcn", "dcqcn_paper", "dcqcn_nvidia"):
                run = sim("-", text=f"topology: {{kind: star, hosts: {senders + 1}}}\n"
                          f"links: {{rate: {gigabits}Gbps, delay: 1us}}\nswitch: {{buffer: 64MiB}}\n"
                          f"hosts: {{congestion_control: {profile}}}\n"
                          f"workload: {{kind: incast, size: {gigabits * 100}KB}}\n")
                cells.append(f"{run['utilization.max'] * 100:.0f} %, {run['fairness']:.2f}, "
                             f"{run['queue.max'] / 1e6:.1f} MB")
            rows.append(f"| {gigabits} Gb/s | {senders} | {' | '.join(cells)} |")
    return "\n".join(rows)


FIGURES = {"rails": rails, "plan": plan, "irn": irn, "spraying": spraying, "tcp": tcp,
           "dcqcn": dcqcn}
BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n)(.*?)(<!-- end of figures -->)", re.S)


def blocks():
    for path in sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md"]:
        for match in BLOCK.finditer(path.read_text()):
            yield path, match[2], match[3].strip()


class DocFigures(unittest.TestCase):
    maxDiff = None

    def test_all_are_somewhere(self):
        self.assertEqual(sorted(FIGURES), sorted(name for _, name, _ in blocks()))


def add_test(path, name, text):
    def test(self):
        self.assertEqual(text, FIGURES[name](), f"{path.name}: {name}; run with --write")
    setattr(DocFigures, f"test_{path.stem}_{name}", test)


def write():
    for path in sorted({path for path, _, _ in blocks()}):
        path.write_text(BLOCK.sub(lambda match: match[1] + FIGURES[match[2]]() + "\n" + match[4],
                                  path.read_text()))


if WRITE:
    write()
    sys.exit(0)
for block in blocks():
    add_test(*block)
if __name__ == "__main__":
    testing.main()
