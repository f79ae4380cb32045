#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The conformance kit without the library: its inputs made anew, its results computed by plain loops.

  tools/conformance.py check DIR              holds every file of a kit against what is computed here
  tools/conformance.py write DIR --like KIT   writes a kit with the cases of another

Python's standard library alone; the format is told in docs/commands/conformance.md. Exit status 1
if a case differs, 2 for a kit that cannot be used.
"""

import argparse
import json
import math
import pathlib
import struct
import sys
import zlib

import attention_definition
from attention_definition import philox
from tensor_files import Tensor, read_safetensors, safetensors_bytes

NAME = "conformance.json"
TYPES = {"float32": "F32", "int32": "I32", "uint8": "U8"}
WHOLE = {"topk_index": "I32", "dropout_keep": "U8"}
POISON = (math.nan, math.inf, -math.inf)


class KitError(Exception):
    pass


def crc(data):
    return f"{zlib.crc32(data):08x}"


# ---- inputs

def word(case, tensor, n):
    return philox((n // 4, 4, zlib.crc32(tensor.encode()), 0), (zlib.crc32(case.encode()), 0))[n % 4]


def drawn(case, recipe, n):
    w = word(case, recipe["name"], n)
    return w * recipe["below"] >> 32 if "below" in recipe else ((w >> 8) - 2**23) / 2**22


def make_tensor(case, recipe):
    size = math.prod(recipe["shape"])
    values = recipe.get("values") or [drawn(case, recipe, n) for n in range(size)]
    zeros, poison = recipe.get("zeros", 0), recipe.get("poison", 0)
    values[size - zeros:] = [0.0] * zeros
    values[size - poison:] = [POISON[n % 3] for n in range(poison)]
    return Tensor(TYPES[recipe["dtype"]], recipe["shape"], values)


def make_inputs(case):
    return {recipe["name"]: make_tensor(case["name"], recipe) for recipe in case["tensors"]}


# ---- results

def options_of(settings):
    """The settings of a case, as the definition takes them."""
    options = {name.replace("_", "-"): value for name, value in settings.items()
               if name not in ("backward", "observe")}
    if "window" in options:
        options["window"] = tuple(map(int, options["window"].split(",")))
    if options.get("scale") == "auto":
        del options["scale"]
    elif "scale" in options:
        options["scale"] = float(options["scale"])
    return options


def wishes_of(settings):
    """{what is to be seen: the value behind its "=", or ""}."""
    return dict((wish + "=").split("=")[:2] for wish in settings.get("observe", "").split(",") if wish)


def chosen_rows(weights, ends):
    begin, end = map(int, ends.split(":"))
    B, H, T, S = weights.shape
    return Tensor("F64", (B, H, end - begin, S),
                  [x for b in range(B) for h in range(H) for i in range(begin, end) for x in weights.row(b, h, i)])


def compute(case, inputs):
    """Every tensor that the case asks for."""
    settings = case["settings"]
    wishes, options = wishes_of(settings), options_of(settings)
    if "topk" in wishes:
        options["topk"] = int(wishes["topk"])
    given = {name: tensor for name, tensor in inputs.items() if name not in ("do", "dlse") or settings.get("backward")}
    made = attention_definition.attention(given, **options)
    names = ["o", "lse"] + (["d" + name for name in given if "d" + name in made] if settings.get("backward") else [])
    for wish, value in wishes.items():
        if wish == "rows":
            made["rows"] = chosen_rows(made["weights"], value)
        names += ["topk_index", "topk_weight"] if wish == "topk" else [wish]
    return {name: Tensor(WHOLE.get(name, "F64"), made[name].shape,
                         map(int, made[name].values) if name in WHOLE else made[name].values)
            for name in names if name in made}


# ---- comparison

def errors(made, expected):
    """The error of each value: its distance as a share of the largest expected one, or of 1."""
    scale = max([1.0, *(abs(x) for x in expected.values if math.isfinite(x))])
    for x, y in zip(made.values, expected.values):
        same = x == y or (x != x and y != y)
        near = math.isfinite(x) and math.isfinite(y) and expected.dtype.startswith("F")
        yield 0.0 if same else abs(x - y) / scale if near else math.inf


def difference(made, expected):
    """(largest error, the tensor in which it is) of tensors by name."""
    if missing := set(expected) - set(made):
        return math.inf, ", ".join(sorted(missing))
    worst = (0.0, "")
    for name, tensor in expected.items():
        same = (made[name].dtype, made[name].shape) == (tensor.dtype, tensor.shape)
        worst = max(worst, (max(errors(made[name], tensor), default=0.0) if same else math.inf, name))
    return worst


# ---- files

def read_kit(folder):
    text = (folder / NAME).read_bytes()
    kit = json.loads(text)
    if (kit["kind"], kit["version"]) != ("fovea-conformance", 1):
        raise KitError(f"{folder / NAME}: of another kind or version")
    if crc(text.replace(f'"{kit["crc32"]}"'.encode(), b'"00000000"', 1)) != kit["crc32"]:
        raise KitError(f"{folder / NAME}: the checksum is that of other contents")
    return kit


def read_tensors(folder, file):
    data = (folder / file["file"]).read_bytes()
    if (len(data), crc(data)) != (file["size"], file["crc32"]):
        raise KitError(f"{folder / file['file']}: size or checksum differ from {NAME}")
    return read_safetensors(data)


def write_tensors(folder, name, tensors):
    data = safetensors_bytes(tensors)
    (folder / name).write_bytes(data)
    return {"file": name, "size": len(data), "crc32": crc(data)}


def write_index(folder, kit):
    text = (json.dumps({**kit, "crc32": "00000000"}, indent=2) + "\n").encode()
    (folder / NAME).write_bytes(text.replace(b'"00000000"', f'"{crc(text)}"'.encode(), 1))


def write_kit(folder, like):
    folder.mkdir()
    kit = read_kit(like)
    for case in kit["cases"]:
        inputs = make_inputs(case)
        case["inputs"] = write_tensors(folder, case["name"] + ".in.safetensors", inputs)
        case["expected"] = write_tensors(folder, case["name"] + ".out.safetensors", compute(case, inputs))
    write_index(folder, kit)


def check_kit(folder):
    """How many cases differ."""
    failed = 0
    for case in read_kit(folder)["cases"]:
        inputs = read_tensors(folder, case["inputs"])
        if "tensors" in case and difference(make_inputs(case), inputs)[0] != 0:
            failed += 1
            print(f"FAIL  {case['name']:<32}  the inputs are not those of the formula")
            continue
        error, tensor = difference(compute(case, inputs), read_tensors(folder, case["expected"]))
        passed = error <= case["tolerance"]["f64"]
        failed += not passed
        print(f"{'pass' if passed else 'FAIL'}  {case['name']:<32}  {error:.1e} of {case['tolerance']['f64']:.1e}"
              + (f" in {tensor}" if error > 0 else ""))
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["check", "write"])
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--like", type=pathlib.Path, metavar="KIT", help="the kit whose cases are written")
    options = parser.parse_args()
    if (options.action == "write") != (options.like is not None):
        parser.error("write needs --like KIT, and check has none")
    try:
        if options.action == "check":
            return 1 if check_kit(options.folder) else 0
        write_kit(options.folder, options.like)
        return 0
    except (KitError, OSError, ValueError, KeyError, struct.error) as error:
        print(f"conformance: {type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
