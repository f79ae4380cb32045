# SPDX-License-Identifier: Apache-2.0
"""The Python package beside PyTorch in one process, in turns: the worker of python_peers.py."""
import os
import statistics
import time

import common
from peer_flex import FlexRows, timed


def in_turns(theirs, ours, seconds):
    """The medians of both, each called in its turn for so many seconds altogether, at least three times. Calls
    of less than a millisecond are timed by the hundred."""
    many = 100 if max(timed(theirs), timed(ours), timed(theirs), timed(ours)) < 1e-3 else 1

    def repeated(call):
        return timed(lambda: [call() for _ in range(many)]) / many
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append((repeated(theirs), repeated(ours)))
    return [statistics.median(column) for column in zip(*times)]


class Rows(FlexRows):
    """Each method makes two calls, of PyTorch and of fovea."""

    def __init__(self, torch, fovea):
        self.torch, self.fovea = torch, fovea
        self.theirs = torch.nn.functional.scaled_dot_product_attention
        self.ours = fovea.torch.scaled_dot_product_attention

    def sdpa(self, B, H, T, D, learned=False, **options):
        """Forward and backward of one call."""
        torch = self.torch
        inputs = [torch.randn(B, H, T, D, requires_grad=True) for _ in range(3)]
        if learned:
            inputs.append(torch.randn(1, H, T, T, requires_grad=True))
        do = torch.randn(B, H, T, D)
        return [lambda f=f: torch.autograd.grad(f(*inputs, **options), inputs, do) for f in (self.theirs, self.ours)]

    def decode(self, S, B=1, H=8, D=64):
        """The forward of one query against S keys."""
        torch = self.torch
        q, k, v = (torch.randn(B, H, length, D) for length in (1, S, S))

        def call(f):
            with torch.no_grad():
                f(q, k, v)
        return [lambda f=f: call(f) for f in (self.theirs, self.ours)]

    def generate(self, layers=6, width=384, prompt=16, tokens=240):
        """Greedy text of a small GPT-2 by transformers' generate."""
        import copy

        import transformers

        config = transformers.GPT2Config(n_layer=layers, n_head=width // 64, n_embd=width, n_positions=1024,
                                         bos_token_id=0, eos_token_id=0)
        model = transformers.GPT2LMHeadModel(config).eval()
        accelerated = self.fovea.transformers.accelerate(copy.deepcopy(model))
        ids = self.torch.randint(1, 1000, (1, prompt))

        def run(m):
            m.generate(ids, attention_mask=self.torch.ones_like(ids), do_sample=False, max_new_tokens=tokens,
                       min_new_tokens=tokens, pad_token_id=0)
        return [lambda m=m: run(m) for m in (model, accelerated)]

    def between_linears(self, seconds, B=4, H=12, D=64):
        """Our attention in a forward with a linear layer before and behind it, and the same call alone."""
        torch, width = self.torch, H * D
        before, behind = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

        def heads(x):
            return [part.unflatten(-1, (H, D)).transpose(1, 2) for part in before(x).chunk(3, -1)]

        def layer(x):
            qkv = heads(x)
            start = time.perf_counter()
            o = self.ours(*qkv)
            took = time.perf_counter() - start
            behind(o.transpose(1, 2).flatten(2))
            return took

        found, lengths = {}, (64, 256, 1024)
        for T in lengths:
            x, times = torch.randn(B, T, width), ([], [])
            with torch.no_grad():
                qkv, end = heads(x), time.perf_counter() + seconds / len(lengths)
                while len(times[0]) < 5 or time.perf_counter() < end:
                    times[0].append(layer(x))
                    time.sleep(0.02)  # the threads of PyTorch sleep by then
                    self.ours(*qkv)  # and are awake again
                    times[1].append(timed(lambda: self.ours(*qkv)))
            for name, each in zip(("between", "alone"), times):
                found[f"{T} tokens {name}"] = statistics.median(each)
        return found

    def model(self, kind, peer, dropout=0.0, layers=12, B=2, T=1024):
        """A training step without its optimizer, with the attention `peer` and with ours."""
        import copy

        import transformers

        torch = self.torch
        config = self.config(transformers, kind, dropout, layers, T)
        theirs = transformers.AutoModelForSeq2SeqLM if kind == "t5" else transformers.AutoModelForCausalLM
        model = theirs.from_config(config, attn_implementation=peer).train()
        accelerated = self.fovea.transformers.accelerate(copy.deepcopy(model))
        ids = torch.randint(1, 1000, (B, T))
        return [lambda m=m: self.step(m, ids) for m in (model, accelerated)]

    @staticmethod
    def step(model, ids):
        more = {} if model.config.is_encoder_decoder else {"use_cache": False}
        model(input_ids=ids, labels=ids, **more).loss.backward()
        model.zero_grad(set_to_none=True)

    @staticmethod
    def config(transformers, kind, dropout, layers, T):
        decoder = {"vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": layers, "num_attention_heads": 8,
                   "num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 1024, "sliding_window": 256,
                   "max_position_embeddings": T, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2}
        if kind == "gpt2":
            return transformers.GPT2Config(n_layer=layers, n_head=12, n_embd=768, n_positions=T, attn_pdrop=dropout,
                                           resid_pdrop=0, embd_pdrop=0)
        if kind == "gemma2":
            return transformers.Gemma2Config(**decoder)
        if kind == "gpt_oss":
            return transformers.GptOssConfig(**decoder, num_local_experts=2, num_experts_per_tok=1)
        return transformers.T5Config(vocab_size=1000, d_model=512, num_heads=8, num_layers=layers, d_ff=1024,
                                     dropout_rate=dropout, decoder_start_token_id=0)

    def attention(self, kind, peer, dropout=0.0, B=2, T=1024):
        """The attention of one layer alone, forward and backward: what the model gives to its function."""
        steps = self.model(kind, peer, dropout, 2, B, T)
        return [self.attention_of(step.__defaults__[0], name, B, T) for name, step in zip((peer, "fovea"), steps)]

    def attention_of(self, model, name, B, T):
        """The first call of the attention in a step, to be made again."""
        import sys

        from transformers import AttentionInterface, AttentionMaskInterface

        torch, kept = self.torch, []
        own = getattr(sys.modules[type(model).__module__], "eager_attention_forward", None)
        function = AttentionInterface().get_interface(name, own)

        def keep(*arguments, **options):
            kept.append((arguments, options))
            return function(*arguments, **options)
        AttentionInterface.register("recorded", keep)
        AttentionMaskInterface.register("recorded", AttentionMaskInterface()[name])
        model.set_attn_implementation("recorded")
        self.step(model, torch.randint(1, 1000, (B, T)))
        (module, *tensors, mask), options = kept[0]
        inputs = [x.detach().requires_grad_() for x in tensors]
        options = {n: x.detach().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
                   for n, x in options.items()}
        learned = [x for x in options.values() if isinstance(x, torch.Tensor) and x.requires_grad]

        def call():
            o = function(module, *inputs, mask, **options)[0]
            torch.autograd.grad(o.sum(), inputs + learned, allow_unused=True)  # eager reads its own sinks
        return call


def main():
    try:
        import torch

        import fovea.torch
    except ImportError as error:
        return common.serve({"absent": str(error)}, None)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    rows = Rows(torch, fovea)

    def measure(row, arguments, seconds):
        if row in ("attention", "model", "generate"):
            try:
                import fovea.transformers  # noqa: F401  here, because it takes a second
            except ImportError as error:
                return {"skipped": str(error)}
        torch.manual_seed(1)
        if row in ("between_linears", "flex_window", "tracing", "block_mask"):
            return {"alone": getattr(rows, row)(seconds, **arguments)}
        theirs, ours = in_turns(*getattr(rows, row)(**arguments), seconds)
        return {"theirs": theirs, "ours": ours}

    common.serve({"ready": f"PyTorch {torch.__version__}"}, measure)


if __name__ == "__main__":
    main()
