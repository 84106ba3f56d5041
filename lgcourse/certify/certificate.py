"""Is a trained model exact at every scale? The theorem, its hypotheses checked, and the outcome.

Theorem. Let a one-layer decoder read, at each query, the query itself and the keys that finitely
many terms name, and let the bias depend on nothing else. If for every signature of steps, and every
tuple of tokens that such a step can meet, the arg-max of the logits is the circuit's output, then
the model is exact at every scale: by induction over the steps, each token that it writes is right,
so the next step meets a tuple that was checked.

What is assumed beside what is checked stands in `lgcourse.certify.admission`.

Neighbours. arXiv 2602.16473 checks C-RASP programs: a program is verified, not a trained network.
arXiv 2603.02238: for C-RASP with two layers no computable bound says up to which length a check
would do. The theorem asks for less: models that read finitely many named keys, in one layer.
"""

from __future__ import annotations

import copy
import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from lgcourse.certify import soft
from lgcourse.certify.admission import broken_promise, obstacle
from lgcourse.certify.agreement import compare_answers, unlike_circuit
from lgcourse.certify.cases import CaseLimitError
from lgcourse.certify.counterexample import Counterexample, realise, replay, shortest
from lgcourse.certify.parts import parts
from lgcourse.certify.rounding import StepBound
from lgcourse.certify.signatures import (
    MalformedError,
    Setting,
    Signature,
    signatures,
    uncovered,
)
from lgcourse.certify.steps import EvaluationError, Outcome, run_tuples
from lgcourse.certify.tuples import TupleLimitError, Tuples, tuples
from lgcourse.errors import InputError
from lgcourse.relations.base import sizes_of
from lgcourse.relations.forms import Term
from lgcourse.training.evaluation import right_tokens
from lgcourse.training.folder import write_aside
from lgcourse.training.runs import load_run, versions
from lgcourse.training.seeds import generator

LIMIT = 2_000_000  # tuples in all
TRIED = 12  # failing tuples of a signature that are searched for in whole instances
SAMPLED = (*range(1, 21), 30, 50, 100)  # sizes of the test where there is no proof
SAMPLES, HARD = 32, 8


