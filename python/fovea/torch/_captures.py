# SPDX-License-Identifier: Apache-2.0
"""What traced functions have captured, between a forward and its backward."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from .._errors import usage_error


class Captures:
    """Tensors that a backward reads once more, and how often each had been changed in place before."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._then = [(x, x._version) for x in tensors if not x.is_inference()]

    def check(self) -> None:
        """Raises UsageError if one was changed since."""
        for x, version in self._then:
            if x._version != version:
                raise usage_error(
                    f"a captured tensor {list(x.shape)} was changed in place between the forward and the backward",
                    "the backward reads it again: change it later, or let the function capture a clone")
