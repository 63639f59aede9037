"""A QEMU guest whose memory is a file, and that QMP controls: for the tests and benchmarks of
migration. Its boot sector never stops incrementing words in the first MiB; the rest of the memory
is what the file had before."""

import json
import os
import socket

import harness

# cli; first: mov ax,0x2000; segment: mov es,ax; xor di,di; word: mov eax,cr0; xor eax,0x10000; mov cr0,eax;
# inc word [es:di]; add di,0x40; jnz word; mov ax,es; add ax,0x1000; cmp ax,0x9000; jb segment; jmp
# first. Each change of CR0.WP makes QEMU's TCG flush its TLB. Otherwise QEMU 7.2 loses changes in a
# migration, with TCP as with RDMA: when cpu_physical_memory_sync_dirty_bitmap() clears dirty bits,
# TLB entries remain that let the guest write without setting them again. Interrupts are off, because
# the BIOS's timer interrupt writes to its stacks (0x6000, 0xe8000) and flushes nothing.
INCREMENTING = bytes.fromhex("fa b80020 8ec0 31ff 0f20c0 663500000100 0f22c0 26ff05 83c740 75ec 8cc0"
                             "050010 3d0090 72de ebd9")
BOOT_SECTOR = INCREMENTING.ljust(510, b"\0") + b"\x55\xaa"
CHANGING = 0x20000  # where the first of those words is


class Guest:
    """`incoming`: where it waits for a migration (-incoming), paused until told otherwise."""

    def __init__(self, start, folder, name, memory_mib, incoming=None):
        self.memory, self._control = folder / f"{name}.memory", folder / f"{name}.qmp"
        if not self.memory.exists():
            self.memory.write_bytes(b"")
            os.truncate(self.memory, memory_mib << 20)
        self.memory.chmod(0o666)
        disk = folder / "boot"
        if not disk.exists():
            disk.write_bytes(BOOT_SECTOR.ljust(1440 << 10, b"\0"))
            disk.chmod(0o644)
        command = ["qemu-system-x86_64", "-machine", "pc,accel=tcg,memory-backend=ram", "-nodefaults",
                   "-display", "none", "-m", memory_mib, "-object",
                   f"memory-backend-file,id=ram,size={memory_mib}M,share=on,mem-path={self.memory}",
                   "-drive", f"if=floppy,format=raw,readonly=on,file={disk}",
                   "-qmp", f"unix:{self._control},server=on,wait=off"]
        self.program = start(*command, *(["-S", "-incoming", incoming] if incoming else []))
        harness.wait_until(lambda: self.program.ended() or self._connects(), harness.START_LIMIT_S,
                           f"QEMU starts\n{self.program}")
        self.ask("qmp_capabilities")

    def _connects(self):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self._control))
        except OSError:
            connection.close()
            return False
        self._connection, self._lines = connection, connection.makefile("rw")
        return "QMP" in json.loads(self._lines.readline())

    def ask(self, command, **arguments):
        """What the command returns; Failure where it is refused."""
        self._lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._lines.flush()
        while line := self._lines.readline():
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise harness.Failure(f"{command}: {answer['error']['desc']}\n{self.program}")
        raise harness.Failure(f"{command}: QEMU ended\n{self.program}")

    def set_capability(self, name):
        self.ask("migrate-set-capabilities", capabilities=[{"capability": name, "state": True}])

    def limit_bandwidth(self, bytes_per_s):
        self.ask("migrate-set-parameters", **{"max-bandwidth": bytes_per_s})

    def limit_downtime(self, milliseconds):
        self.ask("migrate-set-parameters", **{"downtime-limit": milliseconds})

    def migration(self):
        return self.ask("query-migrate")

    def passes(self):
        """How often QEMU has looked for changed pages, with the final time."""
        return self.migration().get("ram", {}).get("dirty-sync-count", 0)

    def has_migrated(self):
        return self.migration().get("status") in ("completed", "failed", "cancelled")

    def migrate(self, uri, limit_s):
        """To its end, whichever that is; what QEMU says of it."""
        self.ask("migrate", uri=uri)
        harness.wait_until(self.has_migrated, limit_s, f"the migration ends\n{self.program}")
        return self.migration()

    def changing_word(self):
        with open(self.memory, "rb") as file:
            return os.pread(file.fileno(), 2, CHANGING)

    def wait_until_running(self):
        before = self.changing_word()
        harness.wait_until(lambda: self.changing_word() != before, harness.START_LIMIT_S,
                           f"the guest changes its memory\n{self.program}")

    def close(self):
        self.program.kill()
        self._lines.close()
        self._connection.close()
