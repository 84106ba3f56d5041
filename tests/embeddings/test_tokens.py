"""Embeddings that read tokens, task or a random draw: abacus, coupled, randomized."""

from collections import Counter
from itertools import groupby

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lgcourse
from lgcourse import InputError, embeddings, tasks
from lgcourse.embeddings import Context, coupled_ids
from lgcourse.embeddings.abacus import runs

WIDTH = 6


def numbered(module):
    """Give row r of a table the value r in every column, so that an output shows its row."""
    module.table.data = torch.arange(len(module.table)).float()[:, None].expand(-1, WIDTH).clone()
    return module


def rows(module, tokens, scale=None, positions=None, context=None):
    """Return which rows an additive embedding takes, [b l]."""
    positions = torch.arange(tokens.shape[1]) if positions is None else positions
    context = Context(tokens=tokens, scale=scale) if context is None else context
    x = torch.zeros(len(tokens), len(positions), WIDTH)
    return module.embed(x, positions, context)[..., 0].long()


# --- abacus ---------------------------------------------------------------------------------------
def abacus(task="addition", **options):
    return numbered(embeddings.build("abacus", tasks.get(task), width=WIDTH, heads=2, **options))


def test_abacus_reference_ids():
    task = tasks.get("addition")
    tokens = torch.tensor([["0123456789+=".index(c) for c in "314+15=9265"]])
    assert rows(abacus().eval(), tokens).tolist() == [[1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 4]]
    assert task.vocabulary == "0123456789+="


@settings(deadline=None, max_examples=50)
@given(st.text(alphabet="01+=", min_size=1, max_size=40))
def test_abacus_counts_inside_each_run(text):
    want = []
    for digit, run in groupby(text, str.isdigit):
        want += [place if digit else 0 for place, _ in enumerate(run, start=1)]
    assert runs(torch.tensor([[c.isdigit() for c in text]]))[0].tolist() == want


def test_abacus_offset_is_one_per_batch_in_training_and_none_in_evaluation():
    module, task = abacus(), tasks.get("addition")
    tokens = task.sample(4, 8, torch.Generator().manual_seed(0)).tokens
    plain = rows(module.eval(), tokens)
    module.train()
    seen = set()
    for _ in range(300):
        shifted = rows(module, tokens)
        offset = int((shifted - plain).max())
        assert torch.equal(shifted, torch.where(plain > 0, plain + offset, 0))
        seen.add(offset)
    assert min(seen) == 0 and max(seen) == 99 and len(seen) > 80
    assert torch.equal(rows(module.eval(), tokens), plain)


def test_abacus_goes_on_inside_a_number_when_tokens_come_one_by_one():
    module = abacus().eval()
    tokens = tasks.get("addition").sample(5, 3, torch.Generator().manual_seed(0)).tokens
    whole = rows(module, tokens)
    context = Context(tokens=None)
    for p in range(tokens.shape[1]):
        context.tokens = tokens[:, : p + 1]
        one = rows(module, tokens[:, :1], positions=torch.tensor([p]), context=context)
        assert torch.equal(one[:, 0], whole[:, p])


def test_abacus_refusals():
    with pytest.raises(InputError, match="abacus counts the digits of a task's numbers"):
        embeddings.build("abacus", width=WIDTH, heads=2)
    for name in ("majority", "copy-repeat", "permutation-cot", "sort"):
        with pytest.raises(InputError, match=f"tokens of task '{name}' are no digits"):
            abacus(name)
    with pytest.raises(InputError, match="Context\\(tokens=...\\)"):
        abacus().embed(torch.zeros(1, 3, WIDTH), torch.arange(3))
    with pytest.raises(InputError, match="offset must be a whole number"):
        abacus(offset=-1)
    short = abacus(positions=5, offset=0).eval()
    with pytest.raises(InputError, match="6 positions, got position 6"):
        rows(short, torch.zeros(1, 6, dtype=torch.long))


# --- coupled --------------------------------------------------------------------------------------
COUPLINGS = {  # layout, and the ids: 1 before the answer, answer token t has t + 1
    ("copy", 3): ("x1 x2 x3 = y1 y2 y3", [2, 3, 4, 1, 2, 3, 4]),
    ("reverse", 3): ("x1 x2 x3 = y1 y2 y3", [4, 3, 2, 1, 2, 3, 4]),
    ("shift", 3): ("x1 x2 x3 = y1 y2 y3", [3, 4, 2, 1, 2, 3, 4]),
    ("parity-cot", 2): ("x1 x2 = y1 y2", [2, 3, 1, 2, 3]),
    ("addition", 2): ("a1 a2 + b1 b2 = s1 s2 s3", [2, 3, 4, 2, 3, 1, 2, 3, 4]),
    ("addition-unequal", (3, 1)): (
        "a1 a2 a3 + b1 = s1 s2 s3 s4",
        [2, 3, 4, 0, 2, 1, 2, 3, 4, 5],
    ),
    ("interleave", 2): ("a1 a2 / b1 b2 = y1 y2 y3 y4", [2, 4, 0, 3, 5, 1, 2, 3, 4, 5]),
    ("compare-cot", 2): ("a1 a2 ? b1 b2 = c1 c2", [2, 3, 0, 2, 3, 1, 2, 3]),
    ("multiply-digit", 2): ("a1 a2 * d = p1 p2 p3", [2, 3, 4, 2, 1, 2, 3, 4]),
}


