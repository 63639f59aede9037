"""Where a measurement runs: both sides on one host, on two network namespaces that a veth joins,
which may lose packets, or in two guests of the lab (soft_roce.py). All on one machine, each side on
a core of its own, as an ordinary user; "veth, as root" is for links that need privilege."""

import copy
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/programs"))
import harness  # noqa: E402
import two_hosts  # noqa: E402

VETH_MTU = 9000
LOSSY_MTU = 4200  # so that packets of TCP are as long as those of RDMA

# Each packet of the other side is lost by chance, one by one: what the kernel would carry in one
# piece (GSO) is cut before.
LOSSES_PER_MILLION = {f"veth losing {share} %": int(float(share) * 10000)
                      for share in ("0", "0.01", "0.1", "1")}

# UCX looks for interfaces in /sys, which shows those of the namespace that it was mounted in.
WITH_OWN_SYS = ("unshare", "--mount", "sh", "-c", 'mount -t sysfs none /sys && exec "$0" "$@"')


class Side:
    """One end: what to put before a command, and the address that the other reaches it by."""

    def __init__(self, core, address, device, host=(), user=None):
        self.host = host  # the command that enters it
        self.user = user  # as harness.Build's
        self.prefix = (*host, "taskset", "-c", str(core))
        self.address, self.device = address, device

    def on_any_core(self):
        """For programs with several threads that compute."""
        side = copy.copy(self)
        side.prefix = tuple(self.host)
        return side


class Site:
    """Two ends, and the build under test. `folder` holds what the measurements write."""

    def __init__(self, name, build, left, right, folder, closed_at_end):
        self.name, self.build, self.left, self.right, self.folder = name, build, left, right, folder
        self._kept, self._closed_at_end = {}, closed_at_end

    def keep(self, name, make):
        """What `make` makes when it is first asked for; it is closed with the sites."""
        if name not in self._kept:
            self._kept[name] = make()
            self._closed_at_end.append(self._kept[name])
        return self._kept[name]

    def new_folder(self, parent=None):
        """Empty, and anybody may write to it."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-bench-", dir=parent or self.folder))
        folder.chmod(0o777)
        return folder

    def start(self, side, *command, environment=None):
        return harness.Program([*side.prefix, *command], environment or {}, side.user)

    def start_on_device(self, side, *command, environment=None):
        variables = {"VERBENA_ADDRESS": side.device} | (environment or {})
        return self.start(side, self.build.verbena, "run", "--", *command, environment=variables)


def cores():
    """Two that this process may use; the same one twice where there is but one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


class Sites:
    """Makes each site when it is first asked for."""

    def __init__(self, build_folder):
        self.build = harness.Build(build_folder)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbena-bench-"))
        self.folder.chmod(0o777)
        self._made, self._closed_at_end = {}, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for made in reversed(self._closed_at_end):
            made.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def get(self, name):
        """unittest.SkipTest: it cannot be had on this machine."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name):
        if name == "same host":
            return self._same_host()
        if name in LOSSES_PER_MILLION:
            return self._lossy(name, LOSSES_PER_MILLION[name])
        if name == "veth, as root":
            return self._veth_as_root(name)
        if name == "two guests":
            return self._two_guests()
        return self._veth(name, VETH_MTU)

    def _same_host(self):
        address = harness.ADDRESS
        left, right = (Side(core, address, address) for core in cores())
        return Site("same host", self.build, left, right, self.folder, self._closed_at_end)

    def _veth(self, name, mtu):
        return self._site_of(name, two_hosts.TwoHosts(self.build, mtu))

    def _veth_as_root(self, name):
        if os.geteuid() != 0:
            raise unittest.SkipTest("AF_XDP needs root")
        return self._site_of(name, two_hosts.TwoHosts(self.build, VETH_MTU, as_root=True))

    def _site_of(self, name, hosts):
        self._closed_at_end.append(hosts)
        left, right = (Side(core, host.ipv4, two_hosts.INTERFACE, (*host.build.prefix, *WITH_OWN_SYS),
                            host.build.user)
                       for core, host in zip(cores(), (hosts.a, hosts.b)))
        return Site(name, self.build, left, right, self.folder, self._closed_at_end)

    def _lossy(self, name, per_million):
        hosts = two_hosts.TwoHosts(self.build, LOSSY_MTU)
        site = self._site_of(name, hosts)
        for host in (hosts.a, hosts.b):
            host.run(f"ip link set {two_hosts.INTERFACE} gso_max_segs 1")
            host.run("nft add table ip loss")
            host.run("nft add chain ip loss arriving { type filter hook prerouting priority -300 ; }")
            host.run(f"nft add rule ip loss arriving iifname {two_hosts.INTERFACE} "
                     f"numgen random mod 1000000 < {per_million} drop")
        return site

    def _two_guests(self):
        import soft_roce  # which needs what is defined here
        guests = soft_roce.Guests(self.build, self.folder)
        self._closed_at_end.append(guests)
        return guests
