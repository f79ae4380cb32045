# SPDX-License-Identifier: Apache-2.0
"""The peers of translate.py: a translator of fovea in PyTorch, with a cached decoder, and in CTranslate2.

The folder is that of a Transformer with norms before each part, ReLU, sinusoidal positions and tied words: what
`fovea train translate` makes by default.
"""
import json
import os
import pathlib
import struct
import tempfile
import time

import common

try:
    import numpy
    import torch
    from torch.nn import functional
except ImportError as error:
    torch, ABSENT = None, str(error)
try:
    import ctranslate2
except ImportError as error:
    ctranslate2, CT2_ABSENT = None, str(error)


class Folder:
    """Weights, by name, and the tokens of both sides: words, or the numbers of subwords."""

    def __init__(self, path):
        path = pathlib.Path(path)
        self.config = json.loads((path / "config.json").read_text())
        model, text = self.config["model"], self.config["text"]
        needed = {"model": "transformer", "encoder": "", "norm": "layer", "norm_position": "pre", "activation": "relu",
                  "position": "sinusoidal", "decoder_position": "", "sinusoid": "interleaved", "tie": True}
        other = [f"{name} {model[name]}" for name, value in needed.items() if model[name] != value]
        kinds = {text["tokenizer"], text["target_tokenizer"] or text["tokenizer"]}
        words, subwords = kinds == {"word"}, kinds == {"sentencepiece"}
        if words and text["shared_vocabulary"]:
            other.append("one vocabulary of words")
        if subwords and not (text["shared_vocabulary"] and model["share_embeddings"]):
            other.append("two vocabularies of subwords")
        if other or not (words or subwords):
            raise SystemExit(f"{path}: no model that the peers have: {', '.join(other) or 'its tokens'}")
        if words:
            self.unknown, self.begin, self.end = 1, 2, 3
            self.source, self.target = ([line.split()[0] for line in (path / name).read_text(encoding="utf-8").splitlines()]
                                        for name in ("vocab.txt", "target-vocab.txt"))
            self.never = [0, self.unknown, self.begin]
        else:
            self.unknown, self.begin, self.end = 0, 1, 2
            self.source = self.target = ["<unk>", "<s>", "</s>", *map(str, range(3, model["vocabulary"]))]
            self.never = [self.unknown, self.begin]
        blob = (path / "model.safetensors").read_bytes()
        size = struct.unpack("<Q", blob[:8])[0]
        self.weights = {}
        for name, entry in json.loads(blob[8:8 + size]).items():
            if name != "__metadata__":
                begin, end = (8 + size + at for at in entry["data_offsets"])
                self.weights[name] = numpy.frombuffer(blob[begin:end], numpy.float32).reshape(entry["shape"]).copy()
        self.weights.setdefault("decoder.embedding.tokens", self.weights["encoder.embedding.tokens"])
        assert len(self.source) == len(self.weights["encoder.embedding.tokens"]), "tokens of the source"
        assert len(self.target) == len(self.weights["decoder.embedding.tokens"]), "tokens of the target"

    def sinusoids(self, rows):
        width = self.config["model"]["width"]
        angles = numpy.arange(rows)[:, None] / 10000 ** (numpy.arange(0, width, 2) / width)
        return numpy.stack([numpy.sin(angles), numpy.cos(angles)], -1).reshape(rows, width).astype(numpy.float32)


