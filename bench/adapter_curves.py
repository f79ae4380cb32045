#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The loss of each update of adapters (LoRA) on conversations, beside PEFT's with the same batches and the same start.

  bench/adapter_curves.py MODEL.gguf [--updates 200] [--rank 8] --python PYTHON_WITH_TORCH_TRANSFORMERS_PEFT_GGUF

Every update sees all of the conversations below, so that the order of batches plays no part. PEFT begins with fovea's A
(B is zero), and takes the learning rates that fovea wrote; the answers alone are learned, with the mark that ends them.
Ends with 1 if the two losses of an update differ by more than --within. The model must have the template of ChatML.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import common

TALKS = [
    [("user", "What is attention?"), ("assistant", "A weighted mean of values, by how well a query fits their keys.")],
    [("user", "Name three colours."), ("assistant", "Red, green and blue."), ("user", "One more?"), ("assistant", "Yellow.")],
    [("system", "Answer in one word."), ("user", "Is the sea dry?"), ("assistant", "No.")],
    [("user", "Write a line of verse."), ("assistant", "The evening lays its coat upon the hill.")],
    [("user", "2 + 2?"), ("assistant", "4")],
    [("system", "You are a cook."), ("user", "How long does an egg take?"),
     ("assistant", "Six minutes for a soft one, ten for a hard one."), ("user", "And a potato?"),
     ("assistant", "Twenty minutes, if it is whole.")],
]
PEER = """
import json, os, sys, torch, transformers, peft
model, adapters, talks, rates, threads = sys.argv[1:6]
torch.set_num_threads(int(threads))
transformers.logging.set_verbosity_error()
folder, name = os.path.split(os.path.abspath(model))
tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=name)
net = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
net = peft.PeftModel.from_pretrained(net, adapters, is_trainable=True).train()
rows = []
for line in open(talks):
    messages, ids, labels = json.loads(line)["messages"], [], []
    for n, message in enumerate(messages):
        whole = tokenizer.apply_chat_template(messages[:n + 1], tokenize=False)
        begun = tokenizer.apply_chat_template(messages[:n], tokenize=False, add_generation_prompt=True) if n else ""
        if message["role"] == "assistant":
            answer = tokenizer(whole[len(begun):], add_special_tokens=False).input_ids
            before = tokenizer(begun, add_special_tokens=False).input_ids
            labels += [-100] * (len(before) - len(ids))
            ids = before + answer
            mark = answer.index(tokenizer.eos_token_id) + 1  # what stands behind it is no part of the answer
            labels += answer[:mark] + [-100] * (len(answer) - mark)
    rows.append((ids, labels))
optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1, betas=(0.9, 0.999), weight_decay=0.01)
for rate in json.load(open(rates)):
    for group in optimizer.param_groups:
        group["lr"] = rate
    total, count = 0, sum(sum(label != -100 for label in labels) for _, labels in rows)
    for ids, labels in rows:
        logits = net(input_ids=torch.tensor([ids])).logits[0]
        loss = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(labels[1:]), ignore_index=-100, reduction="sum")
        (loss / count).backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("LOSS", total / count, count, flush=True)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_common_options(parser, rounds=None)
    parser.add_argument("model")
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--within", type=float, default=0.01)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        talks = folder / "talks.jsonl"
        talks.write_text("".join(json.dumps({"messages": [{"role": role, "content": text} for role, text in talk]}) + "\n"
                                 for talk in TALKS))

        def train(run, updates, *more):
            command = [options.fovea, "train", "lm", "--base", options.model, "--train", talks, "--data", "chat", "-o", run,
                       "--lora", options.rank, "--batch-size", len(TALKS), "--valid-fraction", 0, "--log-every", 1,
                       "--stop-after", f"{updates}u", "-t", options.threads, "--quiet", *more]
            subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
            return [json.loads(line) for line in open(run / "metrics.jsonl", encoding="utf-8")]

        train(folder / "start", 1, "--lr", "1e-30", "--weight-decay", 0)
        subprocess.run([options.fovea, "export", folder / "start", "--to", "peft", "-o", folder / "peft", "--quiet"], check=True)
        ours = train(folder / "run", options.updates)
        (folder / "rates.json").write_text(json.dumps([line["lr"] for line in ours]))
        peer = subprocess.run([options.python, "-c", PEER, options.model, folder / "peft", talks, folder / "rates.json",
                               str(options.threads)],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
                              env=common.environment(options.threads))
    theirs = [float(line.split()[1]) for line in peer.stdout.splitlines() if line.startswith("LOSS")]
    if len(theirs) != len(ours):
        sys.exit("the peer has ended: has the interpreter of --python torch, transformers, peft and gguf?")
    gaps = [abs(mine["loss"] - other) for mine, other in zip(ours, theirs)]
    for n in range(0, len(ours), max(1, len(ours) // 10)):
        print(f"update {n + 1:4}: fovea {ours[n]['loss']:.5f}, PEFT {theirs[n]:.5f}")
    print(f"{len(ours)} updates, the last loss {ours[-1]['loss']:.5f}; the largest difference {max(gaps):.6f}")
    sys.exit(max(gaps) > options.within)


if __name__ == "__main__":
    main()
