"""Lesson 2. What a position embedding tells attention, seen on one attention head and two tasks.

Nothing in the text may state a measured number: the cells print them.
"""

# %% [markdown]
# # Lesson 2: Position embeddings
#
# **The claim.** A position embedding gives each pair of a query and a key a name, and an attention head is right at a new length only
# if the pairs that matter there carry names that training has given a meaning.
#
# So no embedding is best. Which one carries over depends on the task.
#
# Time: about 35 minutes, of which less than a minute is training, on two CPU cores. You need PyTorch and a rough idea of attention.

# %%
import math

import torch
from matplotlib.figure import Figure
from torch import nn

from lgcourse import embeddings, relations
from lgcourse.show.widgets import figure_html
from lgcourse.training import seeded

# %% [markdown]
# ## 1. Who bites whom?
#
# Here is one attention head, and two texts. The head looks back from the `?`. Its weights are random, and it has no position
# embedding.

# %% tags=["nbval-check-output"]
words = {"dog": 0, "bites": 1, "man": 2, "?": 3}
with seeded(0, "weights"):
    vectors, to_q, to_k, to_v = nn.Embedding(4, 32), *(nn.Linear(32, 32) for _ in range(3))


def look_back(text):
    """Return what the last word of a text gets from the words up to it."""
    x = vectors(torch.tensor([words[word] for word in text.split()]))
    score = to_q(x[-1]) @ to_k(x).T / math.sqrt(32)
    return score.softmax(-1) @ to_v(x)


one, other = look_back("dog bites man ?"), look_back("man bites dog ?")
print(f"largest difference: {(one - other).abs().max().item():.5f}")

# %% [markdown]
# The two are equal, and no training will part them. Attention adds up the words that it sees, and a sum does not know an order. To
# ask "who bites?" is useless: the head cannot tell.
#
# (A *stack* of causal layers can get at the order, since an early word sees fewer words than a late one. One head cannot.)

# %% [markdown]
# ## 2. Names, in a picture
#
# All that a position embedding can do is to make attention treat pairs of positions differently. So ask of each embedding: which
# pairs does it tell apart? Write i for the query, j for the key, and give pairs that look alike the same number, a *name*. Such a
# function $\phi(i, j) \to$ name is a *positional relation*. Four of them:
#
# | name | the pair (i, j) is called | used by |
# |---|---|---|
# | `none` | always 0 | no position embedding (NoPE) |
# | `ape` | j | absolute position embeddings (APE): a vector per position |
# | `rpe` | i - j | relative position embeddings (RPE): a number per distance |
# | `t5` | i - j up to 15; farther distances share buckets | the relative embedding of T5 |
#
# In the picture a model was trained on texts of 6 words and now reads 10. Rows are queries, columns are keys. White squares
# carry a name that training has shown, hatched squares a new one.

# %%
TRAINED, READ = 6, 10


def names_figure(kinds, trained, read):
    """Draw the names of all pairs, those that training did not show hatched."""
    figure = Figure(figsize=(3.0 * len(kinds), 3.2), layout="constrained")
    said = []
    for axes, kind in zip(figure.subplots(1, len(kinds)), kinds, strict=True):
        at = torch.arange(read)
        names = relations.build(kind, positions=read)(at, at)
        shown = set(names[:trained, :trained][torch.ones(trained, trained).tril() > 0].tolist())
        new = 0
        for i in range(read):
            for j in range(i + 1):
                name = int(names[i, j])
                look = (
                    {"facecolor": "white"}
                    if name in shown
                    else {"facecolor": "0.85", "hatch": "////"}
                )
                axes.add_patch(_square(i, j, look))
                axes.text(j, i, name, ha="center", va="center", size=8, weight="bold")
                new += name not in shown
        axes.set(
            xlim=(-0.6, read - 0.4),
            ylim=(read - 0.4, -0.6),
            title=kind,
            xlabel="key j",
            ylabel="query i",
        )
        axes.add_patch(
            _square(
                (trained - 1) / 2, (trained - 1) / 2, {"fill": False, "linewidth": 2.5}, trained
            )
        )
        said.append(
            f"{kind}: {len(shown)} names shown in training, {new} of {read * (read + 1) // 2} pairs have a new one"
        )
    figure.alt = (
        f"Names of pairs at length {read} after training at length {trained}. "
        + "; ".join(said)
        + "."
    )
    return figure