class TorchTranslator:
    """As its users write it: sentences of about the same length in padded batches, keys and values kept and reordered
    by index_select, sentences that are done leave the batch."""

    def __init__(self, folder):
        model = folder.config["model"]
        self.weights = {name: torch.from_numpy(value) for name, value in folder.weights.items()}
        self.heads, self.scale = model["heads"], model["embedding_scale"]
        self.depth = model["encoder_layers"], model["decoder_layers"]
        self.positions = torch.from_numpy(folder.sinusoids(model["block"]))
        self.words = {word: n for n, word in enumerate(folder.source)}
        self.target = folder.target
        self.unknown, self.begin, self.end, self.never = folder.unknown, folder.begin, folder.end, folder.never

    def linear(self, name, x):
        return functional.linear(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def norm(self, name, x):
        return functional.layer_norm(x, x.shape[-1:], self.weights[name + ".weight"], self.weights[name + ".bias"])

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def attend(self, q, k, v, mask=None):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)

    def feed_forward(self, block, x):
        y = functional.relu(self.linear(block + ".feed_forward.in", self.norm(block + ".feed_forward_norm", x)))
        return x + self.linear(block + ".feed_forward.out", y)

    def encode(self, ids, mask):
        x = self.weights["encoder.embedding.tokens"][ids] * self.scale + self.positions[:ids.shape[1]]
        for n in range(self.depth[0]):
            block = f"encoder.blocks.{n}"
            q, k, v = map(self.split, self.linear(block + ".attention.qkv", self.norm(block + ".attention_norm", x)).chunk(3, -1))
            x = x + self.linear(block + ".attention.out", self.attend(q, k, v, mask))
            x = self.feed_forward(block, x)
        return self.norm("encoder.norm", x)

    def step(self, ids, place, cache, mask):
        """Log probabilities [rows, V] of what follows; the cache grows by a row of each."""
        x = self.weights["decoder.embedding.tokens"][ids][:, None] * self.scale + self.positions[place]
        for n, layer in enumerate(cache):
            block = f"decoder.blocks.{n}"
            q, k, v = map(self.split, self.linear(block + ".attention.qkv", self.norm(block + ".attention_norm", x)).chunk(3, -1))
            layer["k"], layer["v"] = (torch.cat([layer[name], new], 2) if name in layer else new
                                      for name, new in (("k", k), ("v", v)))
            x = x + self.linear(block + ".attention.out", self.attend(q, layer["k"], layer["v"]))
            q = self.split(self.linear(block + ".cross.q", self.norm(block + ".cross_norm", x)))
            x = x + self.linear(block + ".cross.out", self.attend(q, layer["source k"], layer["source v"], mask))
            x = self.feed_forward(block, x)
        logits = functional.linear(self.norm("decoder.norm", x[:, 0]), self.weights["decoder.embedding.tokens"])
        logits[:, self.never] = -torch.inf
        return functional.log_softmax(logits, -1)

    def translate_batch(self, sentences, beam):
        ids = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor([self.words.get(word, self.unknown) for word in s] + [self.end]) for s in sentences], True)
        mask = (torch.arange(ids.shape[1]) < torch.tensor([len(s) + 1 for s in sentences])[:, None])[:, None, None]
        rows = self.encode(ids, mask)
        cache = []
        for n in range(self.depth[1]):
            k, v = map(self.split, self.linear(f"decoder.blocks.{n}.cross.kv", rows).chunk(2, -1))
            cache.append({"source k": k.repeat_interleave(beam, 0), "source v": v.repeat_interleave(beam, 0)})
        mask = mask.repeat_interleave(beam, 0)
        live = list(range(len(sentences)))  # numbers of those that are not done
        longest = [2 * len(s) + 10 for s in sentences]
        scores = torch.full((len(live), beam), -torch.inf)
        scores[:, 0] = 0
        written = torch.full((len(live) * beam, 1), self.begin)
        done = [[] for _ in sentences]
        for place in range(max(longest)):
            log = self.step(written[:, -1], place, cache, mask)
            V = log.shape[1]
            best, at = (scores[:, :, None] + log.view(len(live), beam, V)).flatten(1).topk(2 * beam, 1)
            parents, tokens = at // V, at % V
            keep_rows, keep_tokens, keep_scores, stay = [], [], [], []
            best_list, parent_list, token_list = best.tolist(), parents.tolist(), tokens.tolist()
            for row, number in enumerate(live):
                chosen = []
                for rank, (score, parent, token) in enumerate(zip(best_list[row], parent_list[row], token_list[row])):
                    if token == self.end or place + 1 == longest[number]:
                        if rank < beam:
                            path = written[row * beam + parent, 1:].tolist()
                            done[number].append((score / (place + 1), path))  # the mean, as Marian has it
                    elif len(chosen) < beam:
                        chosen.append((row * beam + parent, token, score))
                if len(done[number]) < beam and chosen:
                    stay.append(number)
                    chosen += [chosen[-1][:2] + (-float("inf"),)] * (beam - len(chosen))
                    for source, token, score in chosen:
                        keep_rows.append(source)
                        keep_tokens.append(token)
                        keep_scores.append(score)
            if not stay:
                break
            index = torch.tensor(keep_rows)
            for layer in cache:
                for name in layer:
                    layer[name] = layer[name].index_select(0, index)
            mask = mask.index_select(0, index)
            written = torch.cat([written.index_select(0, index), torch.tensor(keep_tokens)[:, None]], 1)
            scores = torch.tensor(keep_scores).view(len(stay), beam)
            live = stay
        return [" ".join(self.target[n] for n in max(ended)[1]) if ended else "" for ended in done]

    @torch.inference_mode()
    def translate(self, lines, beam, size):
        order = sorted(range(len(lines)), key=lambda n: -len(lines[n]))
        made = [""] * len(lines)
        for begin in range(0, len(order), size):
            some = order[begin:begin + size]
            for n, text in zip(some, self.translate_batch([lines[n] for n in some], beam)):
                made[n] = text
        return made


