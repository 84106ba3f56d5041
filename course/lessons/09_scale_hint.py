"""Lesson 9. Addition without padding zeros: a Scale Hint against padding, and against wrong hints.

Nothing in the text may state a measured number: the cells print them.
"""

# %% [markdown]
# # Lesson 9: The Scale Hint
#
# **The claim.** Tell a model the scale n, and the operands of addition, copy, shift and reverse get the same names at every length without
# any padding zeros; tell it a wrong n, and it fails.
#
# Time: about 35 minutes, of which about one minute is training, on two CPU cores. You need lessons 1 and 7.

# %%
from dataclasses import replace

import torch
from torch.utils.flop_counter import FlopCounterMode

import lgcourse
from lgcourse import embeddings, relations, tasks, theory
from lgcourse.show import curve_figure, layout_figure
from lgcourse.show.widgets import figure_html
from lgcourse.training import seeded

# %% [markdown]
# ## 1. The price of zeros
#
# To make addition work at any length one often pads: all numbers are filled up with zeros to one width, so that operands stand at fixed
# distances. Here is 2 + 3, ready for numbers of up to W = 30 digits. Each number gets W + 1 places, as a sum may have one digit more. The
# least digit stands first.

# %% tags=["nbval-check-output"]
WIDTH = 30
plain, padded = tasks.get("addition"), tasks.get("addition-padded", width=WIDTH)
for task in (padded, plain):
    tokens = task.parse("2+3=").tokens
    print(f"{len(tokens):3} tokens: {''.join(task.vocabulary[token] for token in tokens)}")

# %% [markdown]
# Training shows numbers of 1 to 10 digits. How much of what the padded model reads is filling? An average row, answer included:

# %% tags=["nbval-check-output"]
TRAIN_SCALES = range(1, 11)
rows = {task.name: [task.length(n) for n in TRAIN_SCALES] for task in (plain, padded)}
means = {name: sum(lengths) / len(lengths) for name, lengths in rows.items()}
print(means, f"filling: {1 - means['addition'] / means['addition-padded']:.2f}")

# %% [markdown]
# Why does one pay this price? What do the zeros give to the model?

# %% [markdown]
# ## 2. The picture
#
# What the steps of unpadded addition read, at scale 2:

# %%
figure_html(layout_figure(plain, 2))

# %% [markdown]
# And at scale 4. In the last step the `+` and the `=` stand where one more digit of a and of b would be; the step takes them as zeros.

# %%
figure_html(layout_figure(plain, 4))

# %% [markdown]
# The marked squares form lines parallel to the diagonal, and the lines move away from it as n grows. We measure how far each operand stands
# behind its query, at several scales. (The picture tells the roles of the first column from those of later ones. Here both are `a` and `b`.)

# %% tags=["nbval-check-output"]
for task, scales in ((plain, (2, 3, 4, 10)), (padded, (2, 10))):
    print(task.name)
    for n in scales:
        distances = {}
        for step in task.circuit(n):
            for role, key in zip(step.operator.roles, step.inputs, strict=True):
                distances.setdefault(role, set()).add(step.query - key)
        print(f"  scale {n:2}:", {role: sorted(found) for role, found in distances.items()})

# %% [markdown]
# Each role has one distance at each scale. Without padding that of `b` is n, that of `a` is 2n + 1, and those of the column before are one more.
# (The result before, `s before`, stands where the query stands.)
#
# With padding the distances are the same for all n: what was n is now W + 1. That is what the zeros give. The other way is to tell the
# model n, and to take off what moves:
#
# $$u = i - j - c\,n, \qquad c \in \{0, 1, 2\}.$$
#
# This is all that a **Scale Hint** is: $\phi(i, j)$ becomes $\phi(i, j, n)$.
#
# Is it fair to tell n? In a decoder it is. When the `=` has been read, the number of digits is known, and no step before that is
# scored. The place of the `+` is n:

# %% tags=["nbval-check-output"]
prompt = plain.parse("905+128=")
plus = plain.vocabulary.index("+")
print("place of the plus:", prompt.tokens.index(plus), "  the scale:", prompt.scale)

# %% [markdown]
# ## 3. The hint by hand
#
# We name the operands of addition by (c, u):

# %%
NAMES = {  # role -> (c, u), from the distances above
    "a": (2, 1),
    "b": (1, 0),
    "a before": (2, 2),
    "b before": (1, 1),
    "s before": (0, 0),
}


def hinted_name(i, j, n):
    """Return the role of key j for the step at query i, or "other"."""
    first, last = 2 * n + 1, 3 * n + 1  # the queries that write s1 .. s(n+1)
    if not first <= i <= last:
        return "other"
    for role, (c, u) in NAMES.items():
        if i - j - c * n == u and (i > first or role in ("a", "b")):
            return role  # the first column has no column before it
    return "other"