@pytest.mark.parametrize("name, scale", COUPLINGS)
def test_coupled_ids_by_hand(name, scale):
    layout, ids = COUPLINGS[name, scale]
    task = tasks.get(name)
    assert len(layout.split()) == task.length(scale)
    assert coupled_ids(task, scale).tolist() == ids


@pytest.mark.parametrize("name", [n for n in tasks.names() if tasks.get(n).arity is not None])
def test_every_query_has_the_id_below_its_token_and_digits_of_a_column_share_one(name):
    task = tasks.get(name)
    if task.kind == "not covered":
        pytest.skip("no circuit")
    scale = (4, 3) if task.sizes == 2 else 5
    ids = coupled_ids(task, scale).tolist()
    circuit = task.circuit(scale)
    for step in circuit:
        assert ids[step.output] == ids[step.query] + 1
    made = {step.output for step in circuit}
    for step in circuit:  # new operands of a step have the id of its token
        earlier = {p for other in circuit if other.output < step.output for p in other.inputs}
        new = set(step.inputs) - earlier - made - {circuit[0].query}
        assert {ids[p] for p in new} <= {ids[step.output]}


def test_addition_couples_equal_significance():
    task = tasks.get("addition")
    layout, ids = task.layout(7), coupled_ids(task, 7).tolist()
    for t in range(1, 8):
        column = {ids[layout.index(f"{letter}{t}")] for letter in "abs"}
        assert column == {t + 1}


def coupled(task="addition", **options):
    return numbered(embeddings.build("coupled", tasks.get(task), width=WIDTH, heads=2, **options))


def test_coupled_starts_at_random_in_training_so_that_every_row_is_trained():
    module = coupled(max_scale=20)
    tokens = torch.zeros(2, 9, dtype=torch.long)
    plain = rows(module.eval(), tokens, scale=2)
    assert plain[0].tolist() == COUPLINGS["addition", 2][1]
    module.train()
    seen = Counter()
    for _ in range(400):
        shifted = rows(module, tokens, scale=2)
        offset = int((shifted - plain).max())
        assert torch.equal(shifted, torch.where(plain > 0, plain + offset, 0))
        seen.update(set(shifted.flatten().tolist()))
    assert set(seen) == set(range(1, len(module.table)))  # no token of an addition has id 0
    assert len(module.table) == 20 + 1 + 2  # answer tokens at scale 20, ids 0 and 1


def test_coupled_works_one_token_at_a_time_and_behind_the_end():
    module = coupled(max_scale=20).eval()
    whole = rows(module, torch.zeros(1, 9, dtype=torch.long), scale=2)
    for p in range(9):
        one = rows(module, torch.zeros(1, 1).long(), scale=2, positions=torch.tensor([p]))
        assert one[0, 0] == whole[0, p]
    behind = rows(module, torch.zeros(1, 1).long(), scale=2, positions=torch.tensor([9]))
    assert behind.item() == 0


def test_coupled_refusals():
    with pytest.raises(InputError, match="derived from a task's circuit: give a task"):
        embeddings.build("coupled", width=WIDTH, heads=2)
    for name in ("sort", "majority", "copy-unique", "copy-repeat"):
        with pytest.raises(InputError, match=f"no coupling exists for task '{name}': it has no"):
            coupled(name)
    for name in ("parity-direct", "multiply-direct"):
        with pytest.raises(InputError, match=f"no coupling exists for task '{name}': each step"):
            coupled(name)
    with pytest.raises(InputError, match="give the scale"):
        rows(coupled(), torch.zeros(1, 9).long())
    with pytest.raises(InputError, match="7 positions, got position 9"):
        rows(coupled(max_scale=4), torch.zeros(1, 9).long(), scale=7)


# --- randomized -----------------------------------------------------------------------------------
def randomized(task="copy", **options):
    task = None if task is None else tasks.get(task)
    return embeddings.build("randomized", task, width=WIDTH, heads=1, **options)


@settings(deadline=None, max_examples=40)
@given(length=st.integers(1, 60), room=st.integers(0, 100), train=st.booleans())
def test_a_draw_is_sorted_without_repetition_and_inside_the_range(length, room, train):
    module = randomized(None, positions=length, largest=length + room).train(train)
    drawn = module.drawn(torch.arange(length), None, Context()).tolist()
    assert drawn == sorted(set(drawn)) and len(drawn) == length
    assert drawn[0] >= 0 and drawn[-1] < length + room


