"""What does a certified model compute? A short Python program: relation, table of answers, loop.

The relation is the model's own. The table is read off the model: the arg-max for every tuple of
tokens that can occur, not the task's operators. It is written as a decision diagram, one node per
token that is read; equal nodes are written once, and a tuple that cannot occur may share the node
of one that can. The program needs Python alone.

The closest published idea is Transformer Programs, Friedman, Wettig and Chen (2023), arXiv
2306.01128: discrete models that are built to be read as code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lgcourse.certify.certificate import LIMIT, Certificate, Examination, examine, term_data
from lgcourse.certify.parts import marks_counted, parts
from lgcourse.certify.signatures import Setting, Shape
from lgcourse.errors import InputError
from lgcourse.tasks.numerals import Numerals
from lgcourse.training.folder import new_file, write_aside
from lgcourse.training.runs import load_run

TEMPLATE = '''"""{title}

Read out of a Transformer that is certified exact at {scales}: {tuples:,} tuples of tokens,
smallest margin {margin:.3f}. SHA-256 of its weights:
{sha256}

Run it with a prompt: python THIS_FILE "{example}"
"""

VOCABULARY = {vocabulary}
NUMBERS = {numbers}  # text has numbers, the program digits, least digit first

# The relation. A query at position i of an instance of sizes n reads itself and each key j with
# form = value, where form = a i + b j + c n is (a, b, c..), for low <= i <= high in steps, where
# all expressions (constant, factors of n..) are at least 0, unless another form has its value:
# (form, value, low, high, step, where, unless)
TERMS = {terms}

# The table of answers. Which terms name which of the tokens read (-1: none), and how many of MARKS
# stand before each of these, leads to a node; each token read leads to the next node, the last one
# to the answer. -1: this cannot occur.
MARKS = {marks}
ROOTS = {roots}
NODES = {nodes}

# The layout: (length, the one token that stands there or None); what is written follows
PROMPT = {prompt}
ANSWER = {answer}


def value(expression, n):
    return expression[0] + sum(c * size for c, size in zip(expression[1:], n))


def key(term, i, n):
    """Return the position that a term names for the query i, or None."""
    (a, b, *c), wanted, low, high, step, where, unless = term
    if low is not None and (i < value(low, n) or (i - value(low, n)) % step):
        return None
    if high is not None and i > value(high, n) or any(value(e, n) < 0 for e in where):
        return None
    j, rest = divmod(wanted - a * i - value((0, *c), n), b)
    if rest or not 0 <= j <= i:
        return None
    apart = any(p * i + q * j + value((0, *r), n) == v for (p, q, *r), v in unless)
    return None if apart else j


def next_token(tokens, n, marks):
    """Return the token behind those so far; marks are the positions of MARKS in them."""
    i = len(tokens) - 1
    read, pattern = [i], []
    for term in TERMS:
        j = key(term, i, n)
        if j is not None and j not in read:
            read.append(j)
        pattern.append(-1 if j is None else read.index(j))
    parts = tuple(sum(mark < j for mark in marks) for j in read) if MARKS else ()
    node = ROOTS[tuple(pattern), parts]
    for j in read:
        row = NODES[node]
        node = row[tokens[j]] if tokens[j] < len(row) else -1
        if node < 0:
            raise ValueError("no prompt of this task leads here")
    return node


def write(prompt, n):
    """Return the answer to a prompt, both as tokens; n is the tuple of sizes."""
    tokens, marks = list(prompt), [i for i, token in enumerate(prompt) if token in MARKS]
    for _ in range(sum(value(length, n) for length, where in ANSWER
                       if all(value(e, n) >= 0 for e in where))):
        tokens.append(next_token(tokens, n, marks))
    return tokens[len(prompt):]


def sizes(tokens):
    """Return the sizes n of a prompt."""
    from itertools import product

    count = max(len(length) for length, _ in PROMPT) - 1
    for n in product(range(1, len(tokens) + 1), repeat=count):
        if sum(value(length, n) for length, _ in PROMPT) != len(tokens):
            continue
        layout = [mark for length, mark in PROMPT for _ in range(value(length, n))]
        if all(mark in (None, token) for mark, token in zip(layout, tokens)):
            return n
    return None


def turn(text):
    """Reverse every number of a text."""
    import re

    return re.sub("[0-9]+", lambda found: found.group()[::-1], text) if NUMBERS else text


def extend(text):
    """Put zeros before the shorter numbers of a text."""
    import re

    longest = max(map(len, re.findall("[0-9]+", text)), default=0)
    return re.sub("[0-9]+", lambda found: found.group().zfill(longest), text) if NUMBERS else text


def main(text):
    """Return the answer to a prompt, both as text."""
    words = turn(text) if isinstance(VOCABULARY, str) else text.replace("=", " = ").split()
    if any(word not in VOCABULARY for word in words):
        raise SystemExit("this is no prompt; write it like {example}")
    tokens = [VOCABULARY.index(word) for word in words]
    n = sizes(tokens)
    if n is None and extend(text) != text:
        return main(extend(text))
    if n is None:
        raise SystemExit("this is no prompt; write it like {example}")
    answer = [VOCABULARY[token] for token in write(tokens, n)]
    if not isinstance(VOCABULARY, str):
        return " ".join(answer)
    answer = turn("".join(answer))
    return (answer.lstrip("0") or "0") if NUMBERS else answer


if __name__ == "__main__":
    import sys

    print(main("".join(sys.argv[1:])))
'''


def export_run(run: str | Path, out: str | Path, limit: int = LIMIT) -> Certificate:
    """Certify the model of a run folder and write it as a program.

    Args:
        run: the run folder.
        out: the Python file, which does not exist yet.
        limit: see `certify`.

    Raises:
        InputError: the model is not certified, or the file cannot be written.
    """
    path = new_file(out, ".py", "Python files")
    loaded = load_run(run)
    whole = examine(loaded.model, loaded.task, limit, dict(loaded.settings.task_options))
    write_aside(path, program(whole, loaded.task, loaded.model.embedding).encode())
    return whole.certificate


def program(whole: Examination, task: Any, embedding: Any) -> str:
    """Return the source of the program of a certified model.

    Args:
        whole: what `examine` found.
        task: the task.
        embedding: the model's position embedding.

    Raises:
        InputError: the model is not certified.
    """
    made, setting = whole.certificate, whole.setting
    if made.leak:
        raise InputError(
            "other keys keep some attention, so no finite table says what the model computes; "
            "export needs a model with other='excluded', for instance a crystallised one"
        )
    if not made.certified or setting is None:
        raise InputError(
            f"only a certified model is exported; this one is {made.verdict}: {made.reason}"
        )
    terms, roots, nodes = _tables(whole, setting, embedding)
    free = [s for s in setting.segments if not s.written]
    return TEMPLATE.format(
        title=f"{task.name}: what a trained model computes, as a program.",
        scales=made.scales,
        tuples=made.tuples,
        margin=made.margin,
        sha256=made.sha256["weights"],
        example=task.example,
        vocabulary=repr(task.vocabulary),
        numbers=isinstance(task, Numerals),
        terms=_list(terms),
        marks=sorted(marks_counted(embedding)),
        roots="{\n" + "".join(f"    {k}: {v},\n" for k, v in roots.items()) + "}",
        nodes=_list(nodes),
        prompt=[
            ((s.length.constant, *_wide(s.length.factors, setting.sizes)), _mark(s)) for s in free
        ],
        answer=[
            ((s.length.constant, *s.length.factors), [(w.constant, *w.factors) for w in s.where])
            for s in setting.segments
            if s.written
        ],
    )


def _wide(factors: Sequence[int], sizes: int) -> tuple[int, ...]:
    return (*factors, *(0,) * (sizes - len(factors)))


def _mark(segment) -> int | None:
    return segment.tokens[0] if len(segment.tokens) == 1 else None


def _list(rows: Sequence[Any]) -> str:
    return "[\n" + "".join(f"    {row},\n" for row in rows) + "]"


def _tables(whole: Examination, setting: Setting, embedding):
    """Return the different terms, pattern -> root, and the nodes of the decision diagram."""
    data = [[json.dumps(term_data(term)) for term in head] for head in setting.heads]
    order = list(dict.fromkeys(term for head in data for term in head))
    part = parts(setting, embedding) if marks_counted(embedding) else []
    answers: dict[Any, dict[tuple[int, ...], int]] = {}
    for signature, table, outcome in whole.found:
        pattern, places = _pattern(signature.shape, data, order)
        stand = [signature.shape.places[place].segment for place in places]
        rows = answers.setdefault((pattern, tuple(part[k] for k in stand if part)), {})
        for tokens, answer in zip(
            table.tokens[:, places].tolist(), outcome.answers.tolist(), strict=True
        ):
            known = rows.setdefault(tuple(tokens), answer)
            if known != answer:
                raise InputError("two signatures look alike to the model and have two answers")
    diagram = Diagram()
    roots = {pattern: diagram.root(rows) for pattern, rows in answers.items()}
    return [_term(json.loads(term)) for term in order], roots, diagram.rows()


def _pattern(shape: Shape, data, order: list[str]) -> tuple[tuple[int, ...], list[int]]:
    """Return which of the tokens read each term names, and the places that are read, in order."""
    named: dict[str, int] = {}
    for head, reads in zip(data, shape.reads, strict=True):
        named |= {head[number]: place for place, numbers in reads for number in numbers}
    places = list(dict.fromkeys([shape.query, *(named[t] for t in order if t in named)]))
    return tuple(places.index(named[t]) if t in named else -1 for t in order), places


def _term(term: dict[str, Any]) -> tuple:
    """Return a term as the program writes it."""

    def fixed(value):
        return tuple(map(fixed, value)) if isinstance(value, list) else value

    names = ("form", "value", "low", "high", "step", "where", "unless")
    return tuple(fixed(term[name]) for name in names)


class Diagram:
    """A decision diagram over tuples of tokens that shares equal nodes.

    >>> diagram = Diagram()
    >>> diagram.root({(0, 0): 0, (0, 1): 1, (1, 0): 1, (1, 1): 0})
    2
    >>> diagram.rows()
    [(0, 1), (1, 0), (0, 1)]
    """

    def __init__(self):
        self.nodes: list[dict[int, int]] = []
        self.levels: dict[int, list[int]] = {}  # tokens that are still to be read -> nodes

    def root(self, answers: dict[tuple[int, ...], int]) -> int:
        """Add the answers to all tuples of one length; return the node to begin at."""
        (depth,) = {len(tokens) for tokens in answers}
        groups: dict[tuple[int, ...], dict[int, int]] = {}
        for tokens, answer in answers.items():
            groups.setdefault(tokens[:-1], {})[tokens[-1]] = answer
        for left in range(1, depth + 1):
            above: dict[tuple[int, ...], dict[int, int]] = {}
            for tokens in sorted(groups, key=lambda t: (-len(groups[t]), t)):
                node = self.share(groups[tokens], left)
                if left == depth:
                    return node
                above.setdefault(tokens[:-1], {})[tokens[-1]] = node
            groups = above
        raise AssertionError("unreachable")

    def share(self, entries: dict[int, int], left: int) -> int:
        """Return a node that has these entries, and maybe others."""
        level = self.levels.setdefault(left, [])
        for node in level:
            known = self.nodes[node]
            if all(known.get(token, then) == then for token, then in entries.items()):
                known.update(entries)
                return node
        self.nodes.append(dict(entries))
        level.append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def rows(self) -> list[tuple[int, ...]]:
        """Return the nodes, each as a tuple with one entry per token, -1 for none."""
        return [tuple(n.get(token, -1) for token in range(max(n) + 1)) for n in self.nodes]