def _square(i, j, look, side=1):
    from matplotlib.patches import Rectangle

    return Rectangle((j - side / 2, i - side / 2), side, side, **{"edgecolor": "0.3", **look})


figure = names_figure(["none", "ape", "rpe", "t5"], TRAINED, READ)
figure_html(figure, dpi=80)

# %% [markdown]
# Look at the corner below the frame in each picture. `none` has no new names there, and tells nothing apart. `ape` has new names in the
# columns that training never reached. `rpe` has them in the far corner, whatever the column.
#
# The same by counting. Training shows texts of up to 16 words. How many of the pairs in a longer text have a known name?

# %% tags=["nbval-check-output"]
for kind in ("none", "ape", "rpe", "t5"):
    phi, row = relations.build(kind, positions=128), []
    for length in (16, 17, 32, 64, 128):
        at = torch.arange(length)
        causal = at[None, :] <= at[:, None]
        names = phi(at, at)[causal]
        if length == 16:
            shown = names.unique()
        row.append(f"{torch.isin(names, shown).double().mean().item():6.2f}")
    print(
        f"{kind:5} {len(shown):3} names in training; known at 16, 17, 32, 64, 128: {' '.join(row)}"
    )

# %% [markdown]
# The last three rows are equal. So it is not the *number* of known names that makes one embedding better than another. What counts is
# whether the few pairs that the task needs are among them.
#
# (`t5` has buckets that are exact up to distance 15. Training on 16 words fills just these; the far buckets, which are made for long
# texts, stay untrained.)

# %% [markdown]
# ## 3. Three doors
#
# Position can enter attention at three places, and each embedding uses one of them.
#
# | door | what it changes | who uses it |
# |---|---|---|
# | `embed(x, positions)` | the token vectors at the input | APE |
# | `rotate(q, k, query, key)` | queries and keys | RoPE |
# | `bias(query, key, scale)` | the scores, after q k | RPE, T5, ALiBi, and every relation of this course |
#
# Here is a head with the three doors. If nobody stands in them, it is the head of section 1.


# %%
class NoPositions(nn.Module):
    """Leave all three doors shut."""

    def embed(self, x, positions):
        return x

    def rotate(self, q, k, query, key):
        return q, k

    def bias(self, query, key, scale):
        return torch.zeros(len(query), len(key))


class Head(nn.Module):
    """One causal attention head between token vectors and the logits of tokens."""

    def __init__(self, positions, tokens=8, width=32):
        super().__init__()
        self.positions, self.width = positions, width
        self.token = nn.Embedding(tokens, width)
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width) for _ in range(3))
        self.to_logits = nn.Linear(width, tokens)

    def forward(self, tokens):
        at = torch.arange(tokens.shape[1])
        x = self.positions.embed(self.token(tokens), at)  # first door; b l d
        q, k, v = (to(x)[:, None] for to in (self.to_q, self.to_k, self.to_v))  # b 1 l d: one head
        q, k = self.positions.rotate(q, k, at, at)  # second door
        score = q @ k.transpose(-1, -2) / math.sqrt(self.width)  # b 1 q k
        bias = self.positions.bias(at, at, 1)  # third door
        score = score if bias is None else score + bias
        score = score.masked_fill(at[None, :] > at[:, None], -math.inf)  # no key after its query
        return self.to_logits((score.softmax(-1) @ v)[:, 0])


# %% [markdown]
# Now the two oldest ideas, built by hand. Each is a table with one row per name. Rows start at zero, so a name that training never
# shows keeps a row of zeros.


# %%
class AbsolutePositions(NoPositions):
    """APE: add a learned vector to the token at position j."""

    def __init__(self, positions, width):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(positions, width))

    def embed(self, x, positions):
        return x + self.table[positions]


