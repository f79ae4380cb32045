# SPDX-License-Identifier: Apache-2.0
"""PyTorch trains a bias of attention on the CPU: the model finds that each query wants the key before it."""

import torch

import fovea.torch


def main() -> None:
    torch.manual_seed(0)
    B, H, T, D = 4, 1, 12, 8
    bias = torch.zeros(1, H, T, T, requires_grad=True)
    optimizer = torch.optim.Adam([bias], lr=0.3)
    for step in range(60):
        q, k, v = torch.randn(3, B, H, T, D)
        wanted = v.roll(1, dims=2)
        o = fovea.torch.scaled_dot_product_attention(q, k, v, bias)
        loss = (o - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == 59:
            print(f"step {step}: loss {loss.item():.4f}")
    looked = bias[0, 0].argmax(dim=1)
    assert torch.equal(looked, torch.arange(T).roll(1)), looked


if __name__ == "__main__":
    main()
