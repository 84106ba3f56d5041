"""Signatures against brute force over all scales up to a bound, written without the package."""

import pytest

from lgcourse import tasks
from lgcourse.certify.cases import Case, CaseLimitError, explore
from lgcourse.certify.integers import System
from lgcourse.certify.signatures import (
    MalformedError,
    Setting,
    shape_at,
    signatures,
    uncovered,
)
from lgcourse.relations.affine import Affine, N, T
from lgcourse.relations.forms import Form, Term
from lgcourse.tasks.base import identity
from lgcourse.tasks.families import Family, Segment, family

ONE = ["copy", "reverse", "shift", "interleave", "parity-cot", "compare-cot", "successor"]
ONE += ["addition", "multiply-digit"]


def at(value, t, sizes):
    return value.constant + value.t_factor * t + sum(map(int.__mul__, value.factors, sizes))


def holds(term, i, j, sizes):
    def form(f, value):
        return f.a * i + f.b * j + sum(map(int.__mul__, f.factors, sizes)) == value

    if term.low is not None and (i < at(term.low, 0, sizes)):
        return False
    if term.low is not None and (i - at(term.low, 0, sizes)) % term.step:
        return False
    if term.high is not None and i > at(term.high, 0, sizes):
        return False
    if any(at(bound, 0, sizes) < 0 for bound in term.where):
        return False
    return form(term.form, term.value) and not any(form(f, v) for f, v in term.unless)


def plain_pattern(setting, number, t, sizes):
    """Return what a signature says of one step, by looking at every key."""
    fam = setting.families[number]
    line = []
    for k, segment in enumerate(setting.segments):
        if all(at(bound, 0, sizes) >= 0 for bound in segment.where):
            line += [k] * at(segment.length, 0, sizes)
    query = at(fam.output, t, sizes) - 1
    inputs = [at(value, t, sizes) for value in fam.inputs]
    reads = []
    for terms in setting.heads:
        row = {}
        for j in range(query + 1):
            kind = tuple(r for r, term in enumerate(terms) if holds(term, query, j, sizes))
            if kind or j == query:
                row[j] = kind
        reads.append(row)
    known = list(dict.fromkeys([*inputs, query]))
    others = sorted({j for row in reads for j in row} - set(known))
    names = {p: f"place {known.index(p)}" if p in known else "other" for p in [*known, *others]}
    described = tuple(
        tuple(sorted((names[j], line[j], kind) for j, kind in row.items())) for row in reads
    )
    same = tuple(tuple(sorted(h for h, row in enumerate(reads) if j in row)) for j in others)
    spots = tuple((names[p], line[p]) for p in [*inputs, query])
    return number, spots, described, tuple(sorted(same))


def own_pattern(setting, shape):
    """Return the same of a shape of the package."""
    known = list(dict.fromkeys([*shape.operands, shape.query]))
    others = [p for p in range(len(shape.places)) if p not in known]
    names = {p: f"place {known.index(p)}" if p in known else "other" for p in [*known, *others]}
    segment = [place.segment for place in shape.places]
    described = tuple(
        tuple(sorted((names[p], segment[p], kind) for p, kind in head)) for head in shape.reads
    )
    rows = [{p for p, _ in head} for head in shape.reads]
    same = tuple(tuple(sorted(h for h, row in enumerate(rows) if p in row)) for p in others)
    spots = tuple((names[p], segment[p]) for p in [*shape.operands, shape.query])
    return shape.family, spots, described, tuple(sorted(same))


def compare(setting, bound):
    """All steps of all scales up to a bound have the derived patterns, and these only."""
    met = {}
    scales = [(n,) for n in range(1, bound + 1)]
    if setting.sizes == 2:
        scales = [(n, m) for n in range(1, bound + 1) for m in range(1, bound + 1)]
    for sizes in scales:
        if setting.largest is not None and max(sizes) > setting.largest:
            continue
        for number, fam in enumerate(setting.families):
            if any(at(w, 0, sizes) < 0 for w in fam.where):
                continue
            for t in range(at(fam.first, 0, sizes), at(fam.last, 0, sizes) + 1, fam.step):
                pattern = plain_pattern(setting, number, t, sizes)
                step = (sum(sizes), sizes, t)
                met[pattern] = min(met.get(pattern, step), step)
    derived = {}
    for s in signatures(setting):
        sizes = s.scale if isinstance(s.scale, tuple) else (s.scale,)
        pattern, step = own_pattern(setting, s.shape), (sum(sizes), sizes, s.t)
        derived[pattern] = min(derived.get(pattern, step), step)
    assert derived == met


