"""Writes manual pages from what `verbena --help` and `verbena COMMAND --help` print.

usage: manual_pages.py VERBENA FOLDER
"""

import pathlib
import re
import subprocess
import sys


def help_of(verbena, *command):
    return subprocess.run([verbena, *command, "--help"], capture_output=True, text=True, check=True).stdout


def commands(verbena):
    """The names in the section COMMANDS."""
    section = re.search(r"^COMMANDS\n(.*?)^[A-Z]", help_of(verbena), re.M | re.S).group(1)
    return re.findall(r"^  (\w+) ", section, re.M)


def roff(line):
    text = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def page_of(name, version, text):
    """Lines stay as they are, but for the name's, which whatis(1) reads: "verbena-sim - ..."."""
    page = [f'.TH {roff(name.upper())} 1 "" "{version}" "User Commands"', ".nh"]
    section = ""
    for line in text.rstrip().split("\n"):
        if re.fullmatch(r"[A-Z][A-Z ]*", line):
            section = line
            page += [f".SH {section}"] + ([] if section == "NAME" else [".nf"])
        elif section == "NAME":
            page.append(roff(re.sub(r"^  .*? - ", f"{name} - ", line)))
        else:
            page.append(roff(line.removeprefix("  ")))
    return "\n".join(page) + "\n"


def main(verbena, folder):
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([verbena, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    (out / "verbena.1").write_text(page_of("verbena", version, help_of(verbena)))
    for command in commands(verbena):
        name = f"verbena-{command}"
        (out / f"{name}.1").write_text(page_of(name, version, help_of(verbena, command)))


if __name__ == "__main__":
    main(*sys.argv[1:])
