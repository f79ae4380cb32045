# SPDX-License-Identifier: Apache-2.0
"""The threads of PyTorch, for our calls.

After each of its operations, a thread of OpenMP spins for milliseconds, on a core that a thread of ours would want.
"""

from __future__ import annotations

import ctypes

import torch

from .. import _fovea

_FUNCTIONS = ("GOMP_parallel", "omp_get_max_threads")


def use_threads_of_torch() -> None:
    """Lets calls run on them, if PyTorch works by OpenMP."""
    if not torch.backends.openmp.is_available():
        return
    loaded = ctypes.CDLL(torch._C.__file__)  # with all that it is linked to, among it PyTorch's OpenMP
    if all(hasattr(loaded, name) for name in _FUNCTIONS):
        _fovea.use_openmp(*(ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value for name in _FUNCTIONS))
