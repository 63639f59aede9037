"""perftest through `verbena nic`, and with encryption: the same program, options and place as without."""

import dataclasses
import time

import sites  # noqa: F401  (it makes the next line work)
import harness
import measurements

PORT = 4797  # of PSP; needs no privilege


class NICs:
    """A `verbena nic` at each end of a site, with one function, on the core of that end."""

    def __init__(self, site, encryption):
        self._site, self._programs, self._sockets = site, [], {}
        for name, side in (("left", site.left), ("right", site.right)):
            file = site.folder / f"nic-{site.name.replace(' ', '-')}-{name}-{bool(encryption)}.yaml"
            socket = file.with_suffix(".sock")
            file.write_text(f"socket: {socket}\nfunctions: [{{name: f, address: {side.address}}}]\n"
                            + (f"encryption: '{encryption}'\n" if encryption else ""))
            file.chmod(0o644)
            program = site.start(side.on_any_core(), site.build.verbena, "nic", str(file))
            self._programs.append(program)
            self._sockets[side.address] = socket
            harness.wait_until(lambda s=socket, p=program: s.exists() or p.ended(), 20,
                               "the NIC listens")

    def socket_of(self, side):
        return str(self._sockets[side.address])

    def close(self):
        for program in self._programs:
            program.kill()


@dataclasses.dataclass(frozen=True)
class SecuredPerftest:
    """A Perftest whose packets go through a NIC process, encrypted, or both."""
    plain: measurements.Perftest
    by_nic: bool = False
    encrypted: bool = False

    def run(self, site):
        port = harness.free_tcp_port()
        command = [self.plain.program, *self.plain.options, "-p", port]
        server = site.start_on_device(site.left, *command, environment=self._variables(site, site.left))
        try:
            measurements.listens("tcp", port, server, "0A")
            client = site.start_on_device(site.right, *command, site.left.address,
                                          environment=self._variables(site, site.right))
            output = measurements.finish(client, server)
        finally:
            server.kill()
        rows = harness.perftest_rows(output)
        if len(rows) != 1:
            raise measurements.Failed(f"{client}")
        return measurements.perftest_value(rows[0], self.plain.what)

    def _variables(self, site, side):
        variables = {"VERBENA_LOCAL": "off"}
        encryption = self._encryption(site) if self.encrypted else ""
        if self.by_nic:
            nics = site.keep(f"nics {bool(encryption)}", lambda: NICs(site, encryption))
            variables |= {"VERBENA_NIC": nics.socket_of(side), "VERBENA_ADDRESS": ""}
        elif encryption:
            variables["VERBENA_ENCRYPTION"] = encryption
        return variables

    @staticmethod
    def _encryption(site):
        key = site.folder / "psk"
        if not key.exists():
            key.write_text(f"a key of this run, {time.time_ns()}")
            key.chmod(0o644)
        return f"psk:{key},port={PORT}"

    def __str__(self):
        how = " and ".join([*(["through verbena nic"] if self.by_nic else []),
                            *(["encrypted"] if self.encrypted else [])])
        return f"{self.plain}, {how}"
