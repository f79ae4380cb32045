# SPDX-License-Identifier: Apache-2.0
"""PyTorch's scaled_dot_product_attention, in float32 or bfloat16: the worker of attention_peers.py."""
import os
import statistics
import time

import common

SECONDS = 0.6  # to spend on each direction of a shape, at least five runs


def median_time(call):
    call()
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    try:
        import torch
    except ImportError as error:
        return common.serve({"absent": str(error)}, None)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    attention = torch.nn.functional.scaled_dot_product_attention

    def measure(batch, heads, length, head_dim, causal, precision="float32"):
        torch.manual_seed(1)
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        q, k, v, g = (torch.randn(batch, heads, length, head_dim).to(dtype) for _ in range(4))
        with torch.no_grad():
            forward = median_time(lambda: attention(q, k, v, is_causal=causal))
        inputs = [t.requires_grad_() for t in (q, k, v)]
        out = attention(*inputs, is_causal=causal)
        backward = median_time(lambda: torch.autograd.grad(out, inputs, g, retain_graph=True))
        return {"forward_seconds": forward, "backward_seconds": backward}

    common.serve({"ready": f"PyTorch {torch.__version__}"}, measure)


if __name__ == "__main__":
    main()
