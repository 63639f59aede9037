"""Loading a model of several files on one host: `verbena model`, curl from nginx, rsync; and moving the
blocks of a KV cache. GB/s."""

import dataclasses
import json
import os
import subprocess
import time

from measurements import Failed, finish
from sites import harness

MEMORY_FOLDER = harness.pathlib.Path("/dev/shm")
FILES = 4


class Model:
    """Files of random bytes in memory, who serves them, and a folder for copies."""

    def __init__(self, site, size):
        self.folder = site.new_folder(MEMORY_FOLDER)
        self.files = self.folder / "files"
        self.files.mkdir()
        block = os.urandom(1 << 20)
        for number in range(FILES):
            with open(self.files / f"part{number}.bin", "wb") as file:
                for _ in range(size // FILES >> 20):
                    file.write(block)
                    block = block[1:] + block[:1]
        self.folder.chmod(0o755)
        self.size = size

    def new_target(self, site):
        target = self.folder / "target"
        subprocess.run(["rm", "-rf", target], check=True)
        target.mkdir()
        target.chmod(0o777)
        return target

    def close(self):
        subprocess.run(["rm", "-rf", self.folder], check=True)


def model_of(site, size):
    return site.keep(f"model of {size}", lambda: Model(site, size))


@dataclasses.dataclass(frozen=True)
class ModelFetch:
    """`verbena model fetch` of all files by so many fetchers at a time: bytes of one in the time of
    the last."""
    size: int
    fetchers: int = 1

    def run(self, site):
        model = model_of(site, self.size)
        server = site.start(site.left.on_any_core(), site.build.verbena, "model", "serve",
                                      model.files, "--address", site.left.device)
        try:
            harness.wait_until(lambda: server.ended() or "model fetch" in server.output(), 60,
                               "the model is served")
            address = server.output().split()[-2]
            target = model.new_target(site)
            begin = time.monotonic()
            fetchers = [site.start(site.right.on_any_core(), site.build.verbena, "model",
                                             "fetch", address, target / str(number), "--address",
                                             site.right.device)
                        for number in range(self.fetchers)]
            for fetcher in fetchers:
                finish(fetcher)
            return self.size / (time.monotonic() - begin) / 1e9
        finally:
            server.kill()

    def __str__(self):
        return f"verbena model fetch, {self.size >> 20} MiB, {self.fetchers} at a time"


def kept_in(folder):
    """nginx's settings for temporary files: those of the system need root."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)


@dataclasses.dataclass(frozen=True)
class CurlFromNginx:
    size: int

    def run(self, site):
        model = model_of(site, self.size)
        port = harness.free_tcp_port()
        folder = site.new_folder()
        (folder / "nginx.conf").write_text(
            f"daemon off; worker_processes 2; pid {folder}/pid; error_log stderr;\n"
            "events {}\n"
            f"http {{ access_log off; sendfile on; {kept_in(folder)}"
            f" server {{ listen {site.left.address}:{port}; root {model.files}; }} }}\n")
        server = site.start(site.left.on_any_core(), "nginx", "-c", folder / "nginx.conf",
                                      "-p", folder)
        try:
            harness.wait_until(lambda: server.ended() or harness.sockets("tcp", port, "0A"), 30,
                               "nginx listens")
            target = model.new_target(site)
            begin = time.monotonic()
            finish(site.start(
                site.right.on_any_core(), "curl", "-sf", "--parallel",
                *(word for number in range(FILES)
                  for word in ("-o", target / f"part{number}.bin",
                               f"http://{site.left.address}:{port}/part{number}.bin"))))
            return self.size / (time.monotonic() - begin) / 1e9
        finally:
            server.kill()

    def __str__(self):
        return f"curl from nginx, {self.size >> 20} MiB"


@dataclasses.dataclass(frozen=True)
class Rsync:
    size: int

    def run(self, site):
        model = model_of(site, self.size)
        target = model.new_target(site)
        begin = time.monotonic()
        finish(site.start(site.right.on_any_core(), "rsync", "-r", "--whole-file",
                                    f"{model.files}/", f"{target}/"))
        return self.size / (time.monotonic() - begin) / 1e9

    def __str__(self):
        return f"rsync, {self.size >> 20} MiB"


@dataclasses.dataclass(frozen=True)
class KVBlocks:
    """`verbena bench kv`: a number of its JSON."""
    what: str
    blocks: int
    size: int

    def run(self, site):
        program = site.start(site.left.on_any_core(), site.build.verbena, "bench", "kv",
                             "--blocks", self.blocks, "--block", self.size, "--json", "--link", "udp",
                             "--address", site.left.device)
        output = finish(program)
        try:
            return json.loads(output)[self.what]
        except ValueError as error:
            raise Failed(str(program)) from error

    def __str__(self):
        return f"verbena bench kv, {self.blocks} blocks of {self.size} B: {self.what}"