# %% [markdown]
# The formula is made from what we saw at four scales. Does it name exactly the operands of the circuit, at others too?


# %% tags=["nbval-check-output"]
def named_operands(n):
    """Return {(i, j): role} by the formula, over all pairs."""
    pairs = [(i, j) for i in range(3 * n + 3) for j in range(i + 1)]
    named = {(i, j): hinted_name(i, j, n) for i, j in pairs}
    return {pair: role for pair, role in named.items() if role != "other"}


def true_operands(n):
    """Return {(i, j): role} by the circuit."""
    return {
        (step.query, key): role
        for step in plain.circuit(n)
        for role, key in zip(step.operator.roles, step.inputs, strict=True)
    }


print([named_operands(n) == true_operands(n) for n in (1, 2, 7, 25)])

# %% [markdown]
# The library's ideal relation with Scale Hint says the same. It numbers the roles of the first column and of the later ones apart, and is made from
# the circuit, so that there is nothing to guess. It is a handful of forms, and serves every n:

# %% tags=["nbval-check-output"]
ideal = relations.build("ideal-sh", plain)
for term in ideal.terms():
    print(term)

# %% [markdown]
# ## 4. Your prediction
#
# Three models learn to add numbers of 1 to 10 digits. They have the same sizes and batches; each has another way to deal with moving
# operands:
#
# | name | layout | relation |
# |---|---|---|
# | hint | unpadded | `ideal-sh`: the roles, given n |
# | padding | padded to 30 digits | `ideal`: the roles, n not given |
# | neither | unpadded | `rpe`: the distance i - j |
#
# **Before you go on, commit yourself.** Two numbers of 30 digits are added. What share of the answers will be right as a whole? And what if
# the hint model is lied to at test time?

# %%
prediction = {  # a share between 0 and 1 for each
    "hint": None,
    "padding": None,
    "neither": None,
    "hint, told 29 instead of 30": None,
    "hint, always told 10": None,
}

# %% [markdown]
# ## 5. The experiment
#
# Theory first. It has no doubts:

# %% tags=["nbval-check-output"]
ARMS = {
    "hint": (plain, "ideal-sh"),
    "padding": (padded, "ideal"),
    "neither": (plain, "rpe"),
}
for arm, (task, pe) in ARMS.items():
    phi = relations.build(pe, task, max_scale=WIDTH)
    print(f"{arm:8}", theory.predict(task, phi, TRAIN_SCALES, [WIDTH]).verdict)


# %%
def make_model(task, pe, longest, layers=1):
    """Return an untrained decoder."""
    embedding = embeddings.build(pe, task, width=64, heads=8, max_scale=longest)
    with seeded(0, "weights"):
        return lgcourse.Transformer(len(task.vocabulary), embedding, layers, width=64, heads=8)


def fit(model, task, updates, on_check=None):
    return lgcourse.fit(
        model,
        task,
        TRAIN_SCALES,
        steps=updates,
        seed=0,
        batch=64,
        on_check=on_check,
        check_every=25,
        device="cpu",
    )


models, progress = {}, {}


def train(arm, updates):
    """Train one arm; note exact match at 30 digits every 25 updates."""
    task, pe = ARMS[arm]
    models[arm], progress[arm] = make_model(task, pe, WIDTH), {}

    def check(trainer):
        table = lgcourse.evaluate(trainer.model, task, [WIDTH], samples=100)
        progress[arm][trainer.step] = table.exact_match[WIDTH]

    run = fit(models[arm], task, updates, check)
    last = run.losses[run.steps]
    print(f"{arm}: {run.steps} updates in {run.seconds:.0f} s, last loss {last:.4f}")


# %% [markdown]
# The next cell takes about 5 seconds.

# %%
train("hint", updates=300)

# %% [markdown]
# The next cell takes about 15 seconds.

# %%
train("padding", updates=300)

# %% [markdown]
# The baseline learns slowly, so it gets more updates. The next cell takes about 10 seconds.

# %%
train("neither", updates=900)

# %%
TEST_SCALES = (2, 5, 8, 10, 11, 12, 15, 20, 25, 30)
scores = {
    arm: lgcourse.evaluate(models[arm], task, TEST_SCALES, samples=200).exact_match
    for arm, (task, pe) in ARMS.items()
}
figure_html(curve_figure(scores, train_scale=10, title="Addition"))

# %%
print("digits " + "".join(f"{arm:>10}" for arm in scores))
for scale in TEST_SCALES:
    print(f"{scale:6} " + "".join(f"{row[scale]:10.3f}" for row in scores.values()))