@pytest.mark.parametrize("name", ONE)
def test_ideal_relation_against_brute_force(name):
    task = tasks.get(name)
    many = name in ("copy", "reverse", "shift", "interleave")
    compare(Setting.of(task, [task.terms()]), 40 if many else 14)


def test_two_sizes_against_brute_force():
    task = tasks.get("addition-unequal")
    compare(Setting.of(task, [task.terms()]), 5)


def test_padded_layout_against_brute_force():
    task = tasks.get("addition-padded", width=5)
    compare(Setting.of(task, [task.terms()]), 8)


def test_heads_with_cells_that_come_and_go():
    task = tasks.get("shift")
    heads = [
        [Term(0, Form(1, -1, -1), 1), Term(1, Form(1, -1), 1)],
        [Term(0, Form(1, 1, -2), -1), Term(1, Form(1, -2, 0), 0)],
        [Term(0, Form(0, 1, -1), 0), Term(1, Form(0, 1), 2, unless=((Form(1, -1), 3),))],
        [],
    ]
    compare(Setting.of(task, heads), 16)


def test_guards_with_steps_and_where():
    task = tasks.get("interleave")
    heads = [
        [Term(0, Form(1, -1), 2, low=2 * N + 1, high=4 * N, step=3)],
        [Term(0, Form(1, -2), 0, where=(N - 7,)), Term(1, Form(1, -2), 1, where=(6 - N,))],
    ]
    compare(Setting.of(task, heads), 16)


def test_a_change_far_away_is_a_signature_of_its_own():
    task = tasks.get("copy")
    near = Term(0, Form(1, -1, -1), 0, low=N, high=2 * N - 1)
    far = Term(1, Form(1, -1, -1), 1, low=N + 1, high=2 * N - 1, where=(N - 100_000,))
    found = signatures(Setting.of(task, [[near, far]]))
    assert [(s.scale, s.t) for s in found] == [(1, 1), (2, 2), (100_000, 2)]


def test_shape_of_a_step_is_the_signature_it_belongs_to():
    task = tasks.get("addition")
    setting = Setting.of(task, [task.terms()])
    shape, positions = shape_at(setting, 1, 4, (9,))
    kinds = {s.shape.pattern: s for s in signatures(setting)}
    assert (kinds[shape.pattern].scale, kinds[shape.pattern].t) == (2, 2)
    assert positions == (3, 13, 2, 12, 22)


@pytest.mark.parametrize("name", [*ONE, "addition-unequal", "parity-cot-padded"])
def test_every_answer_token_is_written_once(name):
    assert uncovered(Setting.of(tasks.get(name), [])) is None


def setting_of(families):
    segments = [Segment("x", N, (0, 1)), Segment("=", Affine(1), (2,), start=None), Segment("y", N)]
    return Setting(tuple(segments), tuple(families), ((),))


def test_a_step_that_is_left_out_is_found():
    take = identity(2)
    for rows, words in {
        ((2, N),): "no step writes y1 at scale 1",
        ((1, N - 1),): "no step writes y1 at scale 1",
        ((1, Affine(999)),): "no step writes y1000 at scale 1000",
        ((1, N), (7, Affine(7))): "2 steps write y7 at scale 7",
    }.items():
        families = [family(take, N + T, [T - 1], first, last) for first, last in rows]
        if words.startswith("no step writes y1000"):
            families = [Family(take, N + T, (T - 1,), Affine(1), Affine(999))]
            # at scales below 999 it writes behind the end
            with pytest.raises(MalformedError):
                signatures(setting_of(families))
        if "2 steps" in words:
            families[1] = family(take, N + T, [T - 1], 7, 7, where=[N - 7])
        assert uncovered(setting_of(families)) == words


def test_an_operand_in_the_future_is_refused():
    with pytest.raises(MalformedError, match="future"):
        signatures(setting_of([family(identity(2), N + T, [N + T], 1, N)]))


def test_a_form_that_names_no_key_is_refused():
    task = tasks.get("copy")
    with pytest.raises(MalformedError, match="names no key"):
        signatures(Setting.of(task, [[Term(0, Form(1, 0, -1), 0)]]))


def test_cases_are_limited():
    region = System(positive=((0, 1), (19, -1)))

    def program(case: Case):
        return [case.not_negative((-k, 1)) for k in range(1, 20)]

    assert len(list(explore(program, region, 1))) == 20
    with pytest.raises(CaseLimitError):
        list(explore(program, region, 1, limit=10))
