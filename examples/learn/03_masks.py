# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/03-masks.md: do not edit.

# 3. Masks, and the five ways to get them wrong
import numpy as np
import fovea

random = np.random.default_rng(0)
x = random.standard_normal((1, 5, 1, 4))  # [batch, length, heads, width]
valid = np.array([1, 1, 1, 0, 0], bool)

def weights(**mask):
    return fovea.attend(x, x, x, observe="weights", **mask).weights[0, 0]

def show(name, row):
    print(f"{name:28}", " ".join(f"{w:.2f}" for w in row))

show("right", weights(keep=valid[None, None, None])[0])

# 1. True means the opposite
show("the opposite", weights(drop=valid[None, None, None])[0])

# 2. A finite number stands for infinity
def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

scores = x[0, :, 0] @ x[0, :, 0].T / 2
nothing = np.zeros(5, bool)
show("-1e9, nothing to see", softmax(np.where(nothing, scores, np.float32(-1e9)))[0])
show("minus infinity, here", weights(keep=nothing[None, None, None])[0])
with np.errstate(over="ignore"):
    print("-1e9 in float16:", np.float16(-1e9), "  scores of 1 and 3, less 1e10, in float32:",
          *(np.float32([1, 3]) - np.float32(1e10)))

# 3. The weights are masked, not the scores
late = softmax(scores) * valid
show("masked after the softmax", late[0])
print(f"sum {late[0].sum():.2f}")

# 4. Only keys are masked
keys_alone = fovea.attention(x, x, x, key_lengths=np.int32([3]))
both = fovea.attention(x, x, x, key_lengths=np.int32([3]), query_lengths=np.int32([3]))
show("last row, keys alone", keys_alone[0, 4, 0])
show("last row, both", both[0, 4, 0])
print(f"first number of the mean: of all five rows {keys_alone[0, :, 0, 0].mean():.2f}, "
      f"of the three words {both[0, :3, 0, 0].mean():.2f}")

# 5. The triangle is shifted
show("bottom right: the last", fovea.attend(x[:, 4:], x, x, causal=True, observe="weights").weights[0, 0, 0])
show("top left: the first", fovea.attend(x[:, 4:], x, x, causal="top-left", observe="weights").weights[0, 0, 0])

# One test for all five
def sees_nothing_of(hidden, **mask):
    """Are the rows that may not see these keys the same bits, with NaN there and without?"""
    poisoned = x.copy()
    poisoned[:, hidden] = np.nan
    clean, other = fovea.attention(x, x, x, **mask), fovea.attention(x, poisoned, poisoned, **mask)
    return bool((clean[:, :3] == other[:, :3]).all())

print("lengths:", sees_nothing_of([3, 4], key_lengths=np.int32([3])))
print("causal, rows 0 to 2:", sees_nothing_of([3, 4], causal=True))
print("no mask:", sees_nothing_of([3, 4]))

# Exercises
lengths = np.array([5, 3, 4, 2, 1])
mask = np.arange(5) < lengths[:, None]
batch = random.standard_normal((5, 5, 1, 4))
right = fovea.attention(batch, batch, batch, keep=mask[:, None, None])
wrong = fovea.attention(batch, batch, batch, keep=mask[None, None])
print("texts that agree:", int(sum(np.allclose(a, b) for a, b in zip(right, wrong))), "of 5")

front = np.array([0, 0, 1, 1, 1], bool)
for i, row in enumerate(weights(keep=front[None, None, None], causal=True)):
    show(f"query {i}", row)