class RelativePositions(NoPositions):
    """RPE: add a learned number to the score, one for each distance i - j."""

    def __init__(self, positions):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(positions))

    def bias(self, query, key, scale):
        distance = (query[:, None] - key[None, :]).clamp(min=0)
        strength = 8 * torch.log(query[:, None] + 2)  # grows slowly with the number of keys
        return strength * self.table[distance]


# %% [markdown]
# (The factor `strength` is there because a softmax spreads: the more keys a query sees, the less each of them gets. A score that
# grows with the logarithm of their number makes up for it. Section 8 has an embedding without it.)
#
# The library ships both. Are they the same? We copy random tables over and compare.

# %% tags=["nbval-check-output"]
at, x = torch.arange(20), torch.randn(2, 20, 32)

ours, theirs = (
    AbsolutePositions(128, 32),
    embeddings.build("ape-learned", width=32, heads=1, positions=128),
)
ours.table.data.normal_()
theirs.table.data.copy_(ours.table)
print("ape  equal:", torch.equal(ours.embed(x, at), theirs.embed(x, at)))

ours, theirs = RelativePositions(128), embeddings.build("rpe", width=32, heads=1, positions=128)
ours.table.data.normal_()
theirs.table.data.copy_(ours.table[None])
causal = at[None, :] <= at[:, None]
print(
    "rpe  equal:", torch.allclose(ours.bias(at, at, 1)[causal], theirs.bias(at, at, 1)[0][causal])
)

# %% [markdown]
# ## 4. Two tasks
#
# Both tasks read random tokens. At each place the head must say one of the tokens that it has seen:
#
# - **three back**: the token three places before. (The first three places are not scored.)
# - **first**: the token at the very beginning.
#
# A head can do either: it has to look at one key, and to hand on what stands there. Training shows texts of 16 tokens. (In a causal
# model these hold all shorter ones: the first five places do not know what comes after them.)
#
# The measure is exact match, as in lesson 1: the share of texts in which every scored token is right.


# %%
TOKENS, WIDTH, LONGEST = 8, 32, 128
TRAIN_LENGTH = 16
sources = {"three back": lambda i: i - 3, "first": lambda i: 0 * i}


def sample(task, length, texts, generator):
    """Return random texts [b l], the right answers [b l], and which places are scored [l]."""
    tokens = torch.randint(TOKENS, (texts, length), generator=generator)
    source = sources[task](torch.arange(length))
    return tokens, tokens[:, source.clamp(min=0)], source >= 0


heads = {}


def train(task, name, positions, steps=400):
    """Train a fresh head on a task; keep it under (task, name)."""
    with seeded(0, "weights"):
        head = Head(positions, TOKENS, WIDTH)
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(head.parameters())
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 2e-2 * min(
            1, 2 - 2 * step / steps
        )  # falls in the second half
        tokens, right, scored = sample(task, TRAIN_LENGTH, 32, generator)
        logits = head(tokens)[:, scored].flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, right[:, scored].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    heads[task, name] = head
    print(f"{task:10}  {name:5}  last loss {loss.item():.4f}")


def exact_match(head, task, length, texts=200):
    """Return the share of texts in which every scored token is right."""
    tokens, right, scored = sample(task, length, texts, torch.Generator().manual_seed(length))
    with torch.inference_mode():
        good = head(tokens).argmax(-1) == right
    return good[:, scored].all(dim=1).double().mean().item()


# %% [markdown]
# ## 5. Your prediction
#
# **Before you go on, commit yourself.** For each task and embedding: what is the largest of the lengths 16, 17, 32 and 128 at which at
# least 9 of 10 texts are right as a whole? (Hint: which pairs matter, and what are they called? The pictures of section 2 help.)

# %%
prediction = {
    ("three back", "ape"): None,  # put 16, 17, 32 or 128 here
    ("three back", "rpe"): None,
    ("first", "ape"): None,
    ("first", "rpe"): None,
}

# %% [markdown]
# ## 6. The experiment
#
# The next cell takes about 3 seconds.

