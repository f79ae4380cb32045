# SPDX-License-Identifier: Apache-2.0
"""What the code of the articles in docs/articles computes, told again in PyTorch, with its defects. The names are
those that its readers know; the lines are ours. The language models of chapter 6 stand in bench/sources.py."""

import math

import torch
from torch import nn


# ---------------------------------------------------------------- the article of CSDN (self-attention.md)

def get_attn_pad_mask(seq_q, seq_k):
    """[B, len_q, len_k], True where the key is padding: true means drop."""
    return (seq_k == 0)[:, None, :].expand(-1, seq_q.shape[1], -1)


def self_attention(Q, K, V, attn_mask):
    """[B, H, T, d]; what is masked gets -1e9."""
    scores = Q @ K.mT / math.sqrt(Q.shape[-1])
    return torch.softmax(scores.masked_fill(attn_mask, -1e9), dim=-1) @ V


def split_heads(x, heads):
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def multi_head_attention(x, attn_mask, weights, n_heads):
    """Projections without biases, then fc, the residual sum and LayerNorm. W_Q, W_K, W_V and fc are [in, out]."""
    *projections, fc = weights
    Q, K, V = (split_heads(x @ W, n_heads) for W in projections)
    context = self_attention(Q, K, V, attn_mask[:, None].repeat(1, n_heads, 1, 1))
    joined = context.transpose(1, 2).flatten(2)
    return nn.functional.layer_norm(joined @ fc + x, x.shape[-1:])


# ---------------------------------------------------------------- transformer-3 (transformer-3.md)

