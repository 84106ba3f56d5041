"""Soft certificates against brute force: fillings of other keys, hill-climbed, at every length."""

import copy
import math

import pytest
import torch

from lgcourse import Transformer, embeddings, tasks
from lgcourse.certify import certify, leak, soft
from lgcourse.certify.certificate import Certificate, examine
from lgcourse.certify.checker import check_model
from lgcourse.certify.leak import Cells, lines_around_gelu, log_psi
from lgcourse.certify.program import program
from lgcourse.certify.signatures import Setting, shape_at, signatures
from lgcourse.certify.tuples import tuples
from lgcourse.errors import InputError
from lgcourse.training import Settings, build_model, fit

INF = float("inf")


@pytest.fixture(scope="module")
def trained():
    """Return a function: the name of a task -> the task and a copy of a soft model of it."""
    kept = {}

    def get(name, steps=300):
        if name not in kept:
            settings = Settings(name, "ideal-sh", width=16, heads=2, steps=steps, other="soft")
            settings, task, model = build_model(settings)
            fit(model, task, range(1, 11), settings.steps, seed=0, device="cpu")
            kept[name] = task, model.eval()
        task, model = kept[name]
        return task, copy.deepcopy(model)

    return get


def leaking(model, c):
    """Let the weight of one other key, relative to the operand, be (L + 1)^c in every head."""
    with torch.no_grad():
        model.embedding.table[:, 1] = model.embedding.table[:, 0] + c / 8
    return model


def worst_filling(model, task, scale, t, source, rounds=2):
    """Return the smallest margin that hill-climbing over free keys and tuples finds at one step.

    Written without the package's bound: places are filled, the model runs on whole sequences.
    """
    setting = Setting.of(task, [task.terms()] * model.blocks[0].attention.heads)
    (shape, positions) = shape_at(setting, 0, t, (scale,))
    table = tuples(setting, shape, 10_000)
    query = positions[shape.query]
    free = [p for p in range(query + 1) if p not in positions and p != scale]  # "=" at n
    digits = torch.tensor(sorted(setting.segments[0].tokens))
    base = task.sample(scale, 1, source).tokens[0, : query + 1]

    def margins(lines, expected):
        logits = model(lines, scale)[:, -1]
        right = logits.gather(1, expected[:, None])
        return (right - logits.scatter(1, expected[:, None], -INF)).amin(1)

    lines = base.repeat(len(table.tokens) * len(digits), 1)
    if free:
        lines[:, free] = digits.repeat(len(table.tokens))[:, None]
    tokens = table.tokens.repeat_interleave(len(digits), 0)
    expected = table.expected.repeat_interleave(len(digits), 0)
    lines[:, list(positions)] = tokens
    with torch.no_grad():
        found = margins(lines, expected)
        best = int(found.argmin())
        line, right, least = lines[best].clone(), expected[best : best + 1], found[best]
        for place in free * rounds:
            changed = line.repeat(len(digits), 1)
            changed[:, place] = digits
            values = margins(changed, right.expand(len(digits)))
            if values.min() < least:
                least, line = values.min(), changed[values.argmin()]
    return float(least)


def scale_and_steps(keys):
    """Yield (scale, t) of copy whose query sees so many keys: n + t = keys, t <= n."""
    scales = [n for n in range(1, keys) if 1 <= keys - n <= n]
    return [(n, keys - n) for n in dict.fromkeys([scales[0], scales[-1]])] if scales else []


@pytest.mark.parametrize("c", [-4.0, -3.0])
def test_no_filling_flips_a_step_up_to_the_stated_bound(trained, c):
    task, model = trained("copy")
    model = leaking(model, c)
    made = certify(model, task)
    keys = made.leak["keys"] or 11
    assert keys >= 4, "too conservative to test"
    exact, source = copy.deepcopy(model).double(), torch.Generator().manual_seed(0)
    for count in range(2, min(keys, 11) + 1):
        for scale, t in scale_and_steps(count):
            least = worst_filling(exact, task, scale, t, source)
            assert least >= made.margin - made.error, (count, scale, t)


