#!/usr/bin/env python3
"""Makes the static site of the documentation with Debian's mkdocs: the README, docs/, a manual page for
each command from its --help, and the public headers. The site is searchable and loads nothing from
elsewhere.

usage: site.py BUILD_DIR [OUTPUT]     (default: build/site)
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "cmake"))
sys.dont_write_bytecode = True
import manual_pages  # noqa: E402

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)]*)?\)")
PERSONAS = ("for_ci_engineers", "for_network_architects", "for_students")
FIRST = ("tutorial", "install", "containers", "ci", *PERSONAS)  # pages with places of their own


def title_of(page):
    return re.search(r"^# (.*)", page.read_text(), re.M).group(1).replace("`", "")


def manual_page(name, text):
    """The help text as it is; its first line is the title."""
    summary = re.search(r" - (.*)", text).group(1)
    return f"# {name}\n\n{summary}\n\n```text\n{text.rstrip()}\n```\n"


def header_page(path):
    """Its first comment as text, and what follows."""
    words, declarations = manual_pages.about(path)
    return (f"# {path.parent.name}/{path.name}\n\n```text\n{words}\n```\n\n"
            f"## Declarations\n\n```c\n{declarations}```\n")


def bring_along(page, source):
    """Copies the files that the page links to. A link to a folder becomes its name: it has no page."""
    text = page.read_text()
    original = ROOT / page.relative_to(source)
    for match in LINK.finditer(text):
        target = (original.parent / match.group(1)).resolve()
        if target.is_dir():
            text = text.replace(match.group(0), "]()")
        elif target.is_file() and target.is_relative_to(ROOT):
            copy = source / target.relative_to(ROOT)
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(target, copy)
    page.write_text(re.sub(r"\[([^\]]*)\]\(\)", r"\1", text))


def write_pages(verbena, source):
    """The Markdown of all pages, in the folders of the repository."""
    shutil.copytree(ROOT / "docs", source / "docs")
    for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, source)
    for page in [*source.glob("*.md"), *source.glob("docs/**/*.md")]:
        bring_along(page, source)
    (source / "man").mkdir()
    (source / "man/verbena.md").write_text(manual_page("verbena(1)", manual_pages.help_of(verbena)))
    for command in manual_pages.commands(verbena):
        text = manual_page(f"verbena-{command}(1)", manual_pages.help_of(verbena, command))
        (source / f"man/verbena-{command}.md").write_text(text)
    (source / "headers").mkdir()
    for header in sorted((ROOT / "include/verbena").glob("*.h")):
        (source / f"headers/{header.stem}.md").write_text(header_page(header))


def navigation(source):
    """The lines of mkdocs.yml's `nav`."""
    def lines(heading, pages):
        yield f"  - {heading}:"
        for page in pages:
            yield f'    - "{title_of(page)}": {page.relative_to(source)}'

    docs = sorted((source / "docs").glob("*.md"))
    rest = [page for page in docs if page.stem not in FIRST]
    yield "nav:"
    yield "  - Verbena: README.md"
    yield from lines("Start", [source / f"docs/{name}.md" for name in FIRST])
    yield from lines("Guides", rest)
    yield from lines("Manual pages", sorted((source / "man").glob("*.md")))
    yield from lines("Headers", sorted((source / "headers").glob("*.md")))
    yield from lines("Architecture", [source / "ARCHITECTURE.md",
                                      *sorted((source / "docs/architecture").glob("*.md"))])
    yield "  - Changes: CHANGELOG.md"


def configuration(source, output):
    return "\n".join(["site_name: Verbena", f"docs_dir: {source}", f"site_dir: {output}",
                      "use_directory_urls: false", "theme: {name: mkdocs, highlightjs: false}",
                      "plugins: [search]", "strict: true", *navigation(source)]) + "\n"


def make(build, output):
    mkdocs = shutil.which("mkdocs", path=os.environ.get("PATH", "") + ":/usr/bin")
    verbena = build / "bin/verbena"
    if mkdocs is None:
        sys.exit("site: mkdocs is not installed: apt-get install mkdocs")
    if not verbena.exists():
        sys.exit(f"site: {verbena} does not exist: ./dev build")
    output.parent.mkdir(parents=True, exist_ok=True)
    source = output.with_name(output.name + "-pages")
    for folder in (source, output):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir()
    write_pages(str(verbena), source)
    settings = output.with_name(output.name + ".yml")
    settings.write_text(configuration(source, output))
    done = subprocess.run([mkdocs, "build", "--quiet", "--strict", "-f", settings],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"site: {done.stdout}{done.stderr}")


def main(build, output=ROOT / "build/site"):
    make(pathlib.Path(build).resolve(), pathlib.Path(output).resolve())


if __name__ == "__main__":
    main(*sys.argv[1:])
