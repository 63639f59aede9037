"""Finds functions that programs call and that an exception could leave.

Every function that a symbol map or a .symver line exports, and every function in the tables of a
context, a CQ or a QP, has the barrier of src/abi/ibverbs/exceptions.h: a function try block that
catches all, `noexcept` on a function that calls nothing but the helpers of errors.h, or, in a table,
guarded<>.
"""

import pathlib
import re
import sys

FOLDERS = ("ibverbs", "rdmacm", "ibumad")
MAPS = ("libibverbs.map", "librdmacm.map", "libibumad.map")
EXPORTED = re.compile(r"^    ([a-z_]\w+);$", re.M)
SYMVER = re.compile(r"^VERBENA_\w+\((verbena_\w+), ", re.M)
AT_EVERY_NODE = re.compile(r"^  \w+\((verbena_\w+), ", re.M)
DEFINITION = re.compile(r"^(?:\[\[[\w:]+\]\] )?(?!using|namespace|static_assert|return|else)"
                        r"[\w:*& ]+?[ *](\w+)"
                        r"\(([^;{}]*?)\)\s*(noexcept |try )?\{", re.M)
TABLE = re.compile(r"^  (?:ops\.|verbs_context::|qp\.wr_|cq\.read_|cq\.(?=\w+_poll)|dm->memcpy)"
                   r"\w* = ([^;]+);", re.M)
ASM_NAME = re.compile(r"^\w+ (\w+)\([^;{}]*?\)\s*(?:noexcept\s+)?asm\(\"(\w+)\"\);", re.M)
CATCHES = re.compile(r"\} catch \(\.\.\.\) \{")


def exported_names(abi):
    names = set()
    for name in MAPS:
        names.update(EXPORTED.findall((abi / name).read_text()))
    for path in sources(abi):
        text = path.read_text()
        names.update(SYMVER.findall(text))
        if path.name.startswith("private_symbols"):
            names.update(AT_EVERY_NODE.findall(text))
    return names


def sources(abi):
    for folder in FOLDERS:
        yield from sorted((abi / folder).rglob("*.[ch]*"))


def definitions(abi):
    """Name to (path, "try", "noexcept" or "")."""
    found = {}
    for path in sources(abi):
        for match in DEFINITION.finditer(path.read_text()):
            found.setdefault(match.group(1), []).append((path, (match.group(3) or "").strip()))
        for name, exported in ASM_NAME.findall(path.read_text()):
            found[exported] = found.get(name, [])
    return found


def is_behind_the_barrier(kinds):
    return any(kind in ("try", "noexcept") for _, kind in kinds)


def unguarded_exports(abi):
    found = definitions(abi)
    for name in sorted(exported_names(abi)):
        if name not in found:
            if not re.search(rf"\b{name} = ", "".join(p.read_text() for p in sources(abi))):
                yield f"{name}: no definition found"
        elif not is_behind_the_barrier(found[name]):
            yield f"{found[name][0][0].name}: {name}: an exception could leave it"


def unguarded_table_entries(abi):
    found = definitions(abi)
    for path in sources(abi):
        for value in TABLE.findall(path.read_text()):
            if not value.startswith("guarded<") and not is_behind_the_barrier(found.get(value, [])):
                yield f"{path.name}: {value}: an exception could leave it; put it there as guarded<{value}>"


def blocks_without_handler(abi):
    for path in sources(abi):
        text = path.read_text()
        blocks = sum(match.group(3) == "try " for match in DEFINITION.finditer(text))
        if blocks > len(CATCHES.findall(text)):
            yield f"{path.name}: a function try block without catch (...)"


def main(root):
    abi = pathlib.Path(root) / "src" / "abi"
    count = len(exported_names(abi))
    mistakes = [*unguarded_exports(abi), *unguarded_table_entries(abi), *blocks_without_handler(abi)]
    if count < 170:
        mistakes.append(f"only {count} exported names were found")
    for mistake in mistakes:
        print(mistake)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
