"""Two hosts on this machine: network namespaces that a veth joins, each with addresses of its own,
made in a user namespace, so that no privilege is needed: there the programs have all rights that a
network namespace gives, and none over the machine. Or, as root, without one: then the programs are
root's. Everything is gone when the holders end.
"""

import subprocess
import unittest

import children
import harness

INTERFACE = "net0"


class Host:
    """A network namespace, held by a sleeping process, with the programs of a build in it."""

    def __init__(self, build, holder, number, as_root):
        self.holder = holder
        self._enter = entering(holder.pid, as_root)
        self._user = {} if as_root else harness.ordinary_user()[0]
        self.ipv4, self.ipv6 = f"10.77.0.{number}", f"fd77::{number}"
        self.more_ipv4, self.more_ipv6 = f"10.77.1.{number}", f"fd77:1::{number}"
        self.build = harness.Build(build.folder, address=INTERFACE, prefix=self._enter,
                                   user=self._user)

    def run(self, line):
        """Runs a command that has to succeed."""
        done = subprocess.run([*self._enter, *line.split()], capture_output=True, text=True,
                              **self._user)
        if done.returncode != 0:
            raise harness.Failure(f"$ {line}\n{done.stderr}")
        return done.stdout

    def bring_up(self):
        self.run("ip link set lo up")
        self.run(f"ip link set {INTERFACE} up")
        for address in (f"{self.ipv4}/24", f"{self.more_ipv4}/24"):
            self.run(f"ip address add {address} dev {INTERFACE}")
        for address in (f"{self.ipv6}/64", f"{self.more_ipv6}/64"):
            self.run(f"ip address add {address} dev {INTERFACE} nodad")

    def take_link_down(self):
        self.run(f"ip link set {INTERFACE} down")

    def take_link_up(self):
        self.run(f"ip link set {INTERFACE} up")
        harness.wait_until(lambda: " UP " in self.run(f"ip -brief link show dev {INTERFACE}"), harness.START_LIMIT_S,
                           "the link is up")

    def is_ready(self):
        return "inet6" in self.run(f"ip -6 address show dev {INTERFACE} scope link -tentative")

    @property
    def link_local(self):
        """The interface's own IPv6 address, with its scope."""
        words = self.run(f"ip -6 -brief address show dev {INTERFACE} scope link").split()
        return words[2].partition("/")[0] + "%" + INTERFACE


class TwoHosts:
    """`a` and `b`, joined by a link of so many bytes."""

    def __init__(self, build, mtu, as_root=False):
        self._holders = []
        self._user = {} if as_root else harness.ordinary_user()[0]
        self.mtu = mtu
        namespaces = ["--net"] if as_root else ["--user", "--map-root-user", "--net"]
        try:
            first = self._hold(["unshare", *namespaces])
            second = self._hold([*entering(first.pid, as_root), "unshare", "--net"])
            self.a, self.b = (Host(build, first, 1, as_root), Host(build, second, 2, as_root))
            self.a.run(f"ip link add {INTERFACE} mtu {mtu} type veth "
                       f"peer name {INTERFACE} mtu {mtu} netns {second.pid}")
            self.a.bring_up()
            self.b.bring_up()
            for host in (self.a, self.b):
                harness.wait_until(host.is_ready, harness.START_LIMIT_S, "the interfaces have their addresses")
        except (OSError, harness.Failure) as reason:
            self.close()
            raise unittest.SkipTest(f"no two hosts here: {reason}") from None

    def _hold(self, prefix):
        holder = children.Child([*prefix, "sh", "-c", "echo ready; exec sleep 3600"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, cwd="/",
                                **self._user)
        self._holders.append(holder)
        first = holder.stdout.readline().strip()
        if first != "ready":
            raise harness.Failure(f"{' '.join(prefix)}: {first}")
        return holder

    def close(self):
        for holder in self._holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()


def entering(pid, as_root=False):
    if as_root:
        return ("nsenter", f"--target={pid}", "--net", "--")
    return ("nsenter", f"--target={pid}", "--user", "--net", "--preserve-credentials", "--")
