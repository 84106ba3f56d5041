"""What tests hand in: notebooks and scripts for exercise 1."""

from __future__ import annotations

import json

EXACT = "def exact_match(guess, target):\n    return (guess == target).all(dim=1)"
STEP = "def addition_step(n, t):\n    return 2 * n + t, t - 1, n + t, 2 * n + t"
COPY = """def copy_relation(query, key, n):
    i, j = query[:, None], key[None, :]
    return torch.where((i - j == n) & (j < n), 0, 1)"""
RIGHT = ("import torch", EXACT, STEP, COPY)  # 8 points


def notebook(*cells, **more):
    """A notebook with these code cells, as text."""
    made = [
        {"cell_type": "code", "id": "same", "source": c, "metadata": {}, "outputs": []}
        for c in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more})