def test_every_subset_is_as_likely_as_the_others():
    module = randomized(None, positions=2, largest=4).train()
    counts = Counter(
        tuple(module.drawn(torch.arange(2), None, Context()).tolist()) for _ in range(3000)
    )
    assert len(counts) == 6
    assert all(400 < count < 600 for count in counts.values())  # 500 expected, sd 20


@pytest.mark.parametrize("around", ["sinusoidal", "learned", "relative", "rope", "alibi"])
def test_randomized_gives_drawn_positions_to_the_embedding_around_which_it_stands(around):
    module = randomized(around=around, largest=500).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    at, context = torch.arange(7), Context(scale=3)
    drawn = module.drawn(at, 3, context)
    assert not torch.equal(drawn, at)
    x = torch.randn(2, 7, WIDTH, generator=torch.Generator().manual_seed(0))
    assert torch.equal(module.embed(x, at, context), module.around.embed(x, drawn))
    q = x[:, None]
    for got, want in zip(
        module.rotate(q, q, at, at, context), module.around.rotate(q, q, drawn, drawn), strict=True
    ):
        assert torch.equal(got, want)
    got, want = module.bias(at, at, 3, context), module.around.bias(drawn, drawn, 3)
    assert (got is None and want is None) or torch.equal(got, want)
    changes = not torch.equal(module.embed(x, at, context), x)
    turns = not torch.equal(module.rotate(q, q, at, at, context)[0], q)
    assert changes + turns + (got is not None) == 1


def test_one_pass_has_one_draw_and_training_passes_differ():
    module = randomized(around="rope").train()
    other_layer = randomized(around="rope").train()  # a copy, as layers with parameters have it
    contexts = [Context(scale=3) for _ in range(3)]
    at = torch.arange(7)
    draws = [module.drawn(at, 3, context) for context in contexts]
    for context, draw in zip(contexts, draws, strict=True):
        assert torch.equal(other_layer.drawn(at, 3, context), draw)
        assert torch.equal(module.drawn(at[2:4], 3, context), draw[2:4])
    assert not torch.equal(draws[0], draws[1]) and not torch.equal(draws[1], draws[2])


def test_evaluation_is_repeatable_and_resumed_training_draws_what_it_would_have_drawn():
    module, at = randomized().train(), torch.arange(7)

    def draw(module):
        return module.drawn(at, 3, Context(scale=3))

    draw(module)
    saved = {k: v.clone() for k, v in module.state_dict().items()}
    first_eval = draw(module.eval())
    want = [draw(module.train()) for _ in range(3)]
    resumed = randomized().train()
    resumed.load_state_dict(saved)
    assert torch.equal(draw(resumed.eval()), first_eval)
    for draw_again in want:
        assert torch.equal(draw(resumed.train()), draw_again)


def test_the_whole_sequence_is_drawn_for_where_the_task_tells_its_length():
    module, context = randomized("addition").eval(), Context(scale=10)
    prompt = module.drawn(torch.arange(22), 10, context)  # with a cache: the prompt, ...
    rest = module.drawn(torch.arange(22, 33), 10, context)  # ... then the answer
    whole = module.drawn(torch.arange(33), 10, Context(scale=10))
    assert torch.equal(torch.cat([prompt, rest]), whole)


def test_randomized_refusals():
    with pytest.raises(InputError, match="give the hooks a Context"):
        randomized().embed(torch.zeros(1, 3, WIDTH), torch.arange(3))
    with pytest.raises(InputError, match="did you mean 'rope'"):
        randomized(around="rop")
    with pytest.raises(InputError, match="largest must be a whole number of at least 30"):
        randomized(None, positions=30, largest=29)
    with pytest.raises(InputError, match="draws from 40 positions, got a sequence of 41 tokens"):
        randomized(None, positions=30, largest=40).drawn(torch.arange(41), None, Context())
    context = Context()
    module = randomized(None, positions=30)
    module.drawn(torch.arange(5), None, context)
    with pytest.raises(InputError, match="drawn for 5 tokens, and token 6 follows"):
        module.drawn(torch.tensor([5]), None, context)


@pytest.mark.parametrize("name", ["randomized", "abacus", "coupled"])
def test_a_training_that_is_resumed_goes_on_with_its_draws(name):
    task = tasks.get("copy")

    def fit(**options):
        embedding = embeddings.build(name, task, width=8, heads=2, max_scale=9)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = lgcourse.Transformer(len(task.vocabulary), embedding, 1, 8, 2)
        return lgcourse.fit(model, task, [2, 3], steps=6, batch=4, device="cpu", **options)

    states = []
    whole = fit(on_check=lambda trainer: states.append(trainer.state()), check_every=3)
    rest = fit(state=states[0])
    for parameter, again in zip(whole.model.parameters(), rest.model.parameters(), strict=True):
        assert torch.equal(parameter, again)
    draws = [v for k, v in rest.model.state_dict().items() if k.endswith("draws.count")]
    assert [int(v) for v in draws] == [6]
