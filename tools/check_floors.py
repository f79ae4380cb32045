#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the floors of the house: a file includes only strictly lower floors, or its own room. The same
holds inside fovea/attention, the largest room, whose internal headers declare only in fovea::detail.

The same holds for what the library of a room links (cmake/FoveaRooms.cmake), and what a room
includes it also links. Tests, benchmarks and examples may include anything.
"""

import argparse
import pathlib
import re
import sys

import sources

FLOORS = (
    ("base",),
    ("simd",),
    ("attention", "kernel"),
    ("text", "report", "catalogue", "comm", "parts"),
    ("tensor", "config", "metrics"),
    ("grad", "operator"),
    ("nn", "data"),
    ("model", "train"),
    ("explain", "linear", "pretrained"),
    ("task",),
    ("experiments",),
    ("cli", "python", "reference"),  # nothing of the product stands on what only checks use
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# The rooms inside fovea/attention: its folders, and what the files of its root make up.
ATTENTION_FLOORS = (
    ("vocabulary",),
    ("relative", "mask"),
    ("bias", "observe", "values"),
    ("lambda", "score"),
    ("call",),
    ("fused", "linear"),
    ("entry",),
)
ATTENTION_ROOT = {
    "vocabulary": ("check_views", "dropout", "dropout-inl", "norm", "overlap", "parts", "tile", "view"),
    "call": ("call", "lowered_call"),
    "entry": ("attention", "bfloat16", "checks", "reference", "reference_score"),
}
MOST_ATTENTION_INCLUDES = 50  # from one of these rooms to another
# Its headers that declare what users may use; the rest of them is internal.
ATTENTION_INTERFACE = re.compile(
    r"fovea/attention/(attention|call|dropout|norm|overlap|parts|reference|tile|view|lambda/(lambdas|of|trace|symbols/place)"
    r"|relative/shaw|score/score|(bias|mask|values)/\w+|observe/\w+)\.h")
FORWARD, BACKWARD = r"fovea/attention/fused/forward.*", r"fovea/attention/fused/.*backward.*"

# Headers of others that cost seconds a file, or that only one place may know: where they may stand.
BORROWED = {
    r"hwy/highway\.h": r"fovea/simd/simd-inl\.h",
    r"hwy/foreach_target\.h": r"fovea/.*\.cc",
    r"hwy/.*": r"fovea/simd/.*",
    r"nlohmann/.*": r"fovea/(config/json|tensor/safetensors)\.cc",
    r"toml\+\+/.*": r"fovea/config/toml\.cc",
    r"zlib\.h": r"fovea/(tensor/(checksum|zip)|text/compressed)\.cc",
    r"zstd.*\.h": r"fovea/text/compressed\.cc",
    r"sentencepiece_.*\.h": r"fovea/text/sentencepiece/trainer\.cc",  # its reader of models is not safe
    r"CLI/.*": r"cli/command_line\.cc",
    r"nanobind/.*": r"python/extension/.*",
}


def room_of(path):
    parts = pathlib.PurePath(path).parts
    if parts[0] == "fovea":
        return parts[1] if len(parts) > 2 else None  # fovea/fovea.h includes the rooms, and is in none
    return parts[0] if parts[0] in FLOOR_OF else None


def check_include(path, name):
    """What is wrong with this include, or None."""
    here, there = room_of(path), room_of(name) if "/" in name else None
    if name.startswith(("tests/", "bench/", "examples/")):
        return f"{here} includes {name}: the product knows nothing of its tests"
    if name == "fovea/fovea.h":
        return f"{here} includes {name}, which is for programs that use the library"
    if there is None or there == here:
        return None
    if here not in FLOOR_OF or there not in FLOOR_OF:
        return f"{here} includes {name}: a room without a floor"
    if FLOOR_OF[there] >= FLOOR_OF[here]:
        return (f"{here} (floor {FLOOR_OF[here]}) includes {name} (floor {FLOOR_OF[there]}): "
                "only strictly lower floors")
    return None


def check_borrowed(path, name):
    for pattern, places in BORROWED.items():
        if re.fullmatch(pattern, name):
            if not re.fullmatch(places, path):
                return f"{name} may be included only by {places}"
            return None
    return None


def attention_room_of(path):
    """The room of a file inside fovea/attention, or None."""
    parts = pathlib.PurePath(path).parts[2:]
    if len(parts) > 1:
        return parts[0]
    name = pathlib.PurePath(parts[0]).stem
    return next((room for room, names in ATTENTION_ROOT.items() if name in names), None)


def check_attention(included):
    """What is wrong with the includes (path, line, name) of the files of fovea/attention."""
    floor_of = {room: floor for floor, rooms in enumerate(ATTENTION_FLOORS) for room in rooms}
    problems, between = [], 0
    for path, line, name in included:
        here, there = attention_room_of(path), attention_room_of(name)
        unknown = next((one for one, room in ((path, here), (name, there)) if room not in floor_of), None)
        if unknown:
            problems.append(f"{unknown}: a file of attention without a room")
        elif here != there:
            between += 1
            if floor_of[there] >= floor_of[here]:
                problems.append(f"{path}:{line}: attention's {here} (floor {floor_of[here]}) includes {name} "
                                f"({there}, floor {floor_of[there]}): only strictly lower floors")
        if re.fullmatch(FORWARD, path) and re.fullmatch(BACKWARD, name):
            problems.append(f"{path}:{line}: the forward includes {name}, of the backward")
    if between > MOST_ATTENTION_INCLUDES:
        problems.append(f"fovea/attention: {between} includes between its rooms; {MOST_ATTENTION_INCLUDES} are allowed")
    return problems


def check_namespace(path, text):
    """What an internal header of attention declares outside of fovea::detail (but for declarations of classes)."""
    if not re.fullmatch(r"fovea/attention/.*\.h", path) or ATTENTION_INTERFACE.fullmatch(path):
        return []
    problems = []
    for name, body in re.findall(r"^namespace (\S+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        declared = [line for line in body.splitlines() if line and not re.fullmatch(r"(struct|class) \w+;.*", line)]
        if declared and not name.startswith("fovea::detail") and name != "HWY_NAMESPACE":
            problems.append(f"{path}: is internal, and declares in {name}: only fovea::detail")
    return problems


def links_of(cmake_text):
    """The rooms that each room's library links, from the lines fovea_room(NAME LINK ...)."""
    text = re.sub(r"#.*", "", cmake_text)
    return {
        name: set(re.findall(r"\bfovea(?:_|::)(\w+)", rest))
        for name, rest in re.findall(r"\bfovea_room\(\s*(\w+)([^)]*)\)", text)
    }


