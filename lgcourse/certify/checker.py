"""Does a certificate hold? Checked again by other means: brute force, NumPy, no code of its maker.

The run is loaded, and of the run's task and embedding only plain data are used: segments, families,
operator tables, weights, and the embedding's bias at single steps. Three questions follow.

1. Is the certificate about this run? Weights and relation must have the hashes that it states.
2. Which steps are there? All steps of all scales up to a bound B are looked at one by one. That is
   enough: what a step looks like depends on the signs of finitely many linear forms in (t, sizes)
   and on remainders modulo some M. The forms cut space into cells without lines. A point of a cell
   is v + sum_i c_i r_i with v between corners of the cell, at most d whole directions r_i of its
   edges and c_i >= 0. Taking away M r_i as often as c_i allows leaves a whole point of the same
   cell with the same remainders, whose sizes are at most the largest of a corner plus d M times
   the largest of a direction. So every kind of step occurs at a scale up to B.
3. Is the model right on every tuple of tokens of every kind of step? A forward pass in NumPy.

What a place that the circuit wrote can hold is taken more generously than by the maker: any output
of its writer. So the margin found here is at most that of the certificate.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from lgcourse.errors import InputError
from lgcourse.training.runs import load_run

STEPS = 400_000  # steps that are looked at, at most
FEW = 4_000  # steps at which the embedding is asked what it reads; of more, one of each kind
TOGETHER = 2**14  # tuples at once
SAME = 1e-6  # margins that differ by less are the same

Line = tuple[int, ...]  # (constant, factor of t, factors of the sizes)


def check(certificate: str | Path, run: str | Path) -> dict[str, Any]:
    """Check a certificate file against a run folder.

    Args:
        certificate: a JSON file that `lgcourse certify --out` wrote.
        run: the run folder.

    Returns:
        ``holds``, ``reason``, and what was looked at: ``bound``, ``steps``, ``kinds``, ``tuples``,
        ``margin``, ``seconds``.

    Raises:
        InputError: a file cannot be read.
    """
    try:
        claim = json.loads(Path(certificate).read_text(encoding="utf-8"))
        claim = {key: claim[key] for key in ("certified", "sha256", "relation", "margin", "error")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"'{certificate}' is no certificate: {error}") from error
    loaded = load_run(run)
    return check_model(claim, loaded.model, loaded.task)


def check_model(claim: dict[str, Any], model: Any, task: Any) -> dict[str, Any]:
    """Check the data of a certificate against a model and its task, see `check`."""
    start = time.perf_counter()
    report: dict[str, Any] = {"holds": False, "reason": "", "bound": (), "steps": 0, "kinds": 0}
    report |= {"tuples": 0, "margin": None}
    report["reason"] = _leaks(model) or _refuse(claim, model) or _look(claim, model, task, report)
    report["holds"] = not report["reason"]
    report["reason"] = report["reason"] or "every kind of step is answered rightly on every tuple"
    report["seconds"] = round(time.perf_counter() - start, 2)
    return report


def _refuse(claim, model) -> str:
    if claim["certified"] is not True:
        return "the file does not say that the model is certified"
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        array = value.detach().cpu().contiguous()
        digest.update(f"{name} {array.dtype} {list(array.shape)}\n".encode())
        digest.update(array.numpy().tobytes())
    if digest.hexdigest() != claim["sha256"]["weights"]:
        return "the weights are not those that were certified"
    text = json.dumps(claim["relation"], sort_keys=True)
    if hashlib.sha256(text.encode()).hexdigest() != claim["sha256"]["relation"]:
        return "the relation in the file does not have the hash that it states"
    if [[_plain(term) for term in head] for head in model.embedding.named_terms() or []] != claim[
        "relation"
    ]:
        return "the relation in the file is not that of the model"
    if len(model.blocks) * model.loops != 1:
        return "the model applies more than one layer"
    return ""


def _leaks(model) -> str:
    if getattr(model.embedding, "other", None) != "soft":
        return ""
    return "other keys keep some attention; this program does not check such certificates"


def _plain(term) -> dict[str, Any]:
    """Return a term of the embedding in the way a certificate writes it."""
    low, high = (e and [e.constant, *e.factors] for e in (term.low, term.high))
    return {
        "form": [term.form.a, term.form.b, *term.form.factors],
        "value": term.value,
        "low": low,
        "high": high,
        "step": term.step,
        "where": [[e.constant, *e.factors] for e in term.where],
        "unless": [[[f.a, f.b, *f.factors], value] for f, value in term.unless],
    }


def _look(claim, model, task, report) -> str:
    """Look at all steps up to the bound, then at all tuples; return what is wrong."""
    added = getattr(model.positions[0], "segments", None)
    marks = () if added is None else added.marks.tolist()
    world = _World(task, claim["relation"], model.blocks[0].attention.heads, marks)
    for k in world.marked:
        if not set(world.segments[k].tokens) <= set(marks):
            return f"a place of '{world.segments[k].letter}' may or may not hold a mark"
    if any(set(f.operator.table.values()) & set(marks) for f in world.families):
        return "the circuit writes marks, which the embedding counts"
    report["bound"] = bound = world.bound()
    network = _Network(model)
    kinds: dict[Any, _Step] = {}
    for sizes in product(*(range(1, most + 1) for most in bound)):
        if world.legal(sizes):
            report["steps"] += world.count(sizes)
    if report["steps"] > STEPS:
        return f"the bound {bound} leaves {report['steps']:,} steps to look at, more than {STEPS:,}"
    for sizes in product(*(range(1, most + 1) for most in bound)):
        if not world.legal(sizes):
            continue
        wrong = world.written_once(sizes)
        if wrong:
            return wrong
        for number, t in world.steps(sizes):
            step = world.step(number, t, sizes)
            if not all(0 <= p <= step.query for p in step.places):
                return f"a step at scale {sizes} needs a token that is not there yet"
            if step.kind not in kinds or report["steps"] <= FEW:
                wrong = network.unlike(step)
                if wrong:
                    return wrong
            kinds.setdefault(step.kind, step)
    report["kinds"] = len(kinds)
    margins = []
    for step in kinds.values():
        tokens, right = world.tuples(step)
        report["tuples"] += len(tokens)
        for some in range(0, len(tokens), TOGETHER):
            rows = slice(some, some + TOGETHER)
            logits = network(step, tokens[rows])
            best = np.take_along_axis(logits, right[rows, None], 1)[:, 0]
            np.put_along_axis(logits, right[rows, None], -np.inf, 1)
            margins.append(best - logits.max(1))
    margin = report["margin"] = float(np.concatenate(margins).min())
    if not margin > claim["error"]:
        return (
            f"a margin of {margin:.4g} is not above the stated rounding bound {claim['error']:.4g}"
        )
    if margin > claim["margin"] + SAME:
        return f"the smallest margin is {margin:.6g}, the certificate says {claim['margin']:.6g}"
    return ""


class _Step:
    """One concrete step: positions, who reads what, and what that means for any scale."""

    def __init__(self, sizes, query, places, kind):
        self.sizes, self.query, self.places, self.kind = sizes, query, places, kind
        self.family, self.segments, self.writers, self.operands, self.own, self.reads = kind[:6]
        self.parts = kind[6]


class _World:
    """A task and a relation, as plain data."""

    def __init__(self, task, relation, heads: int, marks=()):
        self.count_sizes, self.task = task.sizes, task
        self.segments, self.families = task.segments(), task.families()
        self.heads = [relation[h % len(relation)] for h in range(heads)]
        self.terms = {json.dumps(term, sort_keys=True): term for head in relation for term in head}
        self.marked = [k for k, s in enumerate(self.segments) if set(s.tokens) & set(marks)]
        self.largest = task.width if getattr(task, "padded", False) else None

    # --- one scale, one step ---
    def line(self, value) -> Line:
        """Return an expression of the task as (constant, factor of t, factors of the sizes)."""
        return value.constant, value.t_factor, *(value.factor(k) for k in range(self.count_sizes))

    def legal(self, sizes) -> bool:
        if self.largest is not None and max(sizes) > self.largest:
            return False
        return all(at(self.line(s.length), 0, sizes) >= 0 for s in self.segments if not s.where)

    def steps(self, sizes):
        for number, family in enumerate(self.families):
            if all(at(self.line(w), 0, sizes) >= 0 for w in family.where):
                first, last = (at(self.line(e), 0, sizes) for e in (family.first, family.last))
                for t in range(first, last + 1, family.step):
                    yield number, t

    def count(self, sizes) -> int:
        return sum(1 for _ in self.steps(sizes))

    @lru_cache(maxsize=2)  # noqa: B019 - the world is short-lived
    def spots(self, sizes) -> list[int]:
        """Return the number of the segment of every position."""
        line: list[int] = []
        for k, segment in enumerate(self.segments):
            if all(at(self.line(w), 0, sizes) >= 0 for w in segment.where):
                line += [k] * at(self.line(segment.length), 0, sizes)
        return line

    @lru_cache(maxsize=2)  # noqa: B019
    def writers(self, sizes) -> dict[int, int]:
        """Return position -> family that writes it."""
        rows = [(at(self.line(self.families[k].output), t, sizes), k) for k, t in self.steps(sizes)]
        return dict(rows) if len(dict(rows)) == len(rows) else {}

    def written_once(self, sizes) -> str:
        spots = self.spots(sizes)
        free = {p for p, k in enumerate(spots) if not self.segments[k].tokens}
        if set(self.writers(sizes)) != free:
            return f"at scale {sizes} the circuit does not write every answer token once"
        return ""

    def step(self, number: int, t: int, sizes) -> _Step:
        family, spots = self.families[number], self.spots(sizes)
        writers = self.writers(sizes)
        query = at(self.line(family.output), t, sizes) - 1
        inputs = [at(self.line(value), t, sizes) for value in family.inputs]
        keys = {name: key_of(term, query, sizes) for name, term in self.terms.items()}
        places = list(dict.fromkeys([*inputs, query, *(k for k in keys.values() if k >= 0)]))
        number_of = {p: k for k, p in enumerate(places)}
        reads = []
        for head in self.heads:
            holds: dict[int, list[int]] = {number_of[query]: []}
            for r, term in enumerate(head):
                key = keys[json.dumps(term, sort_keys=True)]
                if key >= 0:
                    holds.setdefault(number_of[key], []).append(r)
            reads.append(tuple(sorted((p, tuple(rows)) for p, rows in holds.items())))
        kind = (
            number,
            tuple(spots[p] for p in places),
            tuple(writers.get(p, -1) for p in places),
            tuple(number_of[p] for p in inputs),
            number_of[query],
            tuple(reads),
            tuple(sum(k in self.marked for k in spots[:p]) for p in places),
        )
        return _Step(sizes, query, tuple(places), kind)

    def tuples(self, step: _Step):
        """Return all tuples of tokens at the places of a step, and what is right for each."""
        table = self.families[step.family].operator.table
        domains = []
        for k, writer in zip(step.segments, step.writers, strict=True):
            outputs = self.families[writer].operator.table.values() if writer >= 0 else ()
            domains.append(sorted(set(self.segments[k].tokens or outputs)))
        rows, right = [], []
        for operands, output in table.items():
            row = dict(zip(step.operands, operands, strict=True))
            same = all(row[p] == v for p, v in zip(step.operands, operands, strict=True))
            if same and all(value in domains[p] for p, value in row.items()):
                rows.append([row.get(p, -1) for p in range(len(domains))])
                right.append(output)
        tokens, wanted = np.array(rows), np.array(right)
        for place in set(range(len(domains))) - set(step.operands):
            count, values = len(tokens), np.array(domains[place])
            tokens, wanted = np.repeat(tokens, len(values), 0), np.repeat(wanted, len(values))
            tokens[:, place] = np.tile(values, count)
        return tokens, wanted

    # --- the bound ---
    def bound(self) -> tuple[int, ...]:
        """Return the sizes up to which every kind of step occurs."""
        lines: set[Line] = set()
        for family in self.families:
            lines |= self.lines_of(family)
        for k in range(self.count_sizes):
            lines.add((-1, 0, *(int(i == k) for i in range(self.count_sizes))))
        if self.largest is not None:
            return (self.largest,) * self.count_sizes
        corner, edge = extent(lines, self.count_sizes)
        most = 1 + self.count_sizes
        return tuple(
            math.floor(c) + most * self.modulus() * e for c, e in zip(corner, edge, strict=True)
        )

    def modulus(self) -> int:
        keys = math.lcm(1, *(abs(t["form"][1]) for t in self.terms.values()))
        paces = math.lcm(1, *(f.step * f.output.t_factor for f in self.families))
        return math.lcm(keys * paces, *(t["step"] for t in self.terms.values()))

    def lines_of(self, family) -> set[Line]:
        """Return all forms whose sign, or difference from 0, a step of a family depends on."""
        t = (0, 1, *(0,) * self.count_sizes)
        query = plus(self.line(family.output), (-1,))
        found = {plus(t, self.line(family.first), -1), plus(self.line(family.last), t, -1)}
        found |= {self.line(w) for f in self.families for w in f.where}
        found |= {self.line(w) for s in self.segments for w in s.where}
        spots: list[tuple[Line, int]] = [(query, 1), *((self.line(p), 1) for p in family.inputs)]
        for term in self.terms.values():
            key, b = key_line(term, query)
            spots.append((key, b))
            bounds = [(low, 1) for low in (term["low"],) if low] + [
                (high, -1) for high in (term["high"],) if high
            ]
            found |= {times(plus(query, spread(e), -1), s) for e, s in bounds}
            found |= {spread(e) for e in term["where"]}
            for form, value in term["unless"]:
                other = plus(times(query, form[0]), (-value, 0, *form[2:]))
                found.add(plus(times(other, b), times(key, form[1])))
        spots.append((t, 1))  # and any place of the answer, with its position as the variable
        begin: Line = (0,)
        for length in (*(self.line(segment.length) for segment in self.segments), (0,)):
            found |= {plus(key, times(begin, b), -1) for key, b in spots}
            begin = plus(begin, length)
        for (one, b), (other, c) in combinations(spots, 2):
            found.add(plus(times(one, c), times(other, b), -1))
        for key, b in spots:
            for writer in self.families:  # t' = (key / b - rest) / pace, between first and last
                rest, pace = self.line(writer.output), writer.output.t_factor
                rest = (rest[0], 0, *rest[2:])
                for end in (writer.first, writer.last):
                    found.add(
                        plus(plus(key, times(rest, b), -1), times(self.line(end), b * pace), -1)
                    )
        return {line for line in found if any(line[1:])}


class _Network:
    """The one-layer decoder in NumPy, float64, for one query."""

    def __init__(self, model):
        exact = model.double() if model.tokens.weight.dtype.itemsize == 8 else _doubled(model)
        self.weights = {k: v.numpy() for k, v in exact.state_dict().items()}
        self.embedding, block = exact.positions[0], exact.blocks[0]
        self.heads, self.post = block.attention.heads, block.norm == "post"
        self.epsilon = block.attention_norm.eps

    def bias(self, step: _Step):
        """Return the bias of all heads and keys of a step's query, [h k]."""
        import torch

        query = torch.tensor([step.query])
        scale = step.sizes if len(step.sizes) > 1 else step.sizes[0]
        bias = self.embedding.bias(query, torch.arange(step.query + 1), scale)
        return bias.detach().numpy()[:, 0]

    def added(self, step: _Step):
        """Return the vectors that the embedding adds at the places of a step, [p d] or 0."""
        vectors = self.weights.get("positions.0.segments.vectors")
        if vectors is None:
            return 0.0
        return vectors[[min(part, len(vectors) - 1) for part in step.parts]]

    def unlike(self, step: _Step) -> str:
        """Return where the embedding reads other keys than the relation says."""
        finite = np.isfinite(self.bias(step))
        for h, reads in enumerate(step.reads):
            told = sorted(step.places[p] for p, _ in reads)
            if np.flatnonzero(finite[h]).tolist() != told:
                return f"head {h + 1} reads other keys than the relation says at {step.sizes}"
        return ""

    def __call__(self, step: _Step, tokens):
        """Return the logits of tuples, [t v]."""
        w, bias = self.weights, self.bias(step)
        x = w["tokens.weight"][tokens] + self.added(step)  # t p d
        into = x if self.post else self.norm("blocks.0.attention_norm", x)
        q, k, v = np.split(into @ w["blocks.0.attention.project.weight"].T, 3, axis=-1)
        size = q.shape[-1] // self.heads
        out = []
        for h, reads in enumerate(step.reads):
            part, places = slice(h * size, (h + 1) * size), [p for p, _ in reads]
            score = np.einsum("td,tpd->tp", q[:, step.own, part], k[:, places, part])
            score = score / math.sqrt(size) + bias[h, [step.places[p] for p in places]]
            weight = np.exp(score - score.max(1, keepdims=True))
            weight /= weight.sum(1, keepdims=True)
            out.append(np.einsum("tp,tpd->td", weight, v[:, places, part]))
        x = x[:, step.own] + np.concatenate(out, 1) @ w["blocks.0.attention.out.weight"].T
        x = self.norm("blocks.0.attention_norm", x) if self.post else x
        x = x + self.mlp(x if self.post else self.norm("blocks.0.mlp_norm", x))
        x = self.norm("blocks.0.mlp_norm" if self.post else "norm", x)
        if "logits.weight" in w:
            return x @ w["logits.weight"].T
        return x @ w["tokens.weight"].T / math.sqrt(x.shape[1])

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + self.epsilon)
        return centred / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def mlp(self, x):
        w = self.weights
        hidden = x @ w["blocks.0.mlp.0.weight"].T + w["blocks.0.mlp.0.bias"]
        active = hidden * 0.5 * (1 + _erf(hidden / math.sqrt(2)))
        return active @ w["blocks.0.mlp.2.weight"].T + w["blocks.0.mlp.2.bias"]