# %% [markdown]
# If "neither" is low at 10 digits too, it has not learned what training showed: at each scale it meets its operands under new names. So its
# failure at 30 says little, and section 8 has a baseline on an easier task. (Do not read much into the last digit of a share: one sample
# more or less is chance.) The padded model cannot be asked for numbers of 31 digits at all: its row is full.
# The one with the hint can:

# %%
far = lgcourse.evaluate(models["hint"], plain, [50, 100], samples=100)
print("hint:", {scale: f"{share:.2f}" for scale, share in far.exact_match.items()})

# %% [markdown]
# ## 6. What is saved
#
# Tokens are not cost. The cost of an update is counted in floating-point operations (FLOPs; a GFLOP is $10^9$ of them), by PyTorch itself:


# %%
def flops(model, task, n):
    """Count the operations of one update at scale n, forwards and backwards."""
    tokens = task.sample(n, 64, torch.Generator().manual_seed(0)).tokens
    with FlopCounterMode(display=False) as counter:
        model(tokens, n).sum().backward()
    model.zero_grad(set_to_none=True)
    return counter.get_total_flops()


for arm in ("hint", "padding"):
    task = ARMS[arm][0]
    tokens = sum(64 * task.length(n) for n in TRAIN_SCALES) / len(TRAIN_SCALES)
    cost = sum(flops(models[arm], task, n) for n in TRAIN_SCALES) / len(TRAIN_SCALES)
    passed = [step for step, share in progress[arm].items() if share >= 0.9]
    first = min(passed, default=None)
    spent = "never" if first is None else f"{first * cost / 1e9:.0f} GFLOP, {first} updates"
    print(
        f"{arm:8} one update: {tokens:5.0f} tokens, {cost / 1e9:.2f} GFLOP; "
        f"to 0.9 at 30 digits: {spent}"
    )

# %% [markdown]
# Compare the number of updates first, and then the tokens and the cost of one. What is saved grows with the width that one pads to, as rows get
# longer and the unpadded ones do not. Does it grow just as the number of tokens? That depends on how many keys attention looks at. Here is the
# cost of *one token* of padded rows: under `ideal`, which names a few keys for each query, and under `rpe`, where each query looks at all keys
# before it.

# %%
WIDTHS = (30, 60, 120)
print("thousands of operations for one token, padded to", WIDTHS)
for pe in ("ideal", "rpe"):
    row = []
    for width in WIDTHS:
        task = tasks.get("addition-padded", width=width)
        row.append(flops(make_model(task, pe, width), task, 5) / (64 * task.length(5)) / 1e3)
    print(f"{pe:6}" + "".join(f"{cost:8.0f}" for cost in row))

# %% [markdown]
# With a few named keys a token costs the same in rows of any width, so cost grows just as the number of tokens. (The library reads named keys alone
# only where rows are long. In short ones it is quicker to look at all.) Where attention looks at all pairs, a token costs more the longer
# the row is, and there padding costs even more than its tokens say.

# %% [markdown]
# ## 7. Wrong hints: the negative control
#
# If the hint does the work, lies must undo it. We keep weights and inputs and change only the number that the model is told:


# %%
def told(model, task, scale, hint, samples=200):
    """Return exact match at one scale when the model is told another one."""
    batch = task.sample(scale, samples, torch.Generator().manual_seed(scale))
    at = batch.answer.nonzero()[:, 0]
    with torch.inference_mode():
        guess = model(batch.tokens, hint)[:, at - 1].argmax(-1)
    return (guess == batch.tokens[:, at]).all(dim=1).double().mean().item()


SOURCE = torch.Generator().manual_seed(0)


def another(n):
    """Return a random scale from 1 to 30 that is not n."""
    return (n + int(torch.randint(0, 29, (), generator=SOURCE))) % 30 + 1


LIES = {
    "n": lambda n: n,
    "n + 1": lambda n: n + 1,
    "n - 1": lambda n: n - 1,
    "always 10": lambda n: 10,
    "n of another sample": another,
}
print(f"{'told':22}" + "".join(f"{n:>8}" for n in (5, 10, 20, 29)))
for words, lie in LIES.items():
    row = [told(models["hint"], plain, n, lie(n)) for n in (5, 10, 20, 29)]
    print(f"{words:22}" + "".join(f"{share:8.3f}" for share in row))


def nothing_but_zeros(n, samples=200):
    """Return which share of the samples in `told` is 0 + 0."""
    batch = plain.sample(n, samples, torch.Generator().manual_seed(n))
    digits = batch.tokens[:, [*range(n), *range(n + 1, 2 * n + 1)]]
    return (digits == 0).all(dim=1).double().mean().item()


row = [nothing_but_zeros(n) for n in (5, 10, 20, 29)]
print(f"{'(samples with 0 + 0)':22}" + "".join(f"{share:8.3f}" for share in row))

