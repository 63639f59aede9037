"""The list of mutants: LAYER.toml beside this file, each a list of small wrong edits of one layer.

  [[mutant]]
  name = "rc-window-off-by-one"         unique
  why = "A requester sends ..."         what a user would see
  file = "src/transport/rc/..."         below src/LAYER/
  find = '''...'''                      literal text that occurs exactly once in the file
  replace = '''...'''                   what stands there instead; must compile, and be wrong
  first = ["rdmacm_test"]               optional: the tests to try before the layer's own
"""

import dataclasses
import tomllib

from source_edits import ROOT, Edit, ListError

FOLDER = ROOT / "tests" / "mutants"
# The layers with code, lowest first, as CMakeLists.txt has them.
LAYERS = ("base", "wire", "memory", "congestion", "transport", "connect", "device", "faults",
          "explain", "check", "application", "host", "fabric", "collectives", "coll", "communicator",
          "verbs", "nvmf_program", "agent", "jobs", "nvmf", "management", "transfer", "live", "abi",
          "perf", "models", "cli")
KEYS = {"name", "why", "file", "find", "replace"}
OPTIONAL = {"first"}


@dataclasses.dataclass(frozen=True)
class Mutant(Edit):
    layer: str
    why: str
    first: tuple = ()


def read(layer, folder=FOLDER):
    path = folder / f"{layer}.toml"
    try:
        entries = tomllib.loads(path.read_text()).get("mutant", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ListError(f"{path.name}: {error}") from error
    for entry in entries:
        if set(entry) - OPTIONAL != KEYS:
            name = entry.get("name", "an entry")
            raise ListError(f"{path.name}: {name}: its keys are {', '.join(sorted(KEYS | OPTIONAL))}")
    return [Mutant(layer=layer, **entry) for entry in entries]


def read_all(folder=FOLDER):
    """Returns all mutants: the first of each layer, then the second of each, and so on.

    The first N of the list are thus spread over the layers.
    """
    by_layer = [read(layer, folder) for layer in LAYERS]
    longest = max(len(mutants) for mutants in by_layer)
    return [mutants[i] for i in range(longest) for mutants in by_layer if i < len(mutants)]


def select(mutants, words):
    """Returns (number, mutant) of those that the words name: a count, layers, names."""
    numbered = list(enumerate(mutants, 1))
    if not words:
        return numbered
    if len(words) == 1 and words[0].isdecimal():
        count = int(words[0])
        if not 1 <= count <= len(mutants):
            raise ListError(f"{count}: there are 1 to {len(mutants)} mutants")
        return numbered[:count]
    known = {mutant.name for mutant in mutants} | set(LAYERS)
    for word in words:
        if word not in known:
            raise ListError(f"no mutant or layer {word}; --list shows them")
    return [(number, mutant) for number, mutant in numbered
            if mutant.name in words or mutant.layer in words]
