# SPDX-License-Identifier: Apache-2.0
"""The training step of train_peers.py in JAX with Optax, jitted whole: peer_jax.py CASE_JSON"""
import functools
import json
import math
import sys
import time

import common


def initial(jax, np, case):
    """The same model as peer_torch.py, as a tree of arrays."""
    random = np.random.default_rng(1)
    C, L, V = case["width"], case["layers"], case["vocabulary"]

    def matrix(*shape, scale=0.02):
        return jax.numpy.asarray(random.normal(0, scale, shape), dtype="float32")

    def norm():
        ones, zeros = jax.numpy.ones(C), jax.numpy.zeros(C)
        return {"gain": ones, "bias": zeros} if case["bias"] else {"gain": ones}

    def linear(inputs, outputs, scale=0.02):
        weight = {"weight": matrix(inputs, outputs, scale=scale)}
        return {**weight, "bias": jax.numpy.zeros(outputs)} if case["bias"] else weight

    residual = 0.02 / math.sqrt(2 * L)
    blocks = [{"norm1": norm(), "qkv": linear(C, 3 * C), "out": linear(C, C, residual),
               "norm2": norm(), "up": linear(C, 4 * C), "down": linear(4 * C, C, residual)}
              for _ in range(L)]
    tree = {"tokens": matrix(V, C), "positions": matrix(case["block"], C), "blocks": blocks,
            "norm": norm()}
    return tree if case["tie"] else {**tree, "head": matrix(V, C)}


def loss_of(jax, optax, case, p, x, y):
    def norm(part, h):
        mean = h.mean(-1, keepdims=True)
        variance = ((h - mean) ** 2).mean(-1, keepdims=True)
        return (h - mean) * jax.lax.rsqrt(variance + 1e-5) * part["gain"] + part.get("bias", 0)

    def linear(part, h):
        return h @ part["weight"] + part.get("bias", 0)

    B, T = x.shape
    h = p["tokens"][x] + p["positions"]
    for block in p["blocks"]:
        qkv = linear(block["qkv"], norm(block["norm1"], h)).reshape(B, T, 3, case["heads"], -1)
        y_att = jax.nn.dot_product_attention(*(qkv[:, :, i] for i in range(3)), is_causal=True)
        h = h + linear(block["out"], y_att.reshape(B, T, -1))
        h = h + linear(block["down"], jax.nn.gelu(linear(block["up"], norm(block["norm2"], h)),
                                                  approximate=False))
    logits = norm(p["norm"], h) @ p.get("head", p["tokens"]).T
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def main():
    case = json.loads(sys.argv[1])
    try:
        import jax
        import numpy as np
        import optax
    except ImportError as error:
        return common.serve({"absent": str(error)}, None)
    parameters = initial(jax, np, case)
    decayed = jax.tree.map(lambda p: p.ndim > 1, parameters)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0),
                            optax.adamw(1e-3, b1=0.9, b2=0.99, weight_decay=0.1, mask=decayed))
    data = jax.numpy.asarray(np.random.default_rng(2).integers(case["vocabulary"], size=100_000))
    span = np.arange(case["block"] + 1)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(p, state, starts):
        window = data[starts[:, None] + span]
        loss, gradient = jax.value_and_grad(functools.partial(loss_of, jax, optax, case))(
            p, window[:, :-1], window[:, 1:])
        change, state = optimizer.update(gradient, state, p)
        return optax.apply_updates(p, change), state, loss

    random = np.random.default_rng(3)
    now = {"p": parameters, "state": optimizer.init(parameters)}
    count = sum(p.size for p in jax.tree.leaves(parameters))

    def run(steps):
        start = time.perf_counter()
        for _ in range(steps):
            starts = random.integers(len(data) - len(span), size=case["batch"])
            now["p"], now["state"], loss = step(now["p"], now["state"], starts)
        loss = float(loss)
        seconds = time.perf_counter() - start
        assert math.isfinite(loss)
        return {"tokens_per_second": steps * case["batch"] * case["block"] / seconds}

    run(3)
    common.serve({"ready": f"JAX {jax.__version__}", "parameters": count}, run)


if __name__ == "__main__":
    main()