def reachable(room, links, seen=None):
    seen = set() if seen is None else seen
    for other in links.get(room, ()):
        if other not in seen:
            seen.add(other)
            reachable(other, links, seen)
    return seen


def check_links(links):
    problems = []
    for room, others in links.items():
        for other in sorted(others):
            if room not in FLOOR_OF or other not in FLOOR_OF:
                problems.append(f"fovea_room({room}) links {other}: a room without a floor")
            elif FLOOR_OF[other] >= FLOOR_OF[room]:
                problems.append(f"fovea_room({room}) links {other}: only strictly lower floors")
    return problems


def check(root):
    cmake = root / "cmake" / "FoveaRooms.cmake"
    links = links_of(cmake.read_text())
    problems = [f"cmake/FoveaRooms.cmake: {problem}" for problem in check_links(links)]
    of_attention = []
    for path in sources.cpp_files(root, ("fovea", "experiments", "cli", "python")):
        name, here = path.as_posix(), room_of(path)
        if here is None:
            continue
        if here not in FLOOR_OF:
            problems.append(f"{name}: the room {here} has no floor")
        text = (root / path).read_text()
        problems += check_namespace(name, text)
        for line, included, _ in sources.includes(text):
            for problem in (check_include(name, included), check_borrowed(name, included)):
                if problem:
                    problems.append(f"{name}:{line}: {problem}")
            there = room_of(included) if included.startswith("fovea/") else None
            if here == there == "attention":
                of_attention.append((name, line, included))
            if here in links and there not in (None, here) and there not in reachable(here, links):
                problems.append(f"{name}:{line}: fovea_room({here}) does not link fovea_{there}")
    return problems + check_attention(of_attention)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=sources.ROOT)
    return sources.report("floors", check(parser.parse_args().root))


if __name__ == "__main__":
    sys.exit(main())
