"""Prints what libibumad's calls of rdma-core 52 and later say, as JSON. Headers and libraries of
Debian 12 lack them, so they are called by their names.

usage, under `verbena run`: umad_pairs.py
"""

import ctypes
import json


class Pair(ctypes.Structure):
    _fields_ = [("smi", ctypes.c_char * 20), ("smi_port", ctypes.c_uint32),
                ("gsi", ctypes.c_char * 20), ("gsi_port", ctypes.c_uint32)]

    def text(self):
        return f"{self.smi.decode()}:{self.smi_port} {self.gsi.decode()}:{self.gsi_port}"


def main():
    library = ctypes.CDLL("libibumad.so.3")
    one, few = Pair(), (Pair * 4)()

    def by_name(name, port, enforce):
        status = library.umad_get_smi_gsi_pair_by_ca_name(name, port, ctypes.byref(one), enforce)
        return one.text() if status == 0 else status

    count = library.umad_get_smi_gsi_pairs(few, ctypes.c_size_t(4))
    print(json.dumps({
        "pairs": [pair.text() for pair in few[:max(count, 0)]],
        "none fits": library.umad_get_smi_gsi_pairs(few, ctypes.c_size_t(0)),
        "first": by_name(None, 0, 0),
        "named": by_name(b"verbena0", 1, 0),
        "with smi": by_name(b"verbena0", 1, 1),
        "no such port": by_name(b"verbena0", 2, 0),
        "no such device": by_name(b"mlx5_0", 1, 0),
    }))


if __name__ == "__main__":
    main()
