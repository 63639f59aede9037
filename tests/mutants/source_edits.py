"""Small edits of the source, and a copy of the tree that they are applied to, one at a time. For
tests/mutants/ and bench/rules.py."""

import dataclasses
import hashlib
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_TESTED = ("docs/", "tests/mutants/", "tests/tools/")  # what changes there changes no result


class ListError(Exception):
    """The list itself is wrong."""


@dataclasses.dataclass(frozen=True)
class Edit:
    name: str
    file: str
    find: str     # literal text that occurs exactly once in the file
    replace: str

    def applied(self, text):
        """Returns the text of the file with the edit made."""
        count = text.count(self.find)
        if count != 1:
            raise ListError(f"{self.name}: its text occurs {count} times in {self.file}")
        return text.replace(self.find, self.replace)


class Applied:
    """An edit in the copy, for as long as the block lasts."""

    def __init__(self, copy, edit):
        self.path = copy / edit.file
        self.original = self.path.read_text()
        self.edited = edit.applied(self.original)

    def __enter__(self):
        self.path.write_text(self.edited)

    def __exit__(self, *_):
        self.path.write_text(self.original)


def files_of_tree():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True)
    files = sorted(set(filter(None, listed.stdout.split("\0"))))
    return [file for file in files if (ROOT / file).is_file()]


def update(copy):
    """Makes the copy equal to the tree, touching only what differs; returns a hash of what is tested."""
    copy.mkdir(parents=True, exist_ok=True)
    files = files_of_tree()
    digest = hashlib.sha256()
    for file in files:
        source, target = ROOT / file, copy / file
        content = source.read_bytes()
        if not file.startswith(NOT_TESTED) and not file.endswith(".md"):
            digest.update(f"{file}\0{len(content)}\0".encode() + content)
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    wanted = {copy / file for file in files}
    for folder in (path for path in copy.iterdir() if path.is_dir() and path.name != "build"):
        for file in folder.rglob("*"):
            if file.is_file() and file not in wanted and "__pycache__" not in file.parts:
                file.unlink()
    return digest.hexdigest()
