# SPDX-License-Identifier: Apache-2.0
"""The training step of train_peers.py in PyTorch: one worker, one model, one kind of optimizer.

  peer_torch.py CASE_JSON eager|compiled foreach|fused float32|bf16      bf16: autocast
"""
import json
import math
import os
import sys
import time

import common


def build(torch, case):
    """nanoGPT's decoder: pre-LN, GELU, fused attention, learned positions."""
    nn, F = torch.nn, torch.nn.functional
    C, bias = case["width"], case["bias"]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(C, bias=bias)
            self.qkv = nn.Linear(C, 3 * C, bias=bias)
            self.out = nn.Linear(C, C, bias=bias)
            self.norm2 = nn.LayerNorm(C, bias=bias)
            self.up = nn.Linear(C, 4 * C, bias=bias)
            self.down = nn.Linear(4 * C, C, bias=bias)

        def forward(self, x):
            B, T, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, case["heads"], -1).unbind(2)
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(case["vocabulary"], C)
            self.positions = nn.Parameter(torch.empty(case["block"], C))
            self.blocks = nn.ModuleList(Block() for _ in range(case["layers"]))
            self.norm = nn.LayerNorm(C, bias=bias)
            self.head = nn.Linear(C, case["vocabulary"], bias=False)
            for name, p in self.named_parameters():
                residual = name.endswith(("out.weight", "down.weight"))
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02 / (math.sqrt(2 * case["layers"]) if residual else 1))
            if case["tie"]:
                self.head.weight = self.tokens.weight

        def forward(self, x, y):
            h = self.tokens(x) + self.positions
            for block in self.blocks:
                h = block(h)
            logits = self.head(self.norm(h))
            return F.cross_entropy(logits.flatten(0, 1), y.flatten())

    return Model()


def make_optimizer(torch, model, case, kind):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), **{kind: True})


def main():
    case, mode, optimizer_kind, precision = json.loads(sys.argv[1]), *sys.argv[2:5]
    try:
        import torch
    except ImportError as error:
        return common.serve({"absent": str(error)}, None)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(1)
    model = build(torch, case)
    parameters = sum(p.numel() for p in model.parameters())
    optimizer = make_optimizer(torch, model, case, optimizer_kind)
    forward = torch.compile(model) if mode == "compiled" else model
    data = torch.randint(case["vocabulary"], (100_000,))
    span = torch.arange(case["block"] + 1)

    def step():
        starts = torch.randint(len(data) - case["block"] - 1, (case["batch"], 1))
        window = data[starts + span]
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = forward(window[:, :-1], window[:, 1:].contiguous())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    def run(steps):
        start = time.perf_counter()
        for _ in range(steps):
            loss = step()
        seconds = time.perf_counter() - start
        assert math.isfinite(loss.item())
        return {"tokens_per_second": steps * case["batch"] * case["block"] / seconds}

    for _ in range(3):
        step()
    common.serve({"ready": f"PyTorch {torch.__version__}", "parameters": parameters}, run)


if __name__ == "__main__":
    main()
