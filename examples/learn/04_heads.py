# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/04-heads.md: do not edit.

# A head is a slice of columns
import numpy as np

random = np.random.default_rng(0)
T, C, H = 5, 8, 2
D = C // H
x = random.standard_normal((T, C))
W_Q, W_K, W_V, W_O = random.standard_normal((4, C, C)) / C ** 0.5

def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

# A loop over heads, each with columns of its own ...
parts = []
for h in range(H):
    columns = slice(h * D, (h + 1) * D)
    q, k, v = x @ W_Q[:, columns], x @ W_K[:, columns], x @ W_V[:, columns]
    parts.append(softmax(q @ k.T / D ** 0.5) @ v)
looped = np.concatenate(parts, axis=1) @ W_O

# ... and all heads at once: [T, C] is [T, H, D].
q, k, v = (np.reshape(x @ W, (T, H, D)) for W in (W_Q, W_K, W_V))
weights = softmax(np.einsum("ihd,jhd->hij", q, k) / D ** 0.5)
joined = np.einsum("hij,jhd->ihd", weights, v).reshape(T, C) @ W_O
print("the same:", bool(np.allclose(looped, joined)), " weights", weights.shape, " output", joined.shape)

import fovea

with_package = fovea.attention(q[None], k[None], v[None])[0].reshape(T, C) @ W_O
print("the same:", bool(np.allclose(with_package, joined, atol=1e-6)))

# What heads cost
grouped = fovea.attention(q[None], k[None, :, :1], v[None, :, :1])  # H = 2 heads of q, G = 1 of k and v
print(grouped.shape)

# Exercises
q = k = (x @ W_Q).reshape(T, H, D)
scores = np.einsum("ihd,jhd->hij", q, k)
print("symmetric:", bool(np.allclose(scores, scores.transpose(0, 2, 1))), " heads alike:", bool(np.allclose(scores[0], scores[1])))

P = weights[0]
two = P @ v[:, 0] @ W_O[:D] + P @ v[:, 1] @ W_O[D:]
one = P @ v.reshape(T, C) @ W_O
print("the same:", bool(np.allclose(two, one)))

pairs = random.standard_normal((8, 16))
means = np.array([(2 * a + b) / 3 for a in pairs for b in pairs])
equal = np.array([(a + b) / 2 for a in pairs for b in pairs])
different = [len(np.unique(m.round(9), axis=0)) for m in (means, equal)]
print("different means of 64 ordered pairs: 2/3 and 1/3", different[0], "  1/2 and 1/2", different[1])
