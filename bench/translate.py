#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Translating a file against PyTorch, with transformers and with a decoder written for speed, and against CTranslate2: the
same weights, float32.

  bench/translate.py MODEL FILE --python venv/bin/python [--lines 1000]

MODEL is the folder of a Transformer that `fovea train translate` made, with words as tokens, or with subwords that both
sides share. FILE has a source a line: of words as the model knows them, between spaces (in lower case, if it has that);
of subwords any text, which the peers get as the numbers of its subwords. Three
tasks: a beam of 5, greedy, and greedy line by line. Hypotheses are compared by the mean of their log probabilities, as
CTranslate2 has it; all end when as many have ended as the beam has. Rounds alternate; the fastest size of batch counts
for each peer. What is timed is the model: without loading it, and without reading the file. How many translations are
the same word by word says whether the work is the same.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import common

HERE = pathlib.Path(__file__).parent
TASKS = {"beam 5": (5, None), "greedy": (1, None), "greedy, a line at a time": (1, 1)}
SIZES = dict.fromkeys(("torch", "transformers", "transformers by length", "ctranslate2"), (16, 64, 256))
TARGETS = {("beam 5", "transformers"): 5, ("beam 5", "ctranslate2"): 1.2}


def our_translations(options, file, beam, alone):
    """Line by line each line is a batch of its own: a pipe that waits for its answer."""
    command = [options.fovea, "translate", options.model, "--beam", str(beam), "--length-norm", "marian",
               "--length-penalty", "1", "--threads", str(options.threads)]
    settings = {"env": common.environment(options.threads), "preexec_fn": common.pin(options.threads), "encoding": "utf-8"}
    if alone:
        process = subprocess.Popen([*command, "-v"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **settings)
        made = []
        for line in file.read_text(encoding="utf-8").splitlines():
            process.stdin.write(line + "\n")
            process.stdin.flush()
            made.append(process.stdout.readline().rstrip("\n"))
        process.stdin.close()
        said = process.stderr.read()
        process.wait()
    else:
        done = subprocess.run([*command, str(file), "-v"], capture_output=True, check=True, **settings)
        made, said = done.stdout.splitlines(), done.stderr
    return {"seconds": float(re.search(r"the model: ([\d.]+) s", said)[1]), "made": made}


def measure(options, file, lines):
    """Task -> who -> seconds of each round, and what was made in the last."""
    workers = {peer: common.Worker(options, HERE / "peer_translate.py", peer, options.model) for peer in SIZES}
    for peer in [peer for peer, worker in workers.items() if "absent" in worker.hello]:
        print(f"{peer}: not measured: {workers.pop(peer).hello['absent']}")
    found = {}
    for _ in range(options.rounds):
        for task, (beam, size) in TASKS.items():
            if task not in options.only:
                continue
            of_task = found.setdefault(task, {})
            answers = {"fovea": our_translations(options, file, beam, size == 1)}
            for peer, worker in workers.items():
                if size == 1 and peer == "transformers by length":
                    continue  # each line is a batch, in either order
                for batch in (size,) if size else SIZES[peer]:
                    answers[f"{peer}, batches of {batch}"] = worker.ask(lines=lines, beam=beam, size=batch)
            for who, answer in answers.items():
                seconds, _ = of_task.get(who, ([], None))
                of_task[who] = [*seconds, answer["seconds"]], answer["made"]
    for worker in workers.values():
        worker.close()
    return found


def by_tokenizer(options, what, lines):
    """Numbers of subwords from text, or text from these."""
    model = json.loads((pathlib.Path(options.model) / "config.json").read_text())["text"]["tokenizer_model"]
    text = "".join(line + "\n" for line in lines)
    done = subprocess.run([options.fovea, "tokenizer", what, options.tokenizer_model or model, "--ids"], input=text,
                          capture_output=True, check=True, encoding="utf-8")
    return done.stdout.splitlines()


def has_subwords(options):
    config = json.loads((pathlib.Path(options.model) / "config.json").read_text())
    return config["text"]["tokenizer"] == "sentencepiece"


def tell(found):
    for task, of_task in found.items():
        ours, made = of_task["fovea"]
        print(f"{task}: fovea {common.spread(ours)} s")
        for peer in SIZES:
            ways = {who: seconds for who, (seconds, _) in of_task.items() if who.startswith(peer + ",")}
            if not ways:
                continue
            best = min(ways, key=lambda who: statistics.median(ways[who]))
            same = sum(a == b for a, b in zip(made, of_task[best][1], strict=True))
            ratios = [theirs / one for theirs, one in zip(ways[best], ours)]
            target = f" (target {TARGETS[task, peer]})" if (task, peer) in TARGETS else ""
            print(f"  {best}: {common.spread(ways[best])} s; times as long: {common.spread(ratios)}{target};"
                  f" {same} of {len(made)} translations are the same")


def compare_scores(options, file, references, lines, targets):
    """Our log probabilities of the references, and CTranslate2's with the same weights."""
    worker = common.Worker(options, HERE / "peer_translate.py", "ctranslate2", options.model)
    if "absent" in worker.hello:
        sys.exit(f"ctranslate2: {worker.hello['absent']}")
    theirs = worker.ask(lines=lines, translations=targets)["scores"]
    worker.close()
    done = subprocess.run([options.fovea, "eval", options.model, "--score", "--source", str(file), "--reference",
                           str(references), "-q"], capture_output=True, check=True, encoding="utf-8")
    ours = [tuple(map(float, line.split("\t"))) for line in done.stdout.splitlines()]
    differences = [abs(one - other) for (one, _), other in zip(ours, theirs, strict=True)]
    tokens = sum(count for _, count in ours)
    print(f"log probabilities of {len(ours)} translations, {tokens:.0f} tokens: the largest difference from CTranslate2 "
          f"is {max(differences):.1e}, of a mean of {statistics.mean(-one for one, _ in ours):.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--tokenizer-model", help="the .model of a model of subwords; default: the path from which it was trained")
    parser.add_argument("--lines", type=int, default=1000, help="how many of the file")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS), help="these tasks")
    parser.add_argument("--scores", type=pathlib.Path, metavar="FILE",
                        help="no times: compare the log probabilities of these translations with CTranslate2's")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON, too")
    common.add_common_options(parser, rounds=5)
    options = parser.parse_args()
    common.need_binary(options)
    print(common.machine(options))
    lines = options.file.read_text(encoding="utf-8").splitlines()[:options.lines]
    if not all(line.split() for line in lines):
        sys.exit(f"{options.file}: a line is empty")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "lines.txt"
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        if options.scores:
            targets = options.scores.read_text(encoding="utf-8").splitlines()[:options.lines]
            references = pathlib.Path(folder) / "references.txt"
            references.write_text("".join(line + "\n" for line in targets), encoding="utf-8")
            both = [by_tokenizer(options, "encode", some) if has_subwords(options) else some for some in (lines, targets)]
            return compare_scores(options, file, references, *both)
        if has_subwords(options):
            found = measure(options, file, by_tokenizer(options, "encode", lines))
            for of_task in found.values():
                for who, (seconds, made) in of_task.items():
                    of_task[who] = seconds, made if who == "fovea" else by_tokenizer(options, "decode", made)
        else:
            found = measure(options, file, lines)
    tell(found)
    if options.json:
        print(json.dumps({task: {who: seconds for who, (seconds, _) in of.items()} for task, of in found.items()}))


if __name__ == "__main__":
    main()