def _doubled(model):
    import copy

    return copy.deepcopy(model).double().cpu().eval()


def _erf(x):
    return np.array([math.erf(v) for v in x.ravel()]).reshape(x.shape)


def at(line: Line, t: int, sizes) -> int:
    """Return the value of a form.

    >>> at((1, 2, 3), 10, (100,))
    321
    """
    return line[0] + line[1] * t + sum(c * n for c, n in zip(line[2:], sizes, strict=False))


def plus(a, b, factor: int = 1) -> Line:
    """Return a + factor b.

    >>> plus((1, 2), (0, 1, 1), -1)
    (1, 1, -1)
    """
    width = max(len(a), len(b))
    a, b = ((*x, *(0,) * (width - len(x))) for x in (a, b))
    return tuple(x + factor * y for x, y in zip(a, b, strict=True))


def times(a, factor: int) -> Line:
    return tuple(factor * x for x in a)


def spread(expression) -> Line:
    """Return an expression [constant, factors of sizes] of a certificate as a form, without t."""
    return expression[0], 0, *expression[1:]


def key_line(term, query: Line) -> tuple[Line, int]:
    """Return the form b j and b > 0, for the key j that a term names at a query."""
    a, b, *c = term["form"]
    line = plus((term["value"], 0, *(-x for x in c)), query, -a)  # = b j
    return (line, b) if b > 0 else (times(line, -1), -b)


