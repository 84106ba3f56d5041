"""How does a learned relation leave its model? As plain data: cells "form = value", head by head.

What is read again is a list of `CellRelation`s, which prediction, POLA and figures take like any
other relation. Nothing of the model or its training is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError
from lgcourse.relations.cells import CellRelation
from lgcourse.relations.forms import Form

KIND = "lgcourse relations 1"
MOST = 10_000  # heads, and cells of a head
LARGEST = 10**6  # of any number in a cell


def as_data(relations: Iterable[CellRelation]) -> dict[str, Any]:
    """Return relations made of cells as plain data for JSON.

    >>> as_data([CellRelation([(Form(1, -1, -1), 0)], "head 1")])["relations"]
    [{'name': 'head 1', 'layer': 1, 'parts': False, 'cells': [{'form': [1, -1, -1], 'value': 0}]}]
    """
    return {
        "kind": KIND,
        "relations": [
            {
                "name": phi.name,
                "layer": phi.layer,
                "parts": phi.parts,
                "cells": [
                    {"form": [form.a, form.b, *form.factors], "value": value}
                    for form, value in phi.cells
                ],
            }
            for phi in relations
        ],
    }


def from_data(data: Any) -> list[CellRelation]:
    """Return the relations of `as_data`; data that it did not write are an `InputError`.

    >>> from_data(as_data([CellRelation([(Form(1, -1, -1), 0)], "head 1")]))[0].label(0)
    'i - j - n = 0'
    """
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise InputError(f'relations are stored as JSON with "kind": "{KIND}"; explain writes it')
    try:
        rows = [
            CellRelation(
                [_cell(cell) for cell in _few(row["cells"])],
                str(row["name"]),
                row.get("parts", False) is True,
                _layer(row.get("layer", 1)),
            )
            for row in _few(data["relations"])
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the stored relations are damaged: {error}; write them anew") from error
    counts = {len(form.factors) for phi in rows for form, _ in phi.cells}
    if len(counts) > 1:
        raise InputError("the stored relations are damaged: their forms differ in the sizes of n")
    return rows


def load(path: str | Path) -> list[CellRelation]:
    """Read relations from a JSON file.

    Args:
        path: a file that ``lgcourse explain RUN --relation FILE.json`` wrote.

    Raises:
        InputError: there is no such file, or it holds something else.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read '{path}': {getattr(error, 'strerror', None) or 'it is no text'}; "
            "lgcourse explain RUN --relation FILE.json writes such a file"
        ) from error
    try:
        return from_data(json.loads(text))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"'{path}' is no JSON; explain writes one") from error


def _few(rows: Any) -> list:
    if not isinstance(rows, list) or len(rows) > MOST:
        raise ValueError(f"a list of up to {MOST:,} entries was expected")
    return rows


def _layer(number: Any) -> int:
    if type(number) is not int or not 1 <= number <= MOST:
        raise ValueError(f"layer {number!r} is no whole number from 1 to {MOST:,}")
    return number


def _cell(cell: Any) -> tuple[Form, int]:
    a, b, *c = cell["form"]
    for number in (a, b, *c, cell["value"]):
        if type(number) is not int or abs(number) > LARGEST:
            raise ValueError(f"{number!r} is no whole number up to {LARGEST:,}")
    if not c:
        raise ValueError("a form has factors of i, j and each size of n")
    return Form(a, b, c[0] if len(c) == 1 else tuple(c)), cell["value"]