def test_a_leak_that_grows_is_bounded_and_then_breaks(trained):
    task, model = trained("copy")
    model = leaking(model, -0.7)  # other keys win in the end
    made = certify(model, task)
    assert not made.certified and made.leak["largest"] is not None and made.leak["keys"] < 10_000
    exact, source = copy.deepcopy(model).double(), torch.Generator().manual_seed(0)
    for count in range(2, min(made.leak["keys"], 8) + 1):
        for scale, t in scale_and_steps(count):
            assert worst_filling(exact, task, scale, t, source) > 0
    assert worst_filling(exact, task, 300, 2, source, rounds=0) < 0


@torch.no_grad()
def true_least(model, setting, kind, table, count, source, draws=40):
    """Return the least margin of drawn fillings, from the equations, many keys at once."""
    block, table_ = model.blocks[0], model.embedding.table
    heads = block.attention.heads
    relation = model.embedding.relation
    digits = torch.tensor(sorted({v for s in setting.segments for v in s.tokens if not s.written}))
    digits = digits[digits < 10]
    standing = {place.segment for place in kind.shape.places}
    rest = [s for k, s in enumerate(setting.segments) if k not in standing]
    marks = [s.tokens[0] for s in rest if len(s.tokens) == 1]
    least = INF
    for _ in range(draws):
        row = int(torch.randint(len(table.tokens), (), generator=source))
        tokens, expected = table.tokens[row], int(table.expected[row])
        m = count - len(tokens) - len(marks)
        few = digits[torch.randint(len(digits), (2,), generator=source)]
        split = int(torch.randint(m + 1, (), generator=source)) if m else 0
        others = [int(few[0])] * split + [int(few[1])] * (m - split)
        every = torch.tensor([*tokens.tolist(), *marks, *others])
        x = model.tokens(every)
        q, k, v = block.attention.project(block.attention_norm(x)).chunk(3, -1)
        out = []
        for h in range(heads):
            ids = torch.full((len(every),), relation.other)
            for place, numbers in kind.shape.reads[h]:
                if numbers:
                    ids[place] = setting.heads[h][numbers[0]].id
            d = q.shape[-1] // heads
            part = slice(h * d, (h + 1) * d)
            score = q[kind.shape.query, part] @ k[:, part].T / math.sqrt(d)
            score = score + 8 * math.log(count + 1) * table_[h, ids]
            out.append(torch.softmax(score, 0) @ v[:, part])
        y = x[kind.shape.query] + block.attention.out(torch.cat(out))
        y = y + block.mlp(block.mlp_norm(y))
        logits = model.logits(model.norm(y))
        rest = torch.cat([logits[:expected], logits[expected + 1 :]])
        least = min(least, float(logits[expected] - rest.max()))
    return least


def bounded(model, setting, kind, table, low, high):
    bound, marks = soft.prepare(model, setting)
    ids, more = soft.known_keys(setting, model.embedding.relation, kind, marks)
    known = torch.cat([table.tokens, more.expand(len(table.tokens), -1)], 1)
    one = torch.ones(len(known)).double()
    cells = Cells(table.tokens[:, kind.shape.query], known, table.expected, low * one, high * one)
    value, error, _ = bound(cells, ids)
    return float(value.min()), error