def key_of(term, query: int, sizes) -> int:
    """Return the key that a term names at a query, -1 if none.

    >>> copied = {"form": [1, -1, -1], "value": 0, "low": [0, 1], "high": [-1, 2], "step": 1}
    >>> key_of(copied | {"where": [], "unless": []}, 7, (4,))
    3
    """

    def value(form, key):
        return form[0] * query + form[1] * key + sum(map(int.__mul__, form[2:], sizes))

    low, high = (e and at(spread(e), 0, sizes) for e in (term["low"], term["high"]))
    if term["low"] is not None and (query < low or (query - low) % term["step"]):
        return -1
    if term["high"] is not None and query > high:
        return -1
    if any(at(spread(e), 0, sizes) < 0 for e in term["where"]):
        return -1
    key, rest = divmod(term["value"] - value(term["form"], 0), term["form"][1])
    if rest or not 0 <= key <= query:
        return -1
    return -1 if any(value(form, key) == v for form, v in term["unless"]) else key


def extent(lines: set[Line], sizes: int) -> tuple[list[Fraction], list[int]]:
    """Return, size by size, the largest value at a corner of the cells, and in an edge's direction.

    A cell is bounded by forms that are at least 0, at least 1, or 0: so each form is also taken
    with its constant off by one. A corner is where as many forms as there are variables are 0; of
    parallel forms only the outermost matter, as a corner is linear in their constants.

    >>> extent({(0, 1, 0), (0, -1, 1), (-3, 0, 1)}, 1)  # 0 <= t <= n, n >= 3
    ([Fraction(4, 1)], [1])
    """
    constants: dict[Line, list[Fraction]] = {}
    for line in lines:
        first = next(c for c in line[1:] if c)
        common = math.gcd(*line[1:]) * (1 if first > 0 else -1)
        slope = tuple(c // common for c in line[1:])
        constants.setdefault(slope, []).extend(Fraction(line[0] + k, common) for k in (-1, 0, 1))
    corner, edge = [Fraction(1)] * sizes, [0] * sizes
    for chosen in combinations(constants, 1 + sizes):
        whole = _det(chosen)
        for k in range(sizes) if whole else ():
            value = Fraction(0)
            for row, slope in enumerate(chosen):  # Cramer's rule, expanded along the constants
                rest = _det(_without(chosen[:row] + chosen[row + 1 :], 1 + k))
                factor = Fraction((-1) ** (row + k) * rest, whole)
                value += max(factor * c for c in _ends(constants[slope]))
            corner[k] = max(corner[k], value)
    for chosen in combinations(constants, sizes):
        for k in range(sizes):
            edge[k] = max(edge[k], abs(_det(_without(chosen, 1 + k))))
    return corner, edge


def _ends(values):
    return min(values), max(values)


def _without(rows, column: int):
    return tuple((*row[:column], *row[column + 1 :]) for row in rows)


def _det(rows) -> int:
    """Return the determinant of a small matrix of whole numbers."""
    if len(rows) == 1:
        return rows[0][0]
    signed = enumerate(rows[0])
    return sum((-1) ** k * c * _det(_without(rows[1:], k)) for k, c in signed if c)
