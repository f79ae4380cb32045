#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/01-attention-by-hand.md: do not edit.
set -e

# Five steps
fovea explain --q 是 --kv 你人

# What attention does not see
fovea explain --q 是 --kv 人你 | grep -A 3 -e '^4' -e '^5'

# Exercises
fovea explain --q 你 --kv 是人 | grep -A 2 '^4'
