"""No sabotaged model gets a false certificate: certified, and yet wrong at some scale.

The judge replays scales 1..50, 1,000 and 1,001 with samples and hard samples. Where there is no
certificate, a counterexample that replays wrongly or a reason is shown.
"""

import copy
from dataclasses import replace

import pytest
import torch

from lgcourse import Transformer, embeddings, tasks
from lgcourse.certify import certify
from lgcourse.embeddings.table import RelationTable
from lgcourse.relations.affine import Affine, N
from lgcourse.relations.forms import Form, Term
from lgcourse.relations.terms import TermRelation
from lgcourse.tasks.circuit import Operator

CASES = {}


def case(*parameters):
    def add(make):
        for p in parameters or [None]:
            CASES[make.__name__ + ("" if p is None else f" {p}")] = (make, p)
        return make

    return add


def with_terms(model, change):
    """Return the model with another relation of the same roles; ``change`` maps its terms."""
    table = model.embedding
    terms = [replace(t, id=role) for t in table.relation.terms() for role in [t.id]]
    relation = TermRelation(change(terms), "changed", roles=range(table.relation.other))
    assert relation.size == table.relation.size
    new = RelationTable(relation, len(table.table), other="excluded")
    new.load_state_dict(table.state_dict())
    model.positions[0] = new
    return model


# --- weights ------------------------------------------------------------------------------------
@case(*range(5))
def flipped_weight_of_parity(models, number):
    task, model = models("parity-cot")
    flip(model, number)
    return task, model


@case(*range(3))
def flipped_weight_of_copy(models, number):
    task, model = models("copy")
    flip(model, number)
    return task, model


@case(*range(2))
def flipped_weight_of_addition(models, number):
    task, model = models("addition")
    flip(model, number)
    return task, model