@pytest.mark.parametrize("name", ["copy", "shift", "addition", "parity-cot"])
@pytest.mark.parametrize("size", [0.7, 1.5])
def test_the_bound_lies_below_every_margin_of_models_with_random_weights(name, size):
    task = tasks.get(name)
    torch.manual_seed(3)
    pe = embeddings.build("ideal-sh", task, width=12, heads=3, other="soft")
    model = Transformer(len(task.vocabulary), pe, 1, 12, 3).double().eval()
    with torch.no_grad():
        pe.table.normal_(std=0.1)
        for parameter in model.blocks.parameters():
            parameter.add_(size * 0.1 * torch.randn_like(parameter))
    setting = Setting.of(task, [pe.relation.terms()] * 3)
    source = torch.Generator().manual_seed(1)
    for kind in signatures(setting):
        table = tuples(setting, kind.shape, 100_000)
        some = torch.randperm(len(table.tokens), generator=source)[:200]
        table = type(table)(table.tokens[some], table.expected[some])
        for low, high in ((kind.fewest,) * 2, (20, 20), (20, 24), (300, 900)):
            if low < kind.fewest:
                continue
            value, _ = bounded(model, setting, kind, table, low, high)
            for count in {low, (low + high) // 2, high}:
                assert value <= true_least(model, setting, kind, table, count, source) + 1e-9


def no_count(c, fixed, low, high):
    """Forget how many other keys there are: psi = (L + 1)^c."""
    return tuple(c * torch.log(length + 1) for length in (low, high))


def no_factor(c, fixed, low, high):
    """Forget that the factor grows with the length: that of 4,000 keys for all."""
    return log_psi(c, fixed, low * 0 + 4000, high * 0 + 4000)


@pytest.mark.parametrize(
    ("wrong", "count", "rates"),
    [(no_count, 400, [-0.75, -0.9]), (no_factor, 6, [-0.9, -1.2, -1.5, -1.8])],
)
def test_known_wrong_bounds_are_caught(trained, monkeypatch, wrong, count, rates):
    caught = []
    for c in rates:
        task, model = trained("copy")
        model = leaking(model, c).double()
        setting = Setting.of(task, [model.embedding.relation.terms()] * 2)
        kind = signatures(setting)[-1]
        full = tuples(setting, kind.shape, 1000)
        source = torch.Generator().manual_seed(2)
        least = true_least(model, setting, kind, full, count, source, draws=150)
        assert bounded(model, setting, kind, full, count, count)[0] <= least
        with monkeypatch.context() as patched:
            patched.setattr(leak, "log_psi", wrong)
            value, error = bounded(model, setting, kind, full, count, count)
            caught.append(value > float(error.max()) and least < 0)
    assert any(caught), "the wrong bound certifies nothing that is wrong: choose harder models"


@pytest.mark.parametrize("c", [-2.2, -1.5, -1.0, -0.4, 0.0, 0.7])
@pytest.mark.parametrize("fixed", [2, 5])
def test_the_range_of_psi_holds_every_value(c, fixed):
    for low, high in ((fixed, 9), (6, 6), (7, 60), (9, 4000)):
        ends = (torch.tensor([float(v)]).double() for v in (low, high))
        least, most = log_psi(c, fixed, *ends)
        values = [(n - fixed) * (n + 1) ** c for n in range(low, high + 1)]
        assert math.exp(least) <= min(values) and max(values) <= math.exp(most)
        assert math.exp(most) <= 1.02 * max(values) + 1e-9 or high > 9
    far = log_psi(c, fixed, torch.tensor([50.0]).double(), torch.tensor([INF]).double())
    assert (math.exp(far[1]) == INF) == (c > -1)


def test_lines_around_gelu_hold_it():
    source = torch.Generator().manual_seed(0)
    low = 8 * torch.rand(400, generator=source).double() - 5
    high = low + 4 * torch.rand(400, generator=source).double()
    lines = lines_around_gelu(low, high)
    z = low + (high - low) * torch.linspace(0, 1, 999).double()[:, None]
    y = torch.nn.functional.gelu(z)
    assert bool(
        (lines.slope * z + lines.least <= y).all() & (y <= lines.slope * z + lines.most).all()
    )
    assert bool((lines.low <= y).all() & (y <= lines.high).all())
    assert float((lines.most - lines.least).max()) < 2


def test_float32_stays_within_the_bound_on_rounding(trained):
    task, model = trained("copy")
    exact = copy.deepcopy(model).double()
    setting = Setting.of(task, [model.embedding.relation.terms()] * 2)
    kind = signatures(setting)[-1]
    table = tuples(setting, kind.shape, 1000)
    source = torch.Generator().manual_seed(4)
    for scale in (2, 9, 120, 3000):
        query = 2 * scale - 1
        line = task.sample(scale, 24, source).tokens[:, : query + 1]
        with torch.no_grad():
            one, two = (m(line, scale, last=1)[:, -1].double() for m in (model, exact))
        worst = ((one[:, :, None] - one[:, None]) - (two[:, :, None] - two[:, None])).abs().max()
        _, error = bounded(exact, setting, kind, table, 2 * scale, 2 * scale)
        assert 0 < float(worst) <= float(error.min())


def test_what_a_soft_certificate_says_and_who_refuses_it(trained, tmp_path):
    task, model = trained("copy")
    made = certify(leaking(model, -4.0), task)
    assert made.certified and made.verdict == "certified" and made.scales == "every scale"
    assert made.leak["keys"] is None and made.leak["ranges"] > 110
    assert list(made.leak["weight"]) == ["8", "32", "128", "512", "2048"]
    assert made.margin > made.error > 0
    made.write(tmp_path / "soft.json")
    assert Certificate.read(tmp_path / "soft.json") == made
    report = check_model(made.to_json(), model, task)
    assert not report["holds"] and "other keys" in report["reason"]
    with pytest.raises(InputError, match="no finite table"):
        program(examine(model, task), task, model.embedding)


def test_sabotaged_soft_models_get_no_false_certificate(trained, judge):
    task, model = trained("copy")
    model = leaking(model, -4.0)
    for seed in range(3):
        source = torch.Generator().manual_seed(seed)
        broken = copy.deepcopy(model)
        matrices = [p for p in broken.parameters() if p.ndim == 2]
        with torch.no_grad():
            weight = matrices[int(torch.randint(len(matrices), (), generator=source))]
            weight.view(-1)[weight.abs().flatten().topk(3).indices] *= -2
        made = certify(broken, task)
        if made.certified:
            assert judge(broken, task) is None
        elif made.leak.get("largest"):
            scales = range(1, min(50, made.leak["largest"]) + 1)
            assert judge(broken, task, scales) is None
        else:
            assert made.reason


def test_a_padded_layout_whose_leak_is_too_large_is_not_proved():
    settings = Settings(
        "parity-cot-padded", "ideal", width=16, heads=2, steps=300, other="soft",
        test_scales=(12,), task_options={"width": 12},
    )  # fmt: skip
    settings, task, model = build_model(settings)
    fit(model, task, range(1, 11), settings.steps, seed=0, device="cpu")
    table = model.embedding.table
    with torch.no_grad():  # all ids are nearly as strong as the strongest
        table[:] = table[:, :-1].amax(1, keepdim=True)
        table[:, -1] -= 0.3 / 8
    made = certify(model.eval(), task)
    assert not made.certified and made.leak["keys"] < task.length(12)


def test_a_bias_that_is_not_the_relations_is_refused(trained):
    task, model = trained("copy")
    usual = type(model.embedding.relation).at

    class Lying(type(model.embedding.relation)):
        def at(self, query, key, scale=None):
            return usual(self, query, key, 3 if scale == 40 else scale)

    model.embedding.relation.__class__ = Lying
    assert certify(model, task).verdict == "refused"
    task, model = trained("copy")
    model.embedding.bias = lambda *a, **k: None
    assert certify(model, task).verdict == "refused"


def test_post_norm_and_two_layers_get_no_soft_certificate():
    for options in ({"norm": "post"}, {"layers": 2}):
        settings = Settings("copy", "ideal-sh", width=16, heads=2, steps=2, other="soft", **options)
        _, task, model = build_model(settings)
        made = certify(model, task)
        assert not made.certified and made.reason
