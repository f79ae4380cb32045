# SPDX-License-Identifier: Apache-2.0
"""Trains a small attention on the CPU through flex_attention: packed documents, a learned bias by distance, and
a soft cap. Of PyTorch's FlexAttention the same script needs a GPU."""

import torch
from torch import Tensor

from fovea.torch import create_block_mask, flex_attention, flex_plan


def main() -> None:
    B, H, T, D = 2, 4, 256, 16
    torch.manual_seed(0)
    document = torch.arange(T) // 64
    inputs, targets = torch.randn(B, T, H * D), torch.randn(B, T, H * D)
    project = torch.nn.Linear(H * D, 3 * H * D)
    by_distance = torch.nn.Parameter(torch.zeros(H, 64))

    def score_mod(score: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return 20 * torch.tanh((score + by_distance[h, (q_idx - kv_idx).clamp(0, 63)]) / 20)

    def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        return (q_idx >= kv_idx) & (document[q_idx] == document[kv_idx])

    mask = create_block_mask(mask_mod, None, None, T, T)
    optimizer = torch.optim.Adam([*project.parameters(), by_distance], lr=3e-3)
    losses = []
    for _ in range(20):
        q, k, v = (x.unflatten(-1, (H, D)).transpose(1, 2) for x in project(inputs).chunk(3, -1))
        o = flex_attention(q, k, v, score_mod, mask).transpose(1, 2).flatten(-2)
        loss = (o - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    plan = flex_plan(q, k, v, score_mod, mask)
    print("\n".join(plan["picture"]))
    print(f"{plan['tiles_kept']} of {plan['tiles']} tiles; loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert losses[-1] < losses[0]


if __name__ == "__main__":
    main()
