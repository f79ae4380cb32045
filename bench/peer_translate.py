# SPDX-License-Identifier: Apache-2.0
"""The peers of translate.py: a translator of fovea in PyTorch, with a cached decoder of our own and in transformers (as
its M2M100, which has the same layers), and in CTranslate2.

The folder is that of a Transformer with ReLU, sinusoidal positions and tied words, as `fovea train translate` makes it
by default. CTranslate2 takes norms behind each part, too, as Marian's models have them.
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
try:
    import transformers
except ImportError as error:
    transformers, TRANSFORMERS_ABSENT = None, str(error)


class Folder:
    """Weights, by name, and the tokens of both sides: words, or the numbers of subwords."""

    def __init__(self, path):
        path = pathlib.Path(path)
        self.config = json.loads((path / "config.json").read_text())
        model, text = self.config["model"], self.config["text"]
        self.pre_norm = model["norm_position"] == "pre"
        needed = {"model": "transformer", "encoder": "", "norm": "layer", "activation": "relu",
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


def in_batches(translate_batch, lines, beam, size, by_length=True):
    """The longest first, or in the order of the file."""
    order = sorted(range(len(lines)), key=lambda n: -len(lines[n])) if by_length else range(len(lines))
    made = [""] * len(lines)
    for begin in range(0, len(order), size):
        some = order[begin:begin + size]
        for n, text in zip(some, translate_batch([lines[n] for n in some], beam)):
            made[n] = text
    return made


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
                for name in ("k", "v"):
                    layer[name] = layer[name].index_select(0, index)
            if len(stay) < len(live):  # else the beams of a sentence see the same source as before
                for layer in cache:
                    for name in ("source k", "source v"):
                        layer[name] = layer[name].index_select(0, index)
                mask = mask.index_select(0, index)
            written = torch.cat([written.index_select(0, index), torch.tensor(keep_tokens)[:, None]], 1)
            scores = torch.tensor(keep_scores).view(len(stay), beam)
            live = stay
        return [" ".join(self.target[n] for n in max(ended)[1]) if ended else "" for ended in done]

    @torch.inference_mode()
    def translate(self, lines, beam, size):
        return in_batches(self.translate_batch, lines, beam, size)


class TransformersTranslator:
    """generate() of transformers: padded batches, which all sentences leave together. The lines of a batch follow one
    another in the file or, which is faster, have about the same length."""

    def __init__(self, folder, by_length):
        self.by_length = by_length
        config, V = folder.config["model"], len(folder.target)
        self.words = {word: n for n, word in enumerate(folder.source)}
        self.folder, self.padding = folder, V  # a token more, which is never written
        self.model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(
            vocab_size=V + 1, d_model=config["width"], scale_embedding=True, activation_function="relu",
            encoder_layers=config["encoder_layers"], decoder_layers=config["decoder_layers"],
            encoder_attention_heads=config["heads"], decoder_attention_heads=config["heads"],
            encoder_ffn_dim=config["ff"], decoder_ffn_dim=config["ff"], max_position_embeddings=V + 1 + config["block"],
            pad_token_id=self.padding, bos_token_id=folder.begin, eos_token_id=folder.end,
            decoder_start_token_id=folder.begin)).eval()
        state = self.weights(folder)
        missing, surplus = self.model.load_state_dict(state, strict=False)
        tied = {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"}
        if surplus or set(missing) - tied:
            raise SystemExit(f"transformers: {surplus or set(missing) - tied}")
        self.model.tie_weights()
        # The first position stands behind the number of the padding.
        rows = torch.cat([torch.zeros(V + 1, config["width"]), torch.from_numpy(folder.sinusoids(config["block"]))])
        for side in (self.model.model.encoder, self.model.model.decoder):
            side.embed_positions.weights = torch.nn.Buffer(rows, persistent=False)

    @staticmethod
    def weights(folder):
        ours = {name: torch.from_numpy(value) for name, value in folder.weights.items()}
        words = ours["encoder.embedding.tokens"]
        state = {"model.shared.weight": torch.cat([words, torch.zeros(1, words.shape[1])])}

        def put(to, name, parts=("",)):
            for kind in ("weight", "bias"):
                for part, value in zip(parts, ours[f"{name}.{kind}"].chunk(len(parts))):
                    state[f"{to}{part}.{kind}"] = value

        for side in ("encoder", "decoder"):
            put(f"model.{side}.layer_norm", f"{side}.norm")
            for n in range(folder.config["model"][f"{side}_layers"]):
                to, block = f"model.{side}.layers.{n}.", f"{side}.blocks.{n}."
                put(to + "self_attn", block + "attention.qkv", (".q_proj", ".k_proj", ".v_proj"))
                put(to + "self_attn.out_proj", block + "attention.out")
                put(to + "self_attn_layer_norm", block + "attention_norm")
                if side == "decoder":
                    put(to + "encoder_attn.q_proj", block + "cross.q")
                    put(to + "encoder_attn", block + "cross.kv", (".k_proj", ".v_proj"))
                    put(to + "encoder_attn.out_proj", block + "cross.out")
                    put(to + "encoder_attn_layer_norm", block + "cross_norm")
                put(to + "fc1", block + "feed_forward.in")
                put(to + "fc2", block + "feed_forward.out")
                put(to + "final_layer_norm", block + "feed_forward_norm")
        return state

    def translate_batch(self, sentences, beam):
        folder = self.folder
        ids = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor([self.words.get(word, folder.unknown) for word in s] + [folder.end]) for s in sentences],
            True, self.padding)
        made = self.model.generate(input_ids=ids, attention_mask=(ids != self.padding).long(), num_beams=beam,
                                   do_sample=False, length_penalty=1.0, early_stopping=beam > 1,
                                   max_new_tokens=2 * (ids.shape[1] - 1) + 10,
                                   suppress_tokens=[*folder.never, self.padding])
        skipped = {folder.begin, folder.end, self.padding}
        return [" ".join(folder.target[n] for n in row if n not in skipped) for row in made.tolist()]

    @torch.inference_mode()
    def translate(self, lines, beam, size):
        return in_batches(self.translate_batch, lines, beam, size, self.by_length)


def ct2_model(folder, output):
    """Writes the same weights as a model of CTranslate2."""
    model, weights = folder.config["model"], folder.weights
    spec = ctranslate2.specs.TransformerSpec.from_config((model["encoder_layers"], model["decoder_layers"]), model["heads"],
                                                         pre_norm=folder.pre_norm, activation=ctranslate2.specs.Activation.RELU)

    def norm(to, name):
        to.gamma, to.beta = weights[name + ".weight"], weights[name + ".bias"]

    def linear(to, name):
        to.weight, to.bias = weights[name + ".weight"], weights[name + ".bias"]

    for side, one in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        table = one.embeddings[0] if side == "encoder" else one.embeddings
        table.weight = weights[f"{side}.embedding.tokens"]
        one.scale_embeddings = True
        one.position_encodings.encodings = folder.sinusoids(model["block"])
        if folder.pre_norm:
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

    def score(self, lines, translations):
        """The log probability of each translation and its end."""
        found = self.translator.score_batch(lines, translations, max_batch_size=64)
        return [sum(one.log_probs) for one in found]


def main():
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=("torch", "transformers", "transformers by length", "ctranslate2"))
    parser.add_argument("model")
    options = parser.parse_args()
    absent = ABSENT if torch is None else None
    if options.peer == "ctranslate2" and ctranslate2 is None:
        absent = absent or CT2_ABSENT
    if options.peer.startswith("transformers") and transformers is None:
        absent = absent or TRANSFORMERS_ABSENT
    if absent:
        return common.serve({"absent": absent}, None)
    threads = int(os.environ["OMP_NUM_THREADS"])
    torch.set_num_threads(threads)
    folder = Folder(options.model)
    if options.peer != "ctranslate2" and not folder.pre_norm:
        return common.serve({"absent": "it is written for norms before each part"}, None)
    if options.peer.startswith("transformers") and folder.source is not folder.target:
        return common.serve({"absent": "M2M100 has one vocabulary of both sides"}, None)
    if options.peer == "torch":
        peer = TorchTranslator(folder)
    elif options.peer == "ctranslate2":
        peer = Ct2Translator(folder, threads)
    else:
        peer = TransformersTranslator(folder, by_length=options.peer.endswith("by length"))

    def answer(lines, beam=1, size=1, translations=None):
        lines = [line.split() for line in lines]
        if translations is not None:
            return {"scores": peer.score(lines, [line.split() for line in translations])}
        begin = time.perf_counter()
        made = peer.translate(lines, beam, size)
        return {"seconds": time.perf_counter() - begin, "made": made}
    return common.serve({"ready": options.peer}, answer)


if __name__ == "__main__":
    main()
