"""PyTorch's own tests of process groups, which Debian's python3-torch has (distributed_test.py in
torch/testing/_internal/distributed/), with the backend verbena where they ask for gloo. So the
tests that are for gloo alone run too:  torchs_own.py [OnVerbena.TEST...], with WORLD_SIZE, TEMP_DIR
and VERBENA_* set.
"""

import os
import sys
import types
import unittest

# The package expecttest, which only other tests use, is not needed to run these.
sys.modules.setdefault("expecttest", types.SimpleNamespace(
    ACCEPT=False, TestCase=unittest.TestCase, assert_expected_inline=None))
os.environ["BACKEND"] = "gloo"
os.environ.setdefault("WORLD_SIZE", "3")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.testing._internal.distributed.distributed_test as own  # noqa: E402
import verbena_torch  # noqa: E402, F401


def with_verbena(function):
    def call(*arguments, **named):
        if named.get("backend") == "gloo":
            named["backend"] = "verbena"
        changed = [("verbena" if value == "gloo" else value) for value in arguments]
        return function(*changed, **named)
    return call


dist.init_process_group = with_verbena(dist.init_process_group)
dist.new_group = with_verbena(dist.new_group)


# PyTorch 1.13 cannot import sharded tensors on Python 3.11, which the tests of DDP would.
if sys.version_info >= (3, 11) and torch.__version__.startswith("1."):
    import torch.nn.parallel._replicated_tensor_ddp_utils as replicated  # noqa: E402
    replicated._set_ddp_with_replicated_tensor = lambda _: None


class OnVerbena(own.TestDistBackend, own.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


# test_get_backend asks for gloo by name. Tensors are dense only.
REFUSED = {"test_get_backend", "test_sparse_all_reduce_sum"}
OF_GPUS = ("cuda", "nccl", "gpu", "NCCL")


def chosen():
    return [f"OnVerbena.{name}" for name in dir(OnVerbena) if name.startswith("test_") and
            name not in REFUSED and not any(word in name for word in OF_GPUS)]


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or chosen())])
