"""Writes manual pages: section 1 from what `verbena --help` and `verbena COMMAND --help` print,
section 3 from the public headers.

usage: manual_pages.py VERBENA FOLDER HEADER...
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


def title(name, section, version, manual):
    return [f'.TH {roff(name.upper())} {section} "" "{version}" "{manual}"', ".nh"]


def command_page(name, version, text):
    """Lines stay as they are, but for the name's, which whatis(1) reads: "verbena-sim - ..."."""
    page = title(name, 1, version, "User Commands")
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


def header_name(header):
    """verbena.h, verbena-transfer.h."""
    return header.name if header.stem == "verbena" else f"verbena-{header.name}"


def about(header):
    """The words of its first comment, and what follows that."""
    comment, rest = re.match(r"/\*(.*?)\*/\n(.*)", header.read_text(), re.S).groups()
    return re.sub(r"^ \* ?", "", comment, flags=re.M).strip(), rest


def header_page(header, version):
    """The name's line has the first sentence."""
    name, (words, declarations) = header_name(header), about(header)
    sentence = " ".join(re.match(r"(.*?)[.:;](?:\s|$)", words, re.S).group(1).split())
    page = title(name, 3, version, "Library Functions Manual")
    page += [".SH NAME", roff(f"{name} - {sentence}"), ".SH SYNOPSIS", ".nf",
             roff(f"#include <verbena/{header.name}>"), ".SH DESCRIPTION", ".nf"]
    page += [*map(roff, words.split("\n")), ".SH DECLARATIONS", ".nf"]
    page += map(roff, declarations.expandtabs().rstrip().split("\n"))
    return "\n".join(page) + "\n"


def main(verbena, folder, *headers):
    commands_folder, headers_folder = (pathlib.Path(folder, name) for name in ("man1", "man3"))
    for each in (commands_folder, headers_folder):
        each.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([verbena, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    for command in ((), *((name,) for name in commands(verbena))):
        name = "-".join(("verbena", *command))
        page = command_page(name, version, help_of(verbena, *command))
        (commands_folder / f"{name}.1").write_text(page)
    for header in map(pathlib.Path, headers):
        (headers_folder / f"{header_name(header)}.3").write_text(header_page(header, version))


if __name__ == "__main__":
    main(*sys.argv[1:])
