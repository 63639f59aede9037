"""What the test programs of other projects print, read into one form: a Score."""

import dataclasses
import re


@dataclasses.dataclass
class Score:
    passed: set = dataclasses.field(default_factory=set)
    failed: set = dataclasses.field(default_factory=set)
    skipped: set = dataclasses.field(default_factory=set)

    @property
    def count(self):
        return len(self.passed | self.failed | self.skipped)


def unittest(text):
    """Reads `python3 -m unittest -v`. A test may print lines between its name and its outcome."""
    score, name = Score(), None
    for line in text.splitlines():
        begun = re.match(r"(test\w+) \((?:tests\.)?([\w.]+)\)", line)
        if begun:
            # Python 3.11 and later repeat the method after the class.
            name = f"{begun[2].removesuffix('.' + begun[1])}.{begun[1]}"
        ended = re.search(r"(?:^|\.\.\. ?|\W)(ok|FAIL|ERROR|skipped .*|expected failure)$", line)
        if name and ended:
            outcome = {"F": score.failed, "E": score.failed, "s": score.skipped}
            outcome.get(ended[1][0], score.passed).add(name)
            name = None
    for group in re.finditer(r"^(?:ERROR|FAIL): (\w+) \((?:tests\.)?([\w.]+)\)", text, re.MULTILINE):
        failed = f"{group[2].removesuffix('.' + group[1])}.{group[1]}"
        score.failed.add(failed)  # a subtest, or a failure of setUpClass
        score.passed.discard(failed)
    if name:
        score.failed.add(name)  # the program ended in the middle of this test
    return score


def gtest(text):
    """Reads googletest, and UCX's own main() of it."""
    score, running = Score(), None
    for line in text.splitlines():
        if begun := re.match(r"\[ RUN +\] (\S+)", line):
            running = begun[1]
        elif ended := re.search(r"\[ +(OK|FAILED|SKIPPED|SKIP) +\] ([^\s,]+[./][^\s,]+)", line):
            outcome = {"OK": score.passed, "FAILED": score.failed}
            outcome.get(ended[1], score.skipped).add(ended[2])
            running = None
    if running:
        score.failed.add(running)  # the program ended in the middle of this test
    return score


def fabtests(text):
    """Reads runfabtests.sh without -v: `NAME:   Pass`."""
    score = Score()
    for name, outcome in re.findall(r"^(fi_\S.*?): +(Pass|Fail|Notrun|Excluded)\b", text, re.MULTILINE):
        {"Pass": score.passed, "Fail": score.failed}.get(outcome, score.skipped).add(name.strip())
    return score