def attention(query, key, value, mask=None, dropout=0.1):
    """Where mask is 0, the score is -1e10. dropout is called: its default, a number, cannot be."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e10)
    weights = torch.softmax(scores, dim=-1)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ value, weights


class MultiHeadedAttention(nn.Module):
    """Four projections that start as copies of one."""

    def __init__(self, num_heads, d_model, dropout=0.1):
        super().__init__()
        self.num_heads, self.attention_score = num_heads, None
        first = nn.Linear(d_model, d_model)
        self.proj_weights = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))
        for copy in self.proj_weights:
            copy.load_state_dict(first.state_dict())
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        heads = [split_heads(project(x), self.num_heads)
                 for project, x in zip(self.proj_weights, (query, key, value))]
        mask = None if mask is None else mask[:, None]
        out, self.attention_score = attention(*heads, mask, self.dropout)
        return self.proj_weights[3](out.transpose(1, 2).flatten(2))


# ---------------------------------------------------------------- padding masks (padding-mask.md)

def padding_mask_attention(Q, K, V, mask):
    """[B, T, d]; mask [B, T] is true at what is valid; padding gets -inf, as a key alone."""
    S = Q @ K.mT / math.sqrt(Q.shape[-1])
    return torch.softmax(S.masked_fill(~mask[:, None, :], float("-inf")), dim=-1) @ V


# ---------------------------------------------------------------- bojone/attention (bojone-attention.md)

BIG = 1e10


def to_mask(x, mask, mode="mul"):
    if mask is None:
        return x
    mask = mask.reshape(*mask.shape, *[1] * (x.dim() - mask.dim()))
    return x * mask if mode == "mul" else x - (1 - mask) * BIG


class KerasAttention:
    """Attention(heads, size_per_head) of attention_keras.py: no biases, no projection of the output. mask_right
    False is the default of the file of July 2019 on, None what was meant: no mask."""

    def __init__(self, weights, heads, mask_right=None, scaled=True):
        self.weights, self.heads, self.mask_right, self.scaled = weights, heads, mask_right, scaled

    def __call__(self, q, k, v, v_mask=None, q_mask=None):
        q, k, v = (split_heads(x @ W, self.heads) for x, W in zip((q, k, v), self.weights))
        a = q @ k.mT
        if self.scaled:
            a = a / math.sqrt(q.shape[-1])
        a = to_mask(a.permute(0, 3, 2, 1), v_mask, "add").permute(0, 3, 2, 1)
        if self.mask_right is True:
            a = a - torch.ones_like(a[0, 0]).triu(1) * BIG
        elif self.mask_right is False:  # a constant, 0, which is read as a matrix of 0: everything is masked
            a = a - BIG
        elif self.mask_right is not None:
            a = a - (1 - self.mask_right) * BIG
        o = torch.softmax(a, dim=-1) @ v
        return to_mask(o.transpose(1, 2).flatten(2), q_mask, "mul")


def extract_seq_patches(x, kernel_size, rate):
    """[B, T, kernel_size, C]: the neighbours of each place, zeros beyond the ends."""
    T, reach = x.shape[1], (kernel_size - 1) * rate
    right = reach // 2
    padded = nn.functional.pad(x, (0, 0, reach - right, right))
    return torch.stack([padded[:, i:i + T] for i in range(0, reach + 1, rate)], dim=2)


def local_self_attention(x, weights, heads, neighbors=1, rate=1, causal=False):
    kernel = 1 + 2 * neighbors
    patches = extract_seq_patches(x, kernel, rate)
    keep = (torch.arange(kernel) <= neighbors).to(x.dtype)[None] if causal else None
    B, T, C = x.shape
    rows = patches.reshape(B * T, kernel, C)
    layer = KerasAttention(weights, heads, mask_right=keep)
    return layer(x.reshape(B * T, 1, C), rows, rows).reshape(B, T, -1)


def atrous_self_attention(x, weights, heads, rate):
    """Every rate-th place by itself, after a padding that adds a whole rate where nothing is missing."""
    B, T, C = x.shape
    x = nn.functional.pad(x, (0, 0, 0, rate - T % rate))
    x = x.view(B, -1, rate, C).transpose(1, 2).reshape(B * rate, -1, C)
    o = KerasAttention(weights, heads)(x, x, x)
    return o.view(B, rate, -1, o.shape[-1]).transpose(1, 2).reshape(B, -1, o.shape[-1])[:, :T]


def sparse_offsets(rate):
    """The distances of the keys that SparseSelfAttention reads: of its two parts, one after the other."""
    local = [n * rate for n in range(-(rate - 1), rate)]  # neighbors = rate - 1, dilated by rate
    return local, "every multiple of rate"


def sparse_weights(scores, i, rate):
    """Row i of the weights, by key, of a row of scores: both parts are in one softmax, so that a key that is in
    both counts twice, and zeros beyond the ends count, too."""
    n = len(scores)
    padded = n + rate - n % rate
    score = lambda j: scores[j] if 0 <= j < n else 0.0
    keys = [j for j in range(padded) if (j - i) % rate == 0] + [i + offset for offset in sparse_offsets(rate)[0]]
    weights = torch.softmax(torch.tensor([float(score(j)) for j in keys]), dim=0)
    total = torch.zeros(n)
    for j, weight in zip(keys, weights):
        if 0 <= j < n:
            total[j] += weight
    return total


def sin_cos_position_embedding(T, v_dim, r=0):
    """[T, v_dim], sines and cosines in turns, of |p - r|."""
    p = (torch.arange(T) - r).abs().double()[:, None]
    angles = p / 10000.0 ** (torch.arange(0, v_dim, 2).double() / v_dim)
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


def tf_position_embedding(T, size):
    """Position_Embedding: all cosines, then all sines."""
    angles = torch.arange(T).double()[:, None] / 10000.0 ** (torch.arange(0, size, 2).double() / size)
    return torch.cat([angles.cos(), angles.sin()], dim=1)


def tf_mask(inputs, seq_len, mode="mul"):
    mask = (torch.arange(inputs.shape[1])[None] < seq_len[:, None]).to(inputs.dtype)
    mask = mask.reshape(*mask.shape, *[1] * (inputs.dim() - 2))
    return inputs * mask if mode == "mul" else inputs - (1 - mask) * 1e12


# ---------------------------------------------------------------- chapter 6 (language-models.md)

def attention_rnn_step(query, keys, squeeze=True, dim=1):
    """AttentionRNN.attention: [B, C] and [B, t, C]. The softmax is over an axis of length 1."""
    scores = query[:, None] @ keys.mT / math.sqrt(query.shape[-1])
    state = torch.softmax(scores, dim=dim) @ keys
    return state.squeeze() if squeeze else state[:, 0]


def attention_rnn(inputs, state, W_xh, W_hh):
    """AttentionRNN.forward, [T, B, C]: the outputs, and the attention of the last step in place of the state."""
    history, outputs = [], []
    for x in inputs:
        state = torch.tanh(x @ W_xh + state @ W_hh)
        if history:
            attended = attention_rnn_step(state, torch.stack(history, dim=1))
        outputs.append(attended if history else state)
        history.append(state)
    return torch.stack(outputs), attended


def unbiased_layer_norm(x, eps=1e-6):
    """LayerNorm: by the deviation over N - 1, to which eps is added."""
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)


def scaled_dot_product_attention(queries, keys, values, attention_mask):
    """ScaledDotProductAttention, [B H, T, d]: -1e6 where the mask is 0."""
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    return torch.softmax(scores.masked_fill(attention_mask == 0, -1e6), dim=-1) @ values


def clip_index(T, s):
    """r_ij = clip(i - j, -s, s), as the chapter numbers it."""
    places = torch.arange(T)
    return (places[:, None] - places[None]).clamp(-s, s)


def relative_attention(q, k, v, a_k, a_v, s):
    """Shaw's attention with tables [2s+1, d] by r_ij."""
    r = clip_index(q.shape[0], s) + s
    scores = torch.einsum("id,ijd->ij", q, k[None] + a_k[r]) / math.sqrt(q.shape[-1])
    return torch.einsum("ij,ijd->id", torch.softmax(scores, dim=-1), v[None] + a_v[r])
