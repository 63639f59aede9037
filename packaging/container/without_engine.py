#!/usr/bin/env python3
"""Carries out a Containerfile without a container engine: its stages are folders, its steps run in a
chroot of a user namespace, and at the end its command runs without any capability. So the image is
proven where neither Docker nor Podman is. It needs mmdebstrap(1) for the base, or --base.

usage: without_engine.py [--base TAR] [--packages FOLDER] [--limit MB] FOLDER [COMMAND...]

  FOLDER             where the root folder of the last stage is made; it must not exist
  COMMAND            instead of the Containerfile's CMD
  --base TAR         the root of FROM's image, instead of one that mmdebstrap makes
  --packages FOLDER  what the stage `build` has in /packages; the stage is left out
  --limit MB         the most that the last stage may add to its base (default 60)
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RELEASES = {"docker.io/library/debian:12-slim": "bookworm", "docker.io/library/debian:13-slim": "trixie"}
# Inside the namespace one user exists, so apt cannot become another one.
APT = 'APT::Sandbox::User "root";\nDir::Log::Terminal "";\n'


def instructions(text):
    """(INSTRUCTION, rest), with continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def stages(text):
    """A dict for each FROM: image, name, steps."""
    found = []
    for word, rest in instructions(text):
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            found.append({"image": image, "name": name, "steps": []})
        else:
            found[-1]["steps"].append((word, rest))
    return found


def in_namespace(root, script, command, variables, unshare=("--map-root-user",)):
    """Runs the script of sh, whose $1 is the root folder and "${@:2}" the command."""
    return subprocess.run(["unshare", "--user", *unshare, "--mount", "--pid", "--fork", "--kill-child",
                           "bash", "-ec", script, "bash", str(root), *command],
                          env={"PATH": PATH} | variables, check=True)


MOUNTS = """
mount -t proc none "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs none "$1/tmp"
"""


class Stage:
    """The root folder of one stage, and what ENV, USER and ENTRYPOINT have said."""

    def __init__(self, root, others):
        self.root, self.others = root, others
        self.variables, self.user, self.entry, self.command = {}, "0:0", [], []

    def make_base(self, image, tar):
        """All files belong to the one user of the namespace."""
        self.unpack_base(image, tar)
        subprocess.run(["chown", "-hR", f"{os.geteuid()}:{os.getegid()}", self.root], check=True)

    def unpack_base(self, image, tar):
        if tar:
            self.root.mkdir()
            subprocess.run(["tar", "-xf", tar, "-C", self.root, "--exclude=./dev/*"], check=True)
            return
        if image not in RELEASES:
            sys.exit(f"without_engine: no release is known for {image}")
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates",
                        "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
                        RELEASES[image], self.root], check=True)

    def run(self, rest):
        mounts, command = re.fullmatch(r"((?:--mount=\S+\s+)*)(.*)", rest).groups()
        script = MOUNTS
        for mount in mounts.split():
            what = dict(pair.split("=") for pair in mount.removeprefix("--mount=").split(","))
            source = self.others[what["from"]] / what["source"].lstrip("/")
            (self.root / what["target"].lstrip("/")).mkdir(exist_ok=True)
            script += f'mount --bind {shlex.quote(str(source))} "$1{what["target"]}"\n'
        (self.root / "run/apt.conf").write_text(APT)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        in_namespace(self.root, script + 'exec chroot "$1" /bin/sh -c "$2"', [command],
                     self.variables | {"APT_CONFIG": "/run/apt.conf", "HOME": "/root"})

    def copy(self, rest):
        source, target = rest.split()
        to = self.root / target.lstrip("/")
        if source == ".":
            shutil.copytree(HERE.parents[1], to, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
        else:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(HERE.parents[1] / source, to)

    def step(self, word, rest):
        print(f"STEP {word} {rest}", flush=True)
        if word == "RUN":
            self.run(rest)
        elif word == "COPY":
            self.copy(rest)
        elif word == "ENV":
            self.variables |= dict(pair.split("=", 1) for pair in shlex.split(rest))
        elif word == "USER":
            self.user = rest
        elif word in ("ENTRYPOINT", "CMD"):
            setattr(self, "entry" if word == "ENTRYPOINT" else "command", json.loads(rest))
        else:
            sys.exit(f"without_engine: {word} is not known here")

    def start(self, command):
        """In a network namespace of its own with loopback, as the user, with no capability left."""
        user, _, group = self.user.partition(":")
        script = MOUNTS + """ip link set lo up
exec chroot "$1" setpriv --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all -- "${@:2}" """
        in_namespace(self.root, script, self.entry + (command or self.command), self.variables,
                     (f"--map-user={user}", f"--map-group={group or user}", "--keep-caps", "--net"))


def files_of(root):
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            found[path] = (status.st_ino, status.st_mtime_ns, status.st_size)
    return found


def added_bytes(before, after):
    """What a layer holds: files that are new or were changed; each inode once."""
    return sum({about[0]: about[2] for path, about in after.items() if before.get(path) != about}.values())


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("--base")
    parser.add_argument("--packages", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--file", type=pathlib.Path, default=HERE / "Containerfile")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.folder.exists():
        parser.error(f"{arguments.folder} exists")
    *builders, last = stages(arguments.file.read_text())
    with tempfile.TemporaryDirectory() as scratch:
        others = {}
        if arguments.packages:
            others["build"] = pathlib.Path(scratch, "build")
            (others["build"] / "packages").mkdir(parents=True)
            for package in arguments.packages.glob("*.deb"):
                shutil.copy(package, others["build"] / "packages")
            builders = []
        for builder in [*builders, last]:
            root = arguments.folder if builder is last else pathlib.Path(scratch, builder["name"])
            stage = Stage(root.resolve(), others)
            stage.make_base(builder["image"], arguments.base)
            before = files_of(root)
            for word, rest in builder["steps"]:
                stage.step(word, rest)
            others[builder["name"]] = root
        added = added_bytes(before, files_of(arguments.folder)) / 1e6
        print(f"runtime layer: {added:.1f} MB", flush=True)
        if added > arguments.limit:
            sys.exit(f"without_engine: the runtime layer has more than {arguments.limit:g} MB")
        stage.start(arguments.command)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"without_engine: status {error.returncode} of {shlex.join(map(str, error.cmd[-2:]))}")
