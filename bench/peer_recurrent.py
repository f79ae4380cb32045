# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of recurrent.py: one worker for all kinds and widths, with oneDNN and without."""
import statistics
import time

import common


def main():
    try:
        import torch
    except ImportError as error:
        return common.serve({"absent": str(error)}, None)
    import os
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    def measure(kind, shape, calls, onednn):
        width, directions, batch, steps = shape
        torch.manual_seed(1)
        layer = getattr(torch.nn, kind.upper())(width, width, bidirectional=directions == 2)
        x = torch.rand(steps, batch, width).requires_grad_()
        dy = torch.ones(steps, batch, directions * width)

        def call():
            x.grad = None
            layer.zero_grad(set_to_none=True)
            layer(x)[0].backward(dy)

        seconds = []
        with torch.backends.mkldnn.flags(enabled=onednn):
            for i in range(calls + 3):
                begin = time.perf_counter()
                call()
                seconds.append(time.perf_counter() - begin)
        return {"seconds": statistics.median(seconds[3:]), "fastest": min(seconds[3:])}

    common.serve({"ready": torch.__version__}, measure)


if __name__ == "__main__":
    main()