def ct2_model(folder, output):
    """Writes the same weights as a model of CTranslate2."""
    model, weights = folder.config["model"], folder.weights
    spec = ctranslate2.specs.TransformerSpec.from_config((model["encoder_layers"], model["decoder_layers"]), model["heads"],
                                                         pre_norm=True, activation=ctranslate2.specs.Activation.RELU)

    def norm(to, name):
        to.gamma, to.beta = weights[name + ".weight"], weights[name + ".bias"]

    def linear(to, name):
        to.weight, to.bias = weights[name + ".weight"], weights[name + ".bias"]

    for side, one in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        table = one.embeddings[0] if side == "encoder" else one.embeddings
        table.weight = weights[f"{side}.embedding.tokens"]
        one.scale_embeddings = True
        one.position_encodings.encodings = folder.sinusoids(model["block"])
        norm(one.layer_norm, f"{side}.norm")
        for n, layer in enumerate(one.layer):
            block = f"{side}.blocks.{n}"
            norm(layer.self_attention.layer_norm, block + ".attention_norm")
            linear(layer.self_attention.linear[0], block + ".attention.qkv")
            linear(layer.self_attention.linear[1], block + ".attention.out")
            if side == "decoder":
                norm(layer.attention.layer_norm, block + ".cross_norm")
                for part, name in enumerate((".cross.q", ".cross.kv", ".cross.out")):
                    linear(layer.attention.linear[part], block + name)
            norm(layer.ffn.layer_norm, block + ".feed_forward_norm")
            linear(layer.ffn.linear_0, block + ".feed_forward.in")
            linear(layer.ffn.linear_1, block + ".feed_forward.out")
    spec.decoder.projection.weight = weights["decoder.embedding.tokens"]
    spec.register_source_vocabulary(folder.source)
    spec.register_target_vocabulary(folder.target)
    spec.config.add_source_eos = True
    spec.validate()
    spec.save(str(output))


class Ct2Translator:
    def __init__(self, folder, threads):
        with tempfile.TemporaryDirectory() as output:
            ct2_model(folder, output)
            self.translator = ctranslate2.Translator(output, "cpu", compute_type="float32", inter_threads=1,
                                                     intra_threads=threads)

    def translate(self, lines, beam, size):
        found = self.translator.translate_batch(lines, beam_size=beam, max_batch_size=size, length_penalty=1,
                                                disable_unk=True, max_decoding_length=500)
        return [" ".join(one.hypotheses[0]) for one in found]


def main():
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=("torch", "ctranslate2"))
    parser.add_argument("model")
    options = parser.parse_args()
    if torch is None or (options.peer == "ctranslate2" and ctranslate2 is None):
        return common.serve({"absent": ABSENT if torch is None else CT2_ABSENT}, None)
    threads = int(os.environ["OMP_NUM_THREADS"])
    torch.set_num_threads(threads)
    folder = Folder(options.model)
    peer = TorchTranslator(folder) if options.peer == "torch" else Ct2Translator(folder, threads)

    def answer(lines, beam, size):
        lines = [line.split() for line in lines]
        begin = time.perf_counter()
        made = peer.translate(lines, beam, size)
        return {"seconds": time.perf_counter() - begin, "made": made}
    return common.serve({"ready": options.peer}, answer)


if __name__ == "__main__":
    main()
