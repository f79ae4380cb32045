#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `fovea attention` computes, to the bit: a checksum of each result, to hold two builds together.

  tools/attention_bits.py write FILE    computes every call and writes the checksums of its results
  tools/attention_bits.py check FILE    computes them again, and says which differ

The calls are the cases of the conformance kit in both precisions, and the shapes of
bench/attention_table.py in float32 (parts written in C++ excepted), forward and backward, on every
instruction set of this machine. Exit status 1 if a result differs. FOVEA names the program.
"""
import argparse
import array
import hashlib
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

import attention_table  # noqa: E402

OPTIONS_OF_COMMAND = ("precision", "reference", "backward", "observe")
EXPONENTS = bytes([0x3E, 0x3F, 0xBE, 0xBF] * 64)  # the last byte of a float32 between 1/8 and 2, or -2 and -1/8


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        sys.exit(f"fovea {' '.join(map(str, words))}\nended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def words_of(settings):
    """The options of the command for the settings of a case."""
    words = ["--backward"] if settings.get("backward") else []
    if "observe" in settings:
        words += ["--observe", settings["observe"]]
    for name, value in settings.items():
        if name not in OPTIONS_OF_COMMAND:
            option = "--" + name.replace("_", "-")
            words += [option] if value is True else [f"{option}={value}"]
    return words


def kit_calls(program, folder):
    """(name, file of the inputs, options) of each case, in each precision."""
    run(program, "conformance", "write", folder / "kit")
    for case in json.loads((folder / "kit" / "conformance.json").read_text())["cases"]:
        for precision in ("f32", "f64"):
            words = [*words_of(case["settings"]), "--precision", precision]
            yield f"{case['name']} {precision}", folder / "kit" / case["inputs"]["file"], words


def floats(seed, count):
    data = bytearray(random.Random(seed).randbytes(4 * count))
    data[3::4] = data[3::4].translate(EXPONENTS)
    return bytes(data)


def lengths(B, T):
    """As the benchmark has them: spread evenly over (0, T]."""
    return array.array("i", [max(1, T * (b + 1) // B) for b in range(B)]).tobytes()


def bench_tensors(numbers, names):
    """{name: (dtype, shape, bytes)}"""
    B, T, S, H, G, D, Dv = numbers
    shapes = {"q": [B, T, H, D], "k": [B, S, G, D], "v": [B, S, G, Dv], "do": [B, T, H, Dv]}
    parts = {"slopes": [H], "t5": [32, H], "shaw_k": [65, D], "shaw_v": [65, Dv], "sink": [H], "bias": [1, H, T, S]}
    shapes |= {name: parts[name] for name in names if name in parts}
    tensors = {name: ("F32", shape, floats(name, math.prod(shape))) for name, shape in shapes.items()}
    for name, length in (("query_lengths", T), ("key_lengths", S)):
        if name in names:
            tensors[name] = ("I32", [B], lengths(B, length))
    return tensors


def write_tensors(path, tensors):
    header, end = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, _, data in tensors.values():
            file.write(data)


def bench_calls(folder, longest):
    for row in attention_table.rows():
        numbers, words = row["calls"][0]
        if "--lambda" in words or numbers[1] > longest:
            continue
        names = [word[1:] for word in words if word.startswith("+")]
        tensors = bench_tensors(numbers, names)
        options = [word for word in words if not word.startswith("+") and word != "--forward"]
        if "--forward" in words:
            del tensors["do"]
        else:
            options.append("--backward")
        file = folder / "in.safetensors"
        write_tensors(file, tensors)
        yield row["name"], file, options


def checksums(program, options):
    isas = json.loads(run(program, "doctor", "--json"))["instruction_sets"]
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        calls = [*kit_calls(program, folder)]
        for group in (calls, bench_calls(folder, options.longest)):
            for name, file, words in group:
                for isa in isas:
                    out = folder / "out.safetensors"
                    run(program, "attention", file, "-o", out, "--overwrite", "--quiet", "--isa", isa, *words)
                    found[f"{name}, {isa}"] = hashlib.sha256(out.read_bytes()).hexdigest()
            print(f"{len(found)} results", file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument("file", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--longest", type=int, default=1 << 20, metavar="T", help="leaves out longer shapes")
    options = parser.parse_args()
    program = os.environ.get("FOVEA", str(ROOT / "build" / "release" / "cli" / "fovea"))
    if options.action == "write":
        options.file.write_text(json.dumps(checksums(program, options), indent=1) + "\n")
        return 0
    before = json.loads(options.file.read_text())
    now = checksums(program, options)
    different = [name for name in before if before[name] != now.get(name)]
    for name in different:
        print(f"differs: {name}")
    print(f"{len(before) - len(different)} of {len(before)} results have the same bits;"
          f" {len(now.keys() - before.keys())} calls are new")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