# %%
train("three back", "ape", AbsolutePositions(LONGEST, WIDTH))
train("three back", "rpe", RelativePositions(LONGEST))

# %% [markdown]
# The next one takes about 3 seconds.

# %%
train("first", "ape", AbsolutePositions(LONGEST, WIDTH))
train("first", "rpe", RelativePositions(LONGEST))

# %% [markdown]
# And as a baseline, a head without positions. The next cell takes about 3 seconds.

# %%
train("three back", "none", NoPositions())
train("first", "none", NoPositions())

# %%
LENGTHS = (8, 16, 17, 20, 32, 64, 128)


def show_scores(task, names):
    print(f"exact match, {task}\nlength " + "".join(f"{length:7}" for length in LENGTHS))
    for name in names:
        row = [exact_match(heads[task, name], task, length) for length in LENGTHS]
        print(f"{name:6} " + "".join(f"{score:7.2f}" for score in row))


show_scores("three back", ["none", "ape", "rpe"])
show_scores("first", ["none", "ape", "rpe"])

# %% [markdown]
# Both embeddings learn both tasks at the training length. Then they part, and each task has another winner.
#
# And your prediction?

# %%
for (task, name), said in prediction.items():
    good = [n for n in (16, 17, 32, 128) if exact_match(heads[task, name], task, n) >= 0.9]
    reached = max(good, default=None)
    verdict = (
        "no prediction made" if said is None else "as predicted" if said == reached else "not so"
    )
    print(f"{task:10}  {name}  predicted: {said}; measured: {reached} ({verdict})")

# %% [markdown]
# ## 7. Why
#
# Collect the names of the pairs that a step must find: in training, and at length 128.

# %% tags=["nbval-check-output"]
for task, source in sources.items():
    for kind in ("ape", "rpe"):
        phi = relations.build(kind, positions=LONGEST)

        def named(length, source=source, phi=phi):
            at = torch.arange(length)
            names = phi(at, at)
            return {int(names[i, source(i)]) for i in range(length) if source(i) >= 0}

        known, needed = named(TRAIN_LENGTH), named(128)
        print(
            f"{task:10}  {kind}  names in training: {len(known):2}   needed at 128: {len(needed):3}"
            f"   known of these: {len(needed & known):2}"
        )

# %% [markdown]
# `rpe` calls the key of "three back" by one name, 3, at every length. `ape` does so for "first": the name 0. In the two other cases a
# longer text needs names under which training never showed what to read. The two that carry over are the two whose needed names
# are all known.
#
# (Where `ape` gets a little worse far out, the softmax spreads over many keys whose vectors were never trained. Section 8 returns to it.)
#
# In a formula: write $j^*(i)$ for the key that query $i$ must read. An embedding with the relation $\phi$ can carry over from length $N_0$ to
# $N$ if
#
# $$\{\phi(i, j^*(i)) : i < N\} \subseteq \{\phi(i, j^*(i)) : i < N_0\}.$$
#
# (It must also tell that key from the others: `none` meets the condition and fails.)

# %% [markdown]
# ## 8. T5, ALiBi and RoPE
#
# These three also speak of the distance i - j, each in its own way.
#
# - **T5** has a learned number for each bucket of distances, and no factor for the number of keys.
# - **ALiBi** learns nothing: the score falls by a fixed slope per place. Each head has its own slope.
# - **RoPE** turns queries and keys by angles that grow with their positions. Only the difference of the angles enters the score.

# %% tags=["nbval-check-output"]
at = torch.arange(6)
print("ALiBi, slopes of 4 heads:", embeddings.alibi_slopes(torch.arange(4), heads=4).tolist())
alibi = embeddings.build("alibi", width=32, heads=4)
print("bias of the first head, query 5:", alibi.bias(at, at, 1)[0, 5].tolist())

rope = embeddings.build("rope", width=32, heads=1)
q, k = torch.randn(2, 1, 1, 1, 32, generator=torch.Generator().manual_seed(0))
for i, j in ((7, 3), (104, 100), (104, 99)):
    turned_q, turned_k = rope.rotate(q, k, torch.tensor([i]), torch.tensor([j]))
    print(
        f"RoPE, query at {i:3}, key at {j:3}, distance {i - j}: score {(turned_q * turned_k).sum().item():.3f}"
    )