def flip(model, number):
    """Turn the sign of a large weight of a matrix."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    source = torch.Generator().manual_seed(number)
    weight = matrices[int(torch.randint(len(matrices), (), generator=source))]
    with torch.no_grad():
        largest = weight.abs().flatten().topk(5).indices
        weight.view(-1)[largest[: 1 + number % 5]] *= -1 - number


@case("nan", "inf", "-inf")
def weight_not_finite(models, value):
    task, model = models("copy")
    with torch.no_grad():
        model.blocks[0].mlp[0].weight[3, 2] = float(value)
    return task, model


@case("nan", "-inf")
def relation_table_not_finite(models, value):
    task, model = models("copy")
    with torch.no_grad():
        model.embedding.table[0, 0] = float(value)
    return task, model


@case()
def wrong_entry_of_the_relation_table(models, _):
    task, model = models("parity-cot")
    with torch.no_grad():
        model.embedding.table[:] = -model.embedding.table.roll(1, dims=1) - 1
    return task, model


@case()
def half_precision(models, _):
    task, model = models("copy")
    return task, model.bfloat16()


@case()
def one_wrong_digit_of_addition(models, _):
    task, model = models("addition")  # 9 is written as 8, always
    with torch.no_grad():
        model.logits.weight[[8, 9]] = model.logits.weight[[9, 8]]
    return task, model


@case()
def almost_a_tie(models, _):
    task, model = models("copy")
    with torch.no_grad():  # tokens 3 and 4 are told apart by little more than rounding
        rows = model.logits.weight
        middle, half = (rows[3] + rows[4]) / 2, (rows[3] - rows[4]) / 2
        rows[3], rows[4] = middle + 1e-5 * half, middle - 1e-5 * half
    return task, model


@case()
def error_only_from_scale_5_on(models, _):
    task, model = models("counting")
    with torch.no_grad():  # token 5 is first written at scale 5
        model.tokens.weight[5] = model.tokens.weight[0]
    return task, model


# --- relations ----------------------------------------------------------------------------------
@case(*range(3))
def relation_off_by_one(models, number):
    task, model = models(["copy", "parity-cot", "shift"][number])

    def change(terms):
        moved = number % 2 * 2 - 1
        return [replace(terms[-1], value=terms[-1].value + moved), *terms[:-1]]

    return task, with_terms(model, change)


@case("copy", "parity-cot", "shift")
def first_step_left_out(models, name):
    task, model = models(name)
    return task, with_terms(
        model, lambda terms: [replace(terms[0], low=terms[0].low + 1), *terms[1:]]
    )


@case("copy", "parity-cot", "shift", "addition")
def last_step_left_out(models, name):
    task, model = models(name)
    return task, with_terms(
        model, lambda terms: [*terms[:-1], replace(terms[-1], high=terms[-1].high - 1)]
    )


@case(1000, 1001)
def operand_lost_from_a_scale_on(models, size):
    task, model = models("copy")
    return task, with_terms(
        model, lambda terms: [replace(t, where=(*t.where, size - 1 - N)) for t in terms]
    )


@case()
def other_operand_from_scale_1000_on(models, _):
    task, model = models("copy")

    def change(terms):
        (near,) = terms
        far = replace(near, value=near.value - 1, where=(N - 1000,))
        return [replace(near, where=(999 - N,)), far]

    return task, with_terms(model, change)


@case()
def other_operand_at_queries_from_1500_on(models, _):
    task, model = models("copy")

    def change(terms):
        (near,) = terms
        far = replace(near, value=near.value - 1, low=near.low + 700)
        return [replace(near, high=near.low + 699), far]

    return task, with_terms(model, change)


@case()
def one_query_in_seven_left_out(models, _):
    task, model = models("copy")
    return task, with_terms(
        model,
        lambda terms: [replace(terms[0], low=terms[0].low + k, step=7) for k in range(6)],
    )


@case()
def guards_that_overlap(models, _):
    task, model = models("copy")  # the dense path reads both keys, the gathered one the later

    def change(terms):
        return [*terms, replace(terms[0], value=1, low=Affine(4))]

    return task, with_terms(model, change)


@case()
def terms_that_lie_about_scale_1000(models, _):
    task, model = models("copy")
    honest = model.embedding.relation

    class Lying(TermRelation):
        def at(self, query, key, scale=None):
            return super().at(query, key, 999 if scale == 1000 else scale)

    lying = Lying(honest.terms(), "lying")
    model.positions[0].relation = lying
    return task, model


# --- models of another kind ---------------------------------------------------------------------
@case()
def applied_twice(models, _):
    task, model = models("copy")
    model.loops = 2
    return task, model


@case("ape-sinusoidal", "rpe", "alibi", "rope", "none", "t5")
def other_embedding(models, name):
    task, model = models("copy")
    pe = embeddings.build(name, task, width=16, heads=2, max_scale=12)
    torch.manual_seed(0)
    return task, Transformer(len(task.vocabulary), pe, 1, 16, 2)


@case()
def two_layers(models, _):
    task = tasks.get("copy")
    torch.manual_seed(0)
    pe = embeddings.build("ideal-sh", task, width=16, heads=2)
    return task, Transformer(len(task.vocabulary), pe, 2, 16, 2)


@case()
def soft_other(models, _):
    task, model = models("copy")
    model.embedding.other = "soft"
    return task, model


@case()
def learned_relation_before_it_is_fixed(models, _):
    task, model = models("copy")
    pe = embeddings.build("lbpe-sh", task, width=16, heads=2)
    return task, Transformer(len(task.vocabulary), pe, 1, 16, 2)


@case()
def position_added_to_the_tokens(models, _):
    task, model = models("copy")

    class Added(RelationTable):
        def embed(self, x, positions, context=None):
            return x + (positions[:, None] > 500).to(x.dtype)

    new = Added(model.embedding.relation, 2, other="excluded")
    new.load_state_dict(model.embedding.state_dict())
    model.positions[0] = new
    return task, model


@case()
def hook_on_a_block(models, _):
    task, model = models("copy")
    model.blocks[0].register_forward_hook(
        lambda module, inputs, x: x * (1 if x.shape[1] < 600 else -1)
    )
    return task, model


@case()
def forward_of_an_instance(models, _):
    task, model = models("copy")
    usual = model.forward
    model.forward = lambda tokens, scale, cache=None: usual(
        tokens if tokens.shape[1] < 600 else tokens * 0, scale, cache
    )
    return task, model


@case()
def bias_of_an_instance(models, _):
    task, model = models("copy")
    usual = model.embedding.bias
    model.embedding.bias = lambda query, key, scale, context=None: usual(
        query, key, 3 if scale == 900 else scale
    )
    return task, model


# --- tasks whose words do not fit ---------------------------------------------------------------
@case()
def task_with_a_wrong_table_entry(models, _):
    task, model = models("addition")
    task = copy.copy(task)
    first, column = task.families()
    table = dict(column.operator.table)
    table[9, 9, 9, 9, 9] = 8
    operator = Operator("column", column.operator.roles, table)
    task.families = lambda: [first, replace(column, operator=operator)]
    return task, model


@case()
def task_that_leaves_out_its_last_step(models, _):
    task, model = models("copy")
    task = copy.copy(task)
    (copied,) = task.families()
    task.families = lambda: [replace(copied, last=N - 1)]
    return task, model


@case()
def task_that_changes_at_scale_500(models, _):
    task, model = models("copy")
    task = copy.copy(task)
    (copied,) = task.families()
    near, far = replace(copied, where=(499 - N,)), replace(copied, last=N - 1, where=(N - 500,))
    task.families = lambda: [near, far]
    return task, model


def fresh(name, models, counting):
    """Return a task and a copy of its trained model."""
    if name == "counting":
        return counting[0], copy.deepcopy(counting[1])
    return models(name)


@pytest.fixture(scope="session")
def outcome(models, counting):
    """Return a function: the name of a case -> task, model, certificate."""
    kept = {}

    def get(name):
        if name not in kept:
            make, parameter = CASES[name]
            task, model = make(lambda task_name: fresh(task_name, models, counting), parameter)
            kept[name] = task, model, certify(model, task)
        return kept[name]

    return get


@pytest.mark.parametrize("name", CASES)
def test_no_false_certificate(name, outcome, judge):
    task, model, made = outcome(name)
    if made.certified:
        assert judge(model, task) is None
        harmless = name.startswith("flipped") or name == "wrong_entry_of_the_relation_table"
        assert harmless, "only a change of weights may leave the model right"
        assert made.margin > made.error
    else:
        assert made.verdict in ("wrong", "refused", "tested, not certified")
        assert made.reason and "\n" not in made.reason
        assert (made.verdict == "wrong") == (made.counterexample is not None)


def test_there_are_at_least_thirty():
    assert len(CASES) >= 30


@pytest.mark.parametrize(
    ("name", "verdict", "words"),
    [
        ("error_only_from_scale_5_on", "wrong", ""),
        ("other_operand_from_scale_1000_on", "wrong", ""),
        ("operand_lost_from_a_scale_on 1001", "wrong", ""),
        ("weight_not_finite nan", "refused", "not finite"),
        ("applied_twice", "wrong", "2 layers"),
        ("soft_other", "wrong", "is not shown to cover the leak"),
        ("position_added_to_the_tokens", "refused", "by their position"),
        ("task_with_a_wrong_table_entry", "refused", "'999+999='"),
        ("task_that_changes_at_scale_500", "refused", "no step writes y500 at scale 500"),
        ("almost_a_tie", "refused", "does not cover what float32"),
        ("terms_that_lie_about_scale_1000", "refused", "scale 1000"),
        ("guards_that_overlap", "refused", "differ"),
    ],
)
def test_what_a_refusal_says(name, verdict, words, outcome):
    made = outcome(name)[-1]
    assert (made.verdict, words in made.reason) == (verdict, True), made.reason


def test_an_error_that_needs_scale_5_is_shown_at_scale_5_or_more(outcome):
    task, model, made = outcome("error_only_from_scale_5_on")
    prompt = made.counterexample.split(" ")[0]
    assert len(prompt) - 1 >= 6 and prompt.count("1") >= 5  # 5 is read only behind its step
    assert first_wrong(model, task, prompt)


def test_counterexamples_replay(outcome):
    for name in (
        "one_wrong_digit_of_addition",
        "relation_off_by_one 0",
        "last_step_left_out shift",
    ):
        task, model, made = outcome(name)
        prompt, _, rest = made.counterexample.partition(" gives ")
        given, _, right = rest.partition(", right is ")
        assert task.solve(prompt) == right != given, made.counterexample
        assert first_wrong(model, task, prompt)


def first_wrong(model, task, text):
    """Whether plain greedy decoding, written here, differs from the truth."""
    prompt = task.parse(text)
    tokens, scale = list(prompt.tokens), prompt.scale
    true = task.answer(torch.tensor([prompt.tokens]), scale)[0].tolist()
    with torch.no_grad():
        for _ in true:
            tokens.append(int(model(torch.tensor([tokens]), scale)[0, -1].argmax()))
    return tokens[len(prompt.tokens) :] != true


def test_honest_models_are_certified(examined, counting, judge):
    for name in ("copy", "parity-cot", "shift", "addition"):
        task, model, whole = examined(name)
        made = whole.certificate
        assert made.certified, (name, made.reason)
        assert judge(model, task, scales=(1, 2, 3, 20, 1000)) is None
    assert certify(*reversed(counting)).certified


def test_a_key_that_no_step_needs_is_enumerated(examined):
    task, model, whole = examined("copy")

    def more(terms):
        (only,) = terms
        return [only, Term(only.id, Form(1, -1), 2, *only.guard)]

    made = certify(with_terms(copy.deepcopy(model), more), task)
    assert made.tuples > whole.certificate.tuples
