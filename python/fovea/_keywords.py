# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_python_keywords.py: do not edit.
"""Keywords and results, for type checkers: nothing loads this file."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any, Generic, Literal, SupportsFloat, SupportsIndex, TypedDict, TypeVar

Array = Any  # of numpy, or with DLPack or a buffer
Text = str | PathLike[str] | SupportsFloat | Iterable[str | PathLike[str] | SupportsFloat]
Kind = TypeVar("Kind")


class Parts(TypedDict, total=False):
    """Of attention and attend."""

    score: Literal["dot", "cosine", "l2", "additive", "concat"] | None
    scale: Text | None
    log_n_scale: SupportsFloat | None
    softcap: SupportsFloat | None
    causal: Literal["none", "bottom-right", "top-left"] | bool | None
    window: Text | Array | None
    dilation: SupportsIndex | None
    strided: SupportsIndex | None
    t5_bidirectional: bool | None
    t5_causal: bool | None
    t5_max_distance: SupportsIndex | None
    order: Literal["i-j", "j-i"] | None
    norm: Literal["softmax", "sigmoid", "none"] | None
    rotary: Literal["none", "halves", "interleaved"] | None
    dropout: SupportsFloat | None
    seed: SupportsIndex | None
    observe: Text | None
    precision: Literal["auto", "f32", "f64", "bf16"] | None
    reference: bool | None
    query_lengths: Array | None
    key_lengths: Array | None
    query_offsets: Array | None
    key_offsets: Array | None
    query_segments: Array | None
    key_segments: Array | None
    keep: Array | None
    drop: Array | None
    score_v: Array | None
    score_w: Array | None
    shaw_k: Array | None
    bias: Array | None
    slopes: Array | None
    t5: Array | None
    kerple: Array | None
    kerple_power: Array | None
    shaw_v: Array | None
    sink: Array | None


class Sampling(TypedDict, total=False):
    """Of generate and stream."""

    max_tokens: SupportsIndex | None
    temperature: SupportsFloat | None
    top_k: SupportsIndex | None
    top_p: SupportsFloat | None
    repetition_penalty: SupportsFloat | None
    greedy: bool | None
    seed: SupportsIndex | None


class Embedding(TypedDict, total=False):
    """Of Encoder.embed and similar."""

    pooling: Literal["model", "mean", "cls", "max"] | None
    normalize: bool | None
    prompt: Text | None
    truncate_dim: SupportsIndex | None


class Training(TypedDict, total=False):
    """Of LanguageModel.train."""

    base: Text | None
    freeze: Text | None
    layer_lr_decay: SupportsFloat | None
    lora: SupportsIndex | None
    lora_alpha: SupportsFloat | None
    lora_rs: bool | None
    lora_targets: Text | None
    lora_dropout: SupportsFloat | None
    dora: bool | None
    valid: Text | None
    valid_fraction: SupportsFloat | None
    tokenizer: Text | None
    tokenizer_model: Text | None
    subword_sampling: SupportsFloat | None
    lower: bool | None
    min_count: SupportsIndex | None
    vocabulary: Text | None
    data: Text | None
    loss_on: Literal["answers", "all"] | None
    objective: Literal["next-token", "dpo"] | None
    dpo_beta: SupportsFloat | None
    marks: bool | None
    max_length: SupportsIndex | None
    truncate: Literal["end", "front"] | None
    by_length: bool | None
    batch_size: SupportsIndex | None
    sequence_length: SupportsIndex | None
    model: Literal["transformer", "attention-rnn", "rnn", "gru", "lstm", "sru", "encoder"] | None
    encoder: Text | None
    compat: Text | None
    init: Literal["gpt2", "source", "keras"] | None
    layers: SupportsIndex | None
    heads: SupportsIndex | None
    kv_heads: SupportsIndex | None
    head_dim: SupportsIndex | None
    width: SupportsIndex | None
    ff: SupportsIndex | None
    block: SupportsIndex | None
    dropout: SupportsFloat | None
    position: Literal["learned", "sinusoidal", "alibi", "kerple", "kerple-power", "t5", "shaw-keys", "shaw", "rotary", "none"] | None
    position_max: SupportsIndex | None
    position_join: Literal["add", "concat"] | None
    sinusoid: Literal["interleaved", "sin-cos", "cos-sin"] | None
    embedding_scale: SupportsFloat | None
    t5_buckets: SupportsIndex | None
    t5_max_distance: SupportsIndex | None
    shaw_clip: SupportsIndex | None
    rope_base: SupportsFloat | None
    rope_local_base: SupportsFloat | None
    window: Text | None
    qk_norm: bool | None
    score: Literal["dot", "cosine", "l2", "additive", "concat"] | None
    attention_norm: Literal["softmax", "sigmoid", "none"] | None
    log_n_scale: bool | None
    score_scale: SupportsFloat | None
    softcap: SupportsFloat | None
    sink: bool | None
    norm: Literal["layer", "rms"] | None
    norm_position: Literal["pre", "post", "sandwich"] | None
    ln_variant: Literal["standard", "unbiased"] | None
    bias: bool | None
    activation: Literal["relu", "gelu", "gelu-tanh", "silu", "reglu", "geglu", "swiglu", "geglu-tanh"] | None
    forget_bias: SupportsFloat | None
    tie: bool | None
    logit_softcap: SupportsFloat | None
    lr: SupportsFloat | None
    min_lr: SupportsFloat | None
    schedule: Literal["cosine", "linear", "inverse-sqrt", "constant", "wsd"] | None
    warmup: SupportsIndex | None
    decay_share: SupportsFloat | None
    optimizer: Literal["adamw", "adamw8", "lion", "muon"] | None
    beta1: SupportsFloat | None
    beta2: SupportsFloat | None
    epsilon: SupportsFloat | None
    weight_decay: SupportsFloat | None
    clip: SupportsFloat | None
    accumulate: SupportsIndex | None
    recompute: bool | None
    stop_after: Text | None
    eval_every: Text | None
    save_every: Text | None
    log_every: SupportsIndex | None
    observe_every: SupportsIndex | None
    evaluate_training: bool | None
    patience: SupportsIndex | None
    keep: SupportsIndex | None
    precision: Literal["float32", "bf16"] | None
    save_dtype: Literal["float32", "bf16"] | None
    seed: SupportsIndex | None
    preset: Text | None
    config: Text | None
    threads: SupportsIndex | None
    overwrite: bool | None
    final: bool | None
    report: bool | None
    lang: Literal["en", "zh"] | None


class ClassifierTraining(TypedDict, total=False):
    """Of Classifier.train."""

    valid: Text | None
    valid_fraction: SupportsFloat | None
    format: Literal["auto", "tsv", "csv", "jsonl", "fasttext", "lines"] | None
    text_column: Text | None
    label_column: Text | None
    header: Literal["auto", "yes", "no"] | None
    separator: Text | None
    label_separator: Text | None
    bad_rows: Literal["stop", "skip"] | None
    multi_label: bool | None
    regression: bool | None
    class_weights: Text | None
    label_smoothing: SupportsFloat | None
    metric: Literal["auto", "loss", "accuracy", "macro-f1", "micro-f1", "rmse", "pearson"] | None
    tokenizer: Text | None
    tokenizer_model: Text | None
    subword_sampling: SupportsFloat | None
    words: Literal["spaces", "punctuation"] | None
    lower: bool | None
    min_count: SupportsIndex | None
    embeddings: Text | None
    max_length: SupportsIndex | None
    truncate: Literal["end", "front"] | None
    batch_size: SupportsIndex | None
    model: Literal["auto", "linear", "bag", "encoder", "pretrained"] | None
    encoder: Text | None
    pooling: Literal["mean", "max", "first", "last", "attention"] | None
    ngrams: SupportsIndex | None
    ngram_width: SupportsIndex | None
    buckets: SupportsIndex | None
    init: Literal["gpt2", "source", "keras"] | None
    heads: SupportsIndex | None
    kv_heads: SupportsIndex | None
    head_dim: SupportsIndex | None
    width: SupportsIndex | None
    ff: SupportsIndex | None
    dropout: SupportsFloat | None
    encoder_dropout: SupportsFloat | None
    freeze_embeddings: bool | None
    position: Literal["learned", "sinusoidal", "alibi", "kerple", "kerple-power", "t5", "shaw-keys", "shaw", "rotary", "none"] | None
    position_max: SupportsIndex | None
    position_join: Literal["add", "concat"] | None
    sinusoid: Literal["interleaved", "sin-cos", "cos-sin"] | None
    embedding_scale: SupportsFloat | None
    t5_buckets: SupportsIndex | None
    t5_max_distance: SupportsIndex | None
    shaw_clip: SupportsIndex | None
    rope_base: SupportsFloat | None
    rope_local_base: SupportsFloat | None
    qk_norm: bool | None
    score: Literal["dot", "cosine", "l2", "additive", "concat"] | None
    attention_norm: Literal["softmax", "sigmoid", "none"] | None
    log_n_scale: bool | None
    score_scale: SupportsFloat | None
    softcap: SupportsFloat | None
    sink: bool | None
    norm: Literal["layer", "rms"] | None
    norm_position: Literal["pre", "post", "sandwich"] | None
    ln_variant: Literal["standard", "unbiased"] | None
    bias: bool | None
    activation: Literal["relu", "gelu", "gelu-tanh", "silu", "reglu", "geglu", "swiglu", "geglu-tanh"] | None
    forget_bias: SupportsFloat | None
    lr: SupportsFloat | None
    min_lr: SupportsFloat | None
    schedule: Literal["cosine", "linear", "inverse-sqrt", "constant", "wsd"] | None
    warmup: SupportsIndex | None
    decay_share: SupportsFloat | None
    optimizer: Literal["adamw", "adamw8", "lion", "muon"] | None
    beta1: SupportsFloat | None
    beta2: SupportsFloat | None
    epsilon: SupportsFloat | None
    weight_decay: SupportsFloat | None
    clip: SupportsFloat | None
    accumulate: SupportsIndex | None
    recompute: bool | None
    stop_after: Text | None
    eval_every: Text | None
    save_every: Text | None
    log_every: SupportsIndex | None
    observe_every: SupportsIndex | None
    evaluate_training: bool | None
    patience: SupportsIndex | None
    keep: SupportsIndex | None
    precision: Literal["float32", "bf16"] | None
    save_dtype: Literal["float32", "bf16"] | None
    seed: SupportsIndex | None
    word_ngrams: Text | None
    char_ngrams: Text | None
    leave_out: Literal["auto", "none", "words"] | None
    weighting: Literal["auto", "tfidf", "ratio", "binary", "binary-ratio"] | None
    regularization_c: SupportsFloat | None
    folds: SupportsIndex | None
    calibrate: Literal["none", "temperature", "platt", "isotonic"] | None
    threshold: Text | None
    auto: Text | None
    base: Text | None
    freeze: Text | None
    layer_lr_decay: SupportsFloat | None
    lora: SupportsIndex | None
    lora_alpha: SupportsFloat | None
    lora_rs: bool | None
    lora_targets: Text | None
    lora_dropout: SupportsFloat | None
    dora: bool | None
    config: Text | None
    threads: SupportsIndex | None
    overwrite: bool | None
    final: bool | None
    report: bool | None
    lang: Literal["en", "zh"] | None


class TaggerTraining(TypedDict, total=False):
    """Of Tagger.train."""

    valid: Text | None
    valid_fraction: SupportsFloat | None
    task: Literal["tag", "segment"] | None
    joint: bool | None
    format: Literal["auto", "conll", "conllu", "words"] | None
    word_column: SupportsIndex | None
    tag_column: Text | None
    column: Text | None
    comments: bool | None
    scheme: Text | None
    metric: Literal["auto", "loss", "accuracy", "span-f1"] | None
    lower: bool | None
    min_count: SupportsIndex | None
    word_dropout: SupportsFloat | None
    tokenizer: Literal["char", "sentencepiece"] | None
    tokenizer_model: Text | None
    subword_sampling: SupportsFloat | None
    embeddings: Text | None
    max_length: SupportsIndex | None
    batch_size: SupportsIndex | None
    encoder: Text | None
    head: Text | None
    word_width: SupportsIndex | None
    character_reader: Literal["none", "conv", "bilstm"] | None
    character_width: SupportsIndex | None
    character_features: SupportsIndex | None
    shape_width: SupportsIndex | None
    ngram_width: SupportsIndex | None
    buckets: SupportsIndex | None
    linear: bool | None
    linear_buckets: SupportsIndex | None
    linear_dropout: SupportsFloat | None
    init: Literal["gpt2", "source", "keras"] | None
    heads: SupportsIndex | None
    kv_heads: SupportsIndex | None
    head_dim: SupportsIndex | None
    width: SupportsIndex | None
    ff: SupportsIndex | None
    input_dropout: SupportsFloat | None
    dropout: SupportsFloat | None
    encoder_dropout: SupportsFloat | None
    freeze_embeddings: bool | None
    position: Literal["learned", "sinusoidal", "alibi", "kerple", "kerple-power", "t5", "shaw-keys", "shaw", "rotary", "none"] | None
    position_max: SupportsIndex | None
    position_join: Literal["add", "concat"] | None
    sinusoid: Literal["interleaved", "sin-cos", "cos-sin"] | None
    embedding_scale: SupportsFloat | None
    t5_buckets: SupportsIndex | None
    t5_max_distance: SupportsIndex | None
    shaw_clip: SupportsIndex | None
    rope_base: SupportsFloat | None
    rope_local_base: SupportsFloat | None
    qk_norm: bool | None
    score: Literal["dot", "cosine", "l2", "additive", "concat"] | None
    attention_norm: Literal["softmax", "sigmoid", "none"] | None
    log_n_scale: bool | None
    score_scale: SupportsFloat | None
    softcap: SupportsFloat | None
    sink: bool | None
    norm: Literal["layer", "rms"] | None
    norm_position: Literal["pre", "post", "sandwich"] | None
    ln_variant: Literal["standard", "unbiased"] | None
    bias: bool | None
    activation: Literal["relu", "gelu", "gelu-tanh", "silu", "reglu", "geglu", "swiglu", "geglu-tanh"] | None
    forget_bias: SupportsFloat | None
    lr: SupportsFloat | None
    min_lr: SupportsFloat | None
    schedule: Literal["cosine", "linear", "inverse-sqrt", "constant", "wsd"] | None
    warmup: SupportsIndex | None
    decay_share: SupportsFloat | None
    optimizer: Literal["adamw", "adamw8", "lion", "muon"] | None
    beta1: SupportsFloat | None
    beta2: SupportsFloat | None
    epsilon: SupportsFloat | None
    weight_decay: SupportsFloat | None
    clip: SupportsFloat | None
    accumulate: SupportsIndex | None
    recompute: bool | None
    stop_after: Text | None
    eval_every: Text | None
    save_every: Text | None
    log_every: SupportsIndex | None
    observe_every: SupportsIndex | None
    evaluate_training: bool | None
    patience: SupportsIndex | None
    keep: SupportsIndex | None
    precision: Literal["float32", "bf16"] | None
    save_dtype: Literal["float32", "bf16"] | None
    seed: SupportsIndex | None
    base: Text | None
    freeze: Text | None
    layer_lr_decay: SupportsFloat | None
    lora: SupportsIndex | None
    lora_alpha: SupportsFloat | None
    lora_rs: bool | None
    lora_targets: Text | None
    lora_dropout: SupportsFloat | None
    dora: bool | None
    config: Text | None
    threads: SupportsIndex | None
    overwrite: bool | None
    final: bool | None
    report: bool | None
    lang: Literal["en", "zh"] | None


class TranslatorTraining(TypedDict, total=False):
    """Of Translator.train."""

    source: Text | None
    target: Text | None
    valid_source: Text | None
    valid_target: Text | None
    valid: Text | None
    valid_fraction: SupportsFloat | None
    tokenizer: Text | None
    target_tokenizer: Text | None
    tokenizer_model: Text | None
    target_tokenizer_model: Text | None
    subword_sampling: SupportsFloat | None
    shared_vocabulary: bool | None
    lower: bool | None
    words: Literal["spaces", "punctuation"] | None
    min_count: SupportsIndex | None
    batch_tokens: SupportsIndex | None
    token_dropout: SupportsFloat | None
    label_smoothing: SupportsFloat | None
    metric: Literal["loss", "bleu", "chrf"] | None
    model: Literal["transformer", "bahdanau-gru"] | None
    encoder_layers: SupportsIndex | None
    decoder_layers: SupportsIndex | None
    encoder: Text | None
    init: Literal["gpt2", "source", "keras"] | None
    heads: SupportsIndex | None
    kv_heads: SupportsIndex | None
    head_dim: SupportsIndex | None
    width: SupportsIndex | None
    ff: SupportsIndex | None
    block: SupportsIndex | None
    dropout: SupportsFloat | None
    position: Literal["learned", "sinusoidal", "alibi", "kerple", "kerple-power", "t5", "shaw-keys", "shaw", "rotary", "none"] | None
    position_max: SupportsIndex | None
    position_join: Literal["add", "concat"] | None
    sinusoid: Literal["interleaved", "sin-cos", "cos-sin"] | None
    embedding_scale: SupportsFloat | None
    t5_buckets: SupportsIndex | None
    t5_max_distance: SupportsIndex | None
    shaw_clip: SupportsIndex | None
    rope_base: SupportsFloat | None
    rope_local_base: SupportsFloat | None
    decoder_position: Text | None
    qk_norm: bool | None
    score: Literal["dot", "cosine", "l2", "additive", "concat"] | None
    attention_norm: Literal["softmax", "sigmoid", "none"] | None
    log_n_scale: bool | None
    score_scale: SupportsFloat | None
    softcap: SupportsFloat | None
    sink: bool | None
    norm: Literal["layer", "rms"] | None
    norm_position: Literal["pre", "post", "sandwich"] | None
    ln_variant: Literal["standard", "unbiased"] | None
    bias: bool | None
    activation: Literal["relu", "gelu", "gelu-tanh", "silu", "reglu", "geglu", "swiglu", "geglu-tanh"] | None
    forget_bias: SupportsFloat | None
    share_embeddings: bool | None
    tie: bool | None
    lr: SupportsFloat | None
    min_lr: SupportsFloat | None
    schedule: Literal["cosine", "linear", "inverse-sqrt", "constant", "wsd"] | None
    warmup: SupportsIndex | None
    decay_share: SupportsFloat | None
    optimizer: Literal["adamw", "adamw8", "lion", "muon"] | None
    beta1: SupportsFloat | None
    beta2: SupportsFloat | None
    epsilon: SupportsFloat | None
    weight_decay: SupportsFloat | None
    clip: SupportsFloat | None
    accumulate: SupportsIndex | None
    recompute: bool | None
    stop_after: Text | None
    eval_every: Text | None
    save_every: Text | None
    log_every: SupportsIndex | None
    observe_every: SupportsIndex | None
    evaluate_training: bool | None
    patience: SupportsIndex | None
    keep: SupportsIndex | None
    precision: Literal["float32", "bf16"] | None
    save_dtype: Literal["float32", "bf16"] | None
    seed: SupportsIndex | None
    average: SupportsIndex | None
    average_best: SupportsIndex | None
    base: Text | None
    preset: Text | None
    config: Text | None
    threads: SupportsIndex | None
    overwrite: bool | None
    final: bool | None
    report: bool | None
    lang: Literal["en", "zh"] | None


class Translating(TypedDict, total=False):
    """Of Translator.translate."""

    beam: SupportsIndex | None
    nbest: SupportsIndex | None
    length_penalty: SupportsFloat | None
    length_norm: Literal["gnmt", "marian"] | None
    coverage_penalty: SupportsFloat | None
    patience: SupportsFloat | None
    max_ratio: SupportsFloat | None
    sample: bool | None
    temperature: SupportsFloat | None
    top_k: SupportsIndex | None
    top_p: SupportsFloat | None
    seed: SupportsIndex | None
    alignments: bool | None
    alignment_layer: SupportsIndex | None
    long_lines: Literal["refuse", "split"] | None
    raw: bool | None
    truecase: bool | None


class Fitting(TypedDict, total=False):
    """Of Classifier and its fit."""

    valid: Text | None
    valid_fraction: SupportsFloat | None
    bad_rows: Literal["stop", "skip"] | None
    multi_label: bool | None
    regression: bool | None
    class_weights: Text | None
    label_smoothing: SupportsFloat | None
    metric: Literal["auto", "loss", "accuracy", "macro-f1", "micro-f1", "rmse", "pearson"] | None
    tokenizer: Text | None
    tokenizer_model: Text | None
    subword_sampling: SupportsFloat | None
    words: Literal["spaces", "punctuation"] | None
    lower: bool | None
    min_count: SupportsIndex | None
    embeddings: Text | None
    max_length: SupportsIndex | None
    truncate: Literal["end", "front"] | None
    batch_size: SupportsIndex | None
    model: Literal["auto", "linear", "bag", "encoder", "pretrained"] | None
    encoder: Text | None
    pooling: Literal["mean", "max", "first", "last", "attention"] | None
    ngrams: SupportsIndex | None
    ngram_width: SupportsIndex | None
    buckets: SupportsIndex | None
    init: Literal["gpt2", "source", "keras"] | None
    heads: SupportsIndex | None
    kv_heads: SupportsIndex | None
    head_dim: SupportsIndex | None
    width: SupportsIndex | None
    ff: SupportsIndex | None
    dropout: SupportsFloat | None
    encoder_dropout: SupportsFloat | None
    freeze_embeddings: bool | None
    position: Literal["learned", "sinusoidal", "alibi", "kerple", "kerple-power", "t5", "shaw-keys", "shaw", "rotary", "none"] | None
    position_max: SupportsIndex | None
    position_join: Literal["add", "concat"] | None
    sinusoid: Literal["interleaved", "sin-cos", "cos-sin"] | None
    embedding_scale: SupportsFloat | None
    t5_buckets: SupportsIndex | None
    t5_max_distance: SupportsIndex | None
    shaw_clip: SupportsIndex | None
    rope_base: SupportsFloat | None
    rope_local_base: SupportsFloat | None
    qk_norm: bool | None
    score: Literal["dot", "cosine", "l2", "additive", "concat"] | None
    attention_norm: Literal["softmax", "sigmoid", "none"] | None
    log_n_scale: bool | None
    score_scale: SupportsFloat | None
    softcap: SupportsFloat | None
    sink: bool | None
    norm: Literal["layer", "rms"] | None
    norm_position: Literal["pre", "post", "sandwich"] | None
    ln_variant: Literal["standard", "unbiased"] | None
    bias: bool | None
    activation: Literal["relu", "gelu", "gelu-tanh", "silu", "reglu", "geglu", "swiglu", "geglu-tanh"] | None
    forget_bias: SupportsFloat | None
    lr: SupportsFloat | None
    min_lr: SupportsFloat | None
    schedule: Literal["cosine", "linear", "inverse-sqrt", "constant", "wsd"] | None
    warmup: SupportsIndex | None
    decay_share: SupportsFloat | None
    optimizer: Literal["adamw", "adamw8", "lion", "muon"] | None
    beta1: SupportsFloat | None
    beta2: SupportsFloat | None
    epsilon: SupportsFloat | None
    weight_decay: SupportsFloat | None
    clip: SupportsFloat | None
    accumulate: SupportsIndex | None
    recompute: bool | None
    stop_after: Text | None
    eval_every: Text | None
    save_every: Text | None
    log_every: SupportsIndex | None
    observe_every: SupportsIndex | None
    evaluate_training: bool | None
    patience: SupportsIndex | None
    precision: Literal["float32", "bf16"] | None
    save_dtype: Literal["float32", "bf16"] | None
    seed: SupportsIndex | None
    word_ngrams: Text | None
    char_ngrams: Text | None
    leave_out: Literal["auto", "none", "words"] | None
    weighting: Literal["auto", "tfidf", "ratio", "binary", "binary-ratio"] | None
    regularization_c: SupportsFloat | None
    folds: SupportsIndex | None
    calibrate: Literal["none", "temperature", "platt", "isotonic"] | None
    threshold: Text | None
    auto: Text | None
    base: Text | None
    freeze: Text | None
    layer_lr_decay: SupportsFloat | None
    lora: SupportsIndex | None
    lora_alpha: SupportsFloat | None
    lora_rs: bool | None
    lora_targets: Text | None
    lora_dropout: SupportsFloat | None
    dora: bool | None
    config: Text | None
    threads: SupportsIndex | None
    verbose: bool | None


class Results(Generic[Kind]):
    """Of attend; of what is observed, what was asked for is there."""

    column_mass: Kind
    distance: Kind
    dropout_keep: Kind
    entropy: Kind
    lse: Kind
    max: Kind
    o: Kind
    rows: Kind
    topk_index: Kind
    topk_weight: Kind
    weights: Kind