# %% [markdown]
# Neither ALiBi nor RoPE has a table that could end: each has a value for every distance. Do they carry over? Say yes or no for each of the
# three on "three back" before you run the next cells. The first takes about 3 seconds.

# %%
with seeded(0, "weights"):
    train("three back", "t5", embeddings.build("t5", width=WIDTH, heads=1))
    train("three back", "alibi", embeddings.build("alibi", width=WIDTH, heads=1))
    train("three back", "rope", embeddings.build("rope", width=WIDTH, heads=1))

# %%
show_scores("three back", ["none", "rpe", "t5", "alibi", "rope"])

# %% [markdown]
# - `alibi` does not even learn the training length. Its head can say "the nearer the better", and the third key back is never the
#   nearest.
# - `rope` learns it, and goes on for a while. Its score is a sum of waves over the distance. Training shaped the waves for the distances up
#   to 15, and nothing asked them to stay low beyond.
# - `t5` knows the distance 3 at every length. But the untrained far buckets have the number 0, which is not *no* weight, and each longer text has
#   more keys in them. Without a factor that grows with the number of keys, they win in the end.
#
# So a known name is needed, and in a softmax it is not all: the names that training did not show must keep still as well. Lesson 3
# takes the softmax away, and then the names alone decide.

# %% [markdown]
# ## 9. Is it really the name? A negative control
#
# If `rpe` owes its success to the name 3, then the same head must fail when the names are moved. We shift its table by one row, so that
# what was learned for distance 3 stands at distance 4. All other weights stay.

# %%
head = heads["three back", "rpe"]
learned = head.positions.table.detach().clone()
print("length   as learned   moved by one")
for length in (8, 16, 128):
    right = exact_match(head, "three back", length)
    head.positions.table.data.copy_(learned.roll(1))
    moved = exact_match(head, "three back", length)
    head.positions.table.data.copy_(learned)
    print(f"{length:6}   {right:10.2f}   {moved:12.2f}")

# %% [markdown]
# ## 10. What this does not show
#
# - One head, one layer, one seed, two tasks that read one key each. Deeper models can build positions out of the causal mask, and can
#   do without an embedding more often.
# - The names of `ape` and the doors of `embed` are not the same thing: a vector added at the input also changes what is read, not only where.
# - ALiBi was made for language models, where near words matter more; "three back" is not its field.
# - With longer training texts, T5's far buckets would be trained, too. Put `TRAIN_LENGTH = 64` and look.
# - A task that reads key i // 2 has no constant name in any of the four relations. Add it to `sources` and try. Lesson 3 returns to it.

# %% [markdown]
# ## Sources
#
# - Vaswani et al., *Attention Is All You Need* (2017), arXiv 1706.03762: attention, and absolute positions as sines.
# - Gehring et al., *Convolutional Sequence to Sequence Learning* (2017), arXiv 1705.03122: learned absolute positions.
# - Shaw et al., *Self-Attention with Relative Position Representations* (2018), arXiv 1803.02155: relative positions.
# - Raffel et al., *Exploring the Limits of Transfer Learning* (2020), arXiv 1910.10683: T5 and its buckets.
# - Press et al., *Train Short, Test Long* (2022), arXiv 2108.12409: ALiBi.
# - Su et al., *RoFormer* (2021), arXiv 2104.09864: RoPE.
# - Kazemnejad et al., *The Impact of Positional Encoding on Length Generalization in Transformers* (2023), arXiv 2305.19466:
#   compares them, and none, on many small tasks.
# - Chen, Liang and Lin, *On the Limitations and Capabilities of Position Embeddings for Length Generalization* (2025), arXiv
#   2510.04130: reading embeddings as positional relation functions is after them. The factor of `rpe`, the tasks and all numbers are the course's own.
#
# Next: exercise 2, `exercises/02_position_embeddings.ipynb`, where you build five embeddings yourself.