# %% [markdown]
# "Always 10" is right in one column, and it is the truth there. It is what a model without hint would have to do: behave as if all inputs were of
# one length.
#
# Why is a lie not always fatal? Samples are random, but one in eight is drawn from few different digits, so that rare steps occur as well. So a
# few sums are 0 + 0. There it does not matter which digit is read. Compare the last row with those above it.
#
# And your predictions?

# %%
measured = {
    **{arm: row[30] for arm, row in scores.items()},
    "hint, told 29 instead of 30": told(models["hint"], plain, 30, 29),
    "hint, always told 10": told(models["hint"], plain, 30, 10),
}
for words, share in measured.items():
    said = prediction[words]
    far_off = "" if said is None else "  close" if abs(said - share) < 0.1 else "  not so"
    print(f"{words:28} predicted: {said}; measured: {share:.2f}{far_off}")


# %% [markdown]
# A second control: the lies are told in training as well. Perhaps the weights find a way to add without the hint? The model is told a number without
# meaning, another one for each batch. Then we test it twice: with the truth, and with lies. The next cell takes about 5
# seconds.


# %%
class Liar:
    """A task whose samples are right and whose hint is a random number."""

    def __init__(self, task):
        self.task, self.source = task, torch.Generator().manual_seed(1)

    def __getattr__(self, name):
        return getattr(self.task, name)

    def sample(self, scale, batch, generator):
        wrong = int(torch.randint(1, 11, (), generator=self.source))
        return replace(self.task.sample(scale, batch, generator), scale=wrong)


deceived = make_model(plain, "ideal-sh", WIDTH)
fit(deceived, Liar(plain), updates=300)
print("trained with lies, told the truth:", [told(deceived, plain, n, n) for n in (5, 10, 20)])
print(
    "trained with lies, told lies:     ",
    [told(deceived, plain, n, another(n)) for n in (5, 10, 20)],
)

# %% [markdown]
# It learns to add in neither way. Under a hint without meaning it seldom reads the operands at all, and the right names mean nothing to it.

# %% [markdown]
# ## 8. Copy, shift, reverse
#
# The same hint serves other tasks; the operands only lie elsewhere. Reverse has $i + j$ instead of $i - j$. Shift writes the last symbol first, and
# then the others in their order; so its first step has a form of its own, the key n - 1:

# %% tags=["nbval-check-output"]
for name in ("copy", "shift", "reverse"):
    print(f"{name:8}", relations.build("ideal-sh", tasks.get(name)).terms())

# %% [markdown]
# The last row is the baseline: copy without hint, by the distance i - j, with two layers and more updates, so that it has a chance to learn its
# training scales. The next cell takes about 25 seconds. The last two columns are at ten times the longest training scale.

# %%
print("task, relation      exact match at 10       100   100, told 99")
for name, pe, layers, updates in (
    ("copy", "ideal-sh", 1, 200),
    ("shift", "ideal-sh", 1, 200),
    ("reverse", "ideal-sh", 1, 200),
    ("copy", "rpe", 2, 1200),
):
    task = tasks.get(name)
    model = make_model(task, pe, 100, layers)
    fit(model, task, updates)
    row = [told(model, task, n, hint) for n, hint in ((10, 10), (100, 100), (100, 99))]
    print(f"{name:8} {pe:9} {row[0]:18.3f}  {row[1]:8.3f}  {row[2]:13.3f}")

# %% [markdown]
# ## What this does not show
#
# - That a model could find the relation by itself. Here it was made from the circuit. Lesson 11 gives a model the hint alone.
# - That the hint is always to be had. It is fair where the prompt tells n; it is not where the model must find out how long to go on.
# - That padding is bad. It needs no change of the model and no n; it costs tokens, and ends at its width.
# - The relation `ideal-sh` also keeps all other keys out of attention. Give `embeddings.build` the option `other="soft"` to see the
#   names alone.
# - One seed, one layer, and mostly random digits. Sums with long carries are harder: `lgcourse.evaluate(..., hard_samples=100)` asks for them.

# %% [markdown]
# ## Sources
#
# - Chen, Liang and Lin, *On the Limitations and Capabilities of Position Embeddings for Length Generalization* (2025), arXiv
#   2510.04130: the Scale Hint. The formalisation is the course's own, and all numbers are those of the run above.
# - Lee et al., *Teaching Arithmetic to Small Transformers* (2023), arXiv 2307.03381: digit order and padding in addition.
# - Cho et al., *Position Coupling* (2024), arXiv 2405.20671: operands that belong together get one position, another way to name them.
#
# Next: exercise 9, `exercises/09_scale_hint.ipynb`.
