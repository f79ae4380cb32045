# SPDX-License-Identifier: Apache-2.0
"""PyTorch's convolutions over time, float32, forward and backward: the worker of convolution.py."""
import os
import statistics
import time

import common


def ways(torch):
    """Each way has the layout of the input that suits it: [B, C, T] or [B, T, C]. It takes the
    weight of Conv1d, [out, in, width]. None of its copies between layouts counts but its own."""
    F = torch.nn.functional

    def conv1d(x, weight, bias):
        return F.conv1d(x, weight, bias, padding="same")

    def without_onednn(x, weight, bias):
        with torch.backends.mkldnn.flags(enabled=False):
            return conv1d(x, weight, bias)

    def conv2d(x, weight, bias):
        return F.conv2d(x, weight, bias, padding="same")

    def padded(x, width):
        return F.pad(x, (0, 0, (width - 1) // 2, width // 2))

    def unfold(x, weight, bias):  # weight [out, width x in]
        width = weight.shape[1] // x.shape[2]
        windows = padded(x, width).unfold(1, width, 1).transpose(2, 3)  # [B, T, width, C]
        return F.linear(windows.reshape(x.shape[0] * x.shape[1], -1), weight, bias)

    def tap_by_tap(x, weight, bias):  # weight [width, out, in]
        width, length = weight.shape[0], x.shape[1]
        rows = padded(x, width)
        y = F.linear(rows[:, :length], weight[0], bias)
        for tap in range(1, width):
            y = y + F.linear(rows[:, tap:tap + length], weight[tap])
        return y

    last = {"memory_format": torch.channels_last}
    return {
        "conv1d": (conv1d, lambda x: x, lambda w: w),
        "conv1d, no oneDNN": (without_onednn, lambda x: x, lambda w: w),
        "conv2d, channels last": (conv2d, lambda x: x[:, :, None].contiguous(**last),
                                  lambda w: w[:, :, None].contiguous(**last)),
        "unfold and linear": (unfold, lambda x: x.transpose(1, 2).contiguous(),
                              lambda w: w.transpose(1, 2).reshape(w.shape[0], -1).contiguous()),
        "a linear per tap": (tap_by_tap, lambda x: x.transpose(1, 2).contiguous(),
                             lambda w: w.permute(2, 0, 1).contiguous()),
    }


def main():
    try:
        import torch
    except ImportError as error:
        return common.serve({"absent": str(error)}, None)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    known = ways(torch)
    prepared = {}

    def prepare(way, inputs, outputs, width, batch, length):
        f, layout, weight_layout = known[way]
        torch.manual_seed(1)
        x = layout(torch.randn(batch, inputs, length)).requires_grad_()
        weight = weight_layout(torch.randn(outputs, inputs, width) * 0.05).requires_grad_()
        bias = torch.zeros(outputs, requires_grad=True)
        gradient = torch.randn_like(f(x, weight, bias).detach())
        return f, (x, weight, bias), gradient

    def measure(way, repeats, **shape):
        key = (way, *shape.values())
        if key not in prepared:
            prepared[key] = prepare(way, **shape)
        f, leaves, gradient = prepared[key]
        times = []
        for n in range(repeats + 3):
            start = time.perf_counter()
            f_result = f(*leaves)
            torch.autograd.grad(f_result, leaves, gradient)
            if n >= 3:
                times.append(time.perf_counter() - start)
        return {"seconds": statistics.median(times)}

    common.serve({"ready": f"PyTorch {torch.__version__}", "ways": list(known)}, measure)


if __name__ == "__main__":
    main()