@dataclass
class Certificate:
    """What is known of one trained model.

    Args:
        certified: whether it is proved exact at every scale of the task.
        verdict: ``"certified"``, ``"certified up to a scale"``, ``"wrong"`` (there is a
            counterexample), ``"tested, not certified"``, or ``"refused"``.
        signatures, tuples: how many kinds of steps there are, and tuples of tokens that were run.
        margin: smallest difference between the right logit and the best wrong one, in float64; 0
            where nothing was run.
        reason: in words.
        counterexample: an instance that the model gets wrong, in words.
        error: largest bound on what float32 rounding does to such a difference.
        scales: for which scales.
        sha256: hashes of the weights and of the relation.
        task, options: name and options of the task.
        relation: the terms of each head, as data.
        rows: one entry per signature.
        notes: what was over-approximated, and other remarks.
        leak: where other keys keep some attention: up to how many ``keys`` all is proved (None:
            every number), the ``largest`` scale that this makes, the number of ``ranges`` that were
            looked at, and for some numbers of keys the largest ``weight`` of all others in a head.
        samples: sequences that were tested, where there is no proof.
        seconds: time that it took.
        versions: what it was made with.
    """

    certified: bool
    verdict: str
    reason: str
    signatures: int = 0
    tuples: int = 0
    margin: float = 0.0
    counterexample: str | None = None
    error: float = 0.0
    scales: str = "every scale"
    sha256: dict[str, str] = field(default_factory=dict)
    task: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    relation: list[list[dict[str, Any]]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    leak: dict[str, Any] = field(default_factory=dict)
    samples: int = 0
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=versions)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return json.loads(json.dumps(asdict(self)))

    def lines(self) -> list[str]:
        """Return it as lines for people."""
        proved = self.certified or self.leak.get("largest")
        lines = [f"{self.task}: {self.verdict}" + (f", {self.scales}" if proved else "")]
        for row in self.rows:
            lines.append(
                f"  {row['operator']}, first at scale {row['scale']}: step {row['t']} reads "
                f"{' '.join(row['places'])}; {row['tuples']:,} tuples, margin {row['margin']:.3f}, "
                f"rounding at most {row['error']:.3f}"
            )
        if self.tuples:
            lines.append(
                f"{self.signatures} signatures, {self.tuples:,} tuples, smallest margin "
                f"{self.margin:.3f}, rounding bound {self.error:.3f}"
            )
        if self.leak:
            shares = [f"{keys}: {share:.2g}" for keys, share in self.leak["weight"].items()]
            lines.append(f"largest weight of other keys, by number of keys: {', '.join(shares)}")
        lines.append(f"because {self.reason}")
        if self.counterexample is not None:
            text = self.counterexample  # whole in the JSON, where it can be replayed
            lines.append(f"counterexample: {text if len(text) <= 400 else text[:397] + '...'}")
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"sha256 of the {what}: {digest}" for what, digest in self.sha256.items()]
        return lines

    def write(self, path: str | Path) -> None:
        """Write it into a JSON file, whole or not at all."""
        data = json.dumps(self.to_json(), indent=1) + "\n"
        write_aside(Path(path), data.encode())

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """Read a file that `write` made.

        Raises:
            InputError: it is no such file.
        """
        try:
            return cls(**json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise InputError(f"'{path}' is no certificate: {error}") from error


def certify(
    model: Any, task: Any, limit: int = LIMIT, options: dict[str, Any] | None = None
) -> Certificate:
    """Prove that a model is exact at every scale of a task, or say why that fails.

    Args:
        model: a trained `Transformer`.
        task: its task.
        limit: largest number of tuples; with more the verdict is "tested, not certified".
        options: options of the task, to be noted.

    Returns:
        A `Certificate`.

    >>> from lgcourse import Transformer, embeddings, tasks
    >>> copy = tasks.get("copy")
    >>> pe = embeddings.build("rpe", copy, width=16, heads=2, positions=9)
    >>> certify(Transformer(11, pe, 1, 16, 2), copy).verdict
    'refused'
    """
    return examine(model, task, limit, options).certificate


@dataclass
class Examination:
    """A certificate, and what was found on the way to it."""

    certificate: Certificate
    setting: Setting | None = None
    found: list[tuple[Signature, Tuples, Outcome]] = field(default_factory=list)
    wrong: Counterexample | None = None


def examine(
    model: Any, task: Any, limit: int = LIMIT, options: dict[str, Any] | None = None
) -> Examination:
    """Return the certificate of a model with all tuples and answers, see `certify`."""
    start = time.perf_counter()
    whole = Examination(Certificate(False, "refused", "", task=task.name, options=options or {}))
    made = whole.certificate
    was_training = getattr(model, "training", False)
    try:
        hard = soft.hardened(model)
        made.reason = obstacle(hard or model, task) or ""
        if not made.reason:
            model.eval()
            on_cpu = next(model.parameters()).device.type == "cpu"
            _examine(model if on_cpu else copy.deepcopy(model).cpu(), task, limit, whole)
    except (MalformedError, EvaluationError) as error:
        made.verdict, made.reason = "refused", str(error)
    except (CaseLimitError, TupleLimitError) as error:
        _test(model, task, made, f"{error}; the limit is {limit:,}")
    finally:
        if was_training:
            model.train()
    made.seconds = round(time.perf_counter() - start, 2)
    return whole


def _examine(model, task, limit: int, whole: Examination) -> None:
    """Check the hypotheses of the theorem one after the other."""
    made = whole.certificate
    twin = soft.hardened(model)
    terms = (twin or model).embedding.named_terms()
    made.relation = [[term_data(term) for term in head] for head in terms]
    made.sha256 = {"weights": weights_hash(model), "relation": data_hash(made.relation)}
    layers = len(model.blocks) * model.loops
    if layers != 1:
        why = f"the model applies {layers} layers, and only one layer is enumerated"
        return _test(model, task, made, why)
    count = model.blocks[0].attention.heads
    heads = [terms[h % len(terms)] for h in range(count)]
    setting = whole.setting = Setting.of(task, heads)
    if setting.largest is not None:
        made.scales = f"every scale up to {setting.largest}, the width of the layout"
    embedding = copy.deepcopy(twin or model).double().cpu().embedding
    compared = compare_answers(task)
    made.reason = (
        unlike_circuit(task)
        or compared.wrong
        or uncovered(setting)
        or broken_promise(embedding, heads, task)
        or (twin and soft.unlike_soft(model, twin, task))
        or ""
    )
    if made.reason:
        return
    made.notes += compared.notes
    kinds = signatures(setting)
    made.signatures = len(kinds)
    tables, left = [], limit
    for kind in kinds:
        tables.append(tuples(setting, kind.shape, left))
        left -= len(tables[-1].tokens)
    if twin is not None:
        whole.setting = None  # no finite table
        return _conclude_soft(model, task, setting, made, list(zip(kinds, tables, strict=True)))
    whole.found = list(_run(model, task, setting, kinds, tables))
    _conclude(model, task, setting, whole)


def _run(model, task, setting, kinds, tables) -> Iterator[tuple[Signature, Tuples, Outcome]]:
    exact = copy.deepcopy(model).double().cpu()
    bound = StepBound(exact, parts(setting, exact.embedding))
    for kind, table in zip(kinds, tables, strict=True):
        yield kind, table, run_tuples(exact, task, setting, kind, table, bound)


def _conclude(model, task, setting: Setting, whole: Examination) -> None:
    made = whole.certificate
    for kind, table, outcome in whole.found:
        made.rows.append(_row(task, setting, kind, table, outcome))
        if outcome.real < outcome.tuples:
            made.notes.append(
                f"scale {made.rows[-1]['scale']}, step {kind.t}: the model itself ran on "
                f"{outcome.real:,} of {outcome.tuples:,} tuples, its equations on all"
            )
        loose = [made.rows[-1]["places"][place] for place in table.loose]
        if loose:
            made.notes.append(
                f"over-approximated at scale {made.rows[-1]['scale']}, step {kind.t}: the tokens "
                f"of {', '.join(loose)}"
            )
    outcomes = [outcome for *_, outcome in whole.found]
    made.tuples = sum(outcome.tuples for outcome in outcomes)
    made.margin = min(outcome.margin for outcome in outcomes)
    made.error = max(outcome.error for outcome in outcomes)
    if made.margin > made.error:
        made.certified, made.verdict = True, "certified"
        made.reason = (
            "on every tuple of every signature the right logit is largest, by more than float32 "
            "rounding can change"
        )
        return
    found = whole.wrong = _first_wrong(model, task, setting, whole.found)
    if found is not None:
        made.verdict, made.reason = "wrong", "a step answers wrongly on a tuple of tokens"
        made.counterexample = found.text(task)
        return
    made.verdict = "refused"
    if made.margin > 0:
        made.reason = (
            f"the smallest margin, {made.margin:.3g}, does not cover what float32 rounding can "
            f"change, {made.error:.3g}"
        )
    else:
        made.reason = (
            "a step answers wrongly on a tuple of tokens, but no instance was found that leads to "
            "it: the tuple may be one that only the over-approximation allows"
        )


def _conclude_soft(model, task, setting: Setting, made: Certificate, steps) -> None:
    """Cover the lengths of each signature by ranges, see `lgcourse.certify.soft`."""
    exact = copy.deepcopy(model).double().cpu()
    bound, marks = soft.prepare(exact, setting)
    size = setting.largest
    keys = float("inf") if size is None else float(task.length(task.scale_of(size)))
    wanted, weight = keys, dict[int, float]()
    looked, open_ = 0, []
    for kind, table in sorted(steps, key=lambda step: len(step[1].tokens)):
        ids, more = soft.known_keys(setting, exact.embedding.relation, kind, marks)
        soft.compare_with_model(exact, task, setting, bound, ids, more, kind, table)
        left = soft.CELLS - looked
        found = soft.reach(bound, ids, more, kind, table, keys, left)
        looked, keys = looked + found.cells, min(keys, found.keys)
        open_ += [(kind, tuple(table.tokens[r].tolist()), at) for r, at in found.open]
        weight |= {k: max(share, weight.get(k, 0.0)) for k, share in found.share.items()}
        if found.margin < float("inf"):
            outcome = Outcome(len(table.tokens), 0, found.margin, found.error, table.expected, [])
            made.rows.append(_row(task, setting, kind, table, outcome))
            made.tuples += len(table.tokens)
    if made.rows:
        least = min(made.rows, key=lambda row: row["margin"] - row["error"])
        made.margin, made.error = least["margin"], least["error"]
    every = keys >= wanted
    largest = 0 if every else soft.largest_scale(task, keys)
    made.leak = {"keys": None if every else int(keys), "largest": None if every else largest}
    made.leak |= {"ranges": looked, "weight": {str(k): weight[k] for k in sorted(weight)}}
    if every:
        made.certified, made.verdict = True, "certified"
        made.reason = (
            "for every number of keys, and whatever the other keys hold, the right logit stays "
            "largest, by more than float32 rounding can change"
        )
        made.notes.append("beyond 2^24 keys, rounding is counted as if there were 2^24")
        return
    _not_at_every_length(model, task, setting, made, bound, open_)


def _not_at_every_length(model, task, setting, made: Certificate, bound, open_) -> None:
    largest, keys = made.leak["largest"], made.leak["keys"]
    open_ = sorted(open_, key=lambda one: one[2])
    found = shortest(model, task, setting) or soft.attack(model, task, setting, bound, open_)
    upto = f"with {keys + 1:,} keys, the margin of a step is not shown to cover the leak"
    made.scales = f"every scale up to {largest:,}"
    if found is not None:
        made.verdict, made.counterexample = "wrong", found.text(task)
        made.reason = f"{upto}; and at scale {found.scale} an instance is answered wrongly"
    elif largest:
        made.verdict, made.reason = "certified up to a scale", upto
    else:
        _test(model, task, made, upto)


def _first_wrong(model, task, setting, found) -> Counterexample | None:
    """Return an instance that the model gets wrong, or None where none was found."""
    if not any(outcome.failing for *_, outcome in found):
        return None
    short = shortest(model, task, setting)
    if short is not None:
        return short
    for kind, table, outcome in found:
        worst = outcome.failing
        chosen = worst[:TRIED] + worst[TRIED :: max(1, len(worst) // TRIED)]
        for row in chosen:
            values = tuple(table.tokens[row].tolist())
            instance = realise(model, task, setting, kind, values)
            if instance is not None:
                return instance
    return None


def _test(model, task, made: Certificate, why: str) -> None:
    """Test a model on samples where there is no proof."""
    made.verdict, made.certified = "tested, not certified", False
    source = generator(0, "certify")
    for size in SAMPLED:
        scale = task.scale_of(size)
        if not task.has_scale(scale):
            continue
        batches = [task.sample(scale, SAMPLES, source), task.hard(scale, HARD, source)]
        for batch in batches:
            if batch is None:
                continue
            made.samples += len(batch.tokens)
            wrong = (~right_tokens(model, batch).all(1)).nonzero()[:, 0]
            if len(wrong):
                prompt = batch.tokens[wrong[0], : task.prompt_length(scale)]
                found = replay(model, task, prompt, scale)
                if found is not None:
                    made.verdict, made.reason = "wrong", f"{why}; a sample is answered wrongly"
                    made.counterexample = found.text(task)
                    return
    made.reason = f"{why}; right on {made.samples} samples of scales up to {max(SAMPLED)}"


def certify_run(path: str | Path, limit: int = LIMIT) -> Certificate:
    """Return the certificate of a run folder that training made.

    Raises:
        InputError: the folder is no finished run.
    """
    run = load_run(path)
    return certify(run.model, run.task, limit, dict(run.settings.task_options))


def _row(task, setting: Setting, kind: Signature, table: Tuples, outcome: Outcome):
    """Return what is stored of a signature."""
    names = task.layout(kind.scale)
    return {
        "operator": setting.families[kind.shape.family].operator.name,
        "scale": "x".join(map(str, sizes_of(kind.scale))),
        "t": kind.t,
        "places": [names[p] for p in kind.positions],
        "operands": list(kind.shape.operands),
        "query": kind.shape.query,
        "reads": [[place for place, _ in head] for head in kind.shape.reads],
        "over_approximated": list(table.loose),
        "tuples": outcome.tuples,
        "margin": outcome.margin,
        "error": outcome.error,
    }


def term_data(term: Term) -> dict[str, Any]:
    """Return a term as plain data; an expression is [constant, factor of n1, factor of n2, ...].

    >>> from lgcourse import tasks
    >>> term_data(tasks.get("copy").terms()[0])["form"]
    [1, -1, -1]
    """

    def expression(value):
        return None if value is None else [value.constant, *value.factors]

    return {
        "form": [term.form.a, term.form.b, *term.form.factors],
        "value": term.value,
        "low": expression(term.low),
        "high": expression(term.high),
        "step": term.step,
        "where": [expression(bound) for bound in term.where],
        "unless": [[[form.a, form.b, *form.factors], value] for form, value in term.unless],
    }


def weights_hash(model: torch.nn.Module) -> str:
    """Return the SHA-256 of all weights and buffers: names, types, shapes, bytes."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        value = value.detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {list(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def data_hash(data: Any) -> str:
    """Return the SHA-256 of plain data.

    >>> data_hash([])[:8]
    '4f53cda1'
    """
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
