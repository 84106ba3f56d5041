"""Lesson 3. Attention by position only: built by hand, fitted by hand, and which names carry over.

Nothing in the text may state a measured number: the cells print them.
"""

# %% [markdown]
# # Lesson 3: POLA, attention by position only
#
# **The claim.** A layer that mixes its inputs by position alone learns one number for each name of a pair of positions, so it is right at a
# new length exactly where old names still ask for what training taught, and new names ask for nothing.
#
# Time: about 35 minutes; the code runs in a few seconds. You need lesson 2: a position embedding gives each pair of positions a name.

# %%
import numpy as np
import torch

from lgcourse import relations, theory
from lgcourse.show import operators_figure
from lgcourse.show.widgets import figure_html

# %% [markdown]
# ## 1. Two perfect layers
#
# Take an attention head and throw away almost everything: the tokens, the queries and keys, the softmax. What is left is one number for
# each *name* that a pair (i, j) can have. The output at place i adds up the inputs before it, each times the number of its pair.
#
# Such a layer is to learn this *target*:
#
# $$y_i = x_i - \tfrac12\, x_{i-1} + 2\, x_{i-3}$$
#
# (Inputs before the start are left out.) We write a target as a function: what multiple of $x_j$ goes into $y_i$?


# %%
def band(i, j):
    """Return the coefficient of x_j in y_i: distances 0, 1 and 3 carry something."""
    return {0: 1, 1: -0.5, 3: 2}.get(i - j, 0)


# %% [markdown]
# Two layers learn it. They differ in the names. The first calls each pair by both positions, the second by its distance. Training
# shows random sequences of length 1 to 8.

# %%
TRAIN, LONGEST = range(1, 9), 200  # lengths in training; the longest that we shall test
names = {
    "pair": lambda i, j: (i, j),
    "rpe": lambda i, j: i - j,
}


def numbered(name, length):
    """Return a table [l l] with a number for each name, in the order in which names appear."""
    known = {}
    ids = torch.zeros(length, length, dtype=torch.long)
    for i in range(length):
        for j in range(i + 1):
            ids[i, j] = known.setdefault(name(i, j), len(known))
    return ids


def table(target, length):
    """Return the coefficients of a target, [l l]; rows are the places i."""
    rows = [[target(i, j) if j <= i else 0 for j in range(length)] for i in range(length)]
    return torch.tensor(rows, dtype=torch.float32)


class Layer:
    """One number for each name, and nothing else."""

    def __init__(self, kind):
        self.ids = numbered(names[kind], LONGEST)
        self.relation = relations.Table(self.ids, kind)  # for the pictures below
        self.weight = torch.zeros(int(self.ids.max()) + 1, requires_grad=True)

    def coefficients(self, n):
        """Return what multiple of x_j goes into y_i, as [n n 1 1]."""
        return self.weight[self.ids[:n, :n]].tril()[:, :, None, None]

    def __call__(self, x):
        return x @ self.coefficients(x.shape[1])[:, :, 0, 0].T  # b l


layers = {}


def train(kind, target, steps=2000, learning_rate=0.05):
    """Train a layer on random sequences by plain gradient descent; keep it under its name."""
    layer, right = Layer(kind), table(target, max(TRAIN))
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        n = int(torch.randint(1, 9, (), generator=generator))
        x = torch.randn(32, n, generator=generator)
        loss = ((layer(x) - x @ right[:n, :n].T) ** 2).sum(dim=1).mean()
        (gradient,) = torch.autograd.grad(loss, layer.weight)
        with torch.no_grad():
            layer.weight -= learning_rate * gradient
    layers[kind] = layer
    print(f"{kind:5} {len(layer.weight):6} numbers, last loss {loss.item():.4f}")


# %% [markdown]
# The next cell takes about 3 seconds.

# %%
train("pair", band)
train("rpe", band)

# %% [markdown]
# Both losses are gone. Now 100 fresh sequences of each of five lengths. How far off is the worst output?

# %%
right = table(band, LONGEST)
print("length", "".join(f"{n:8}" for n in (4, 8, 9, 16, LONGEST)))
for kind, layer in layers.items():
    row = []
    for n in (4, 8, 9, 16, LONGEST):
        x = torch.randn(100, n, generator=torch.Generator().manual_seed(n))
        row.append((layer(x) - x @ right[:n, :n].T).abs().max().item())
    print(f"{kind:6}", "".join(f"{error:8.3f}" for error in row))

# %% [markdown]
# One layer fails at length 9, one step beyond its training. The other is right at every length that we asked for. Each of them reached a
# perfect score in training. And the one that fails has far more numbers to learn with.

# %% [markdown]
# ## 2. The picture
#
# One square for each pair: rows are the places i, columns the places j. Equal coefficients have one colour and one number; zero is
# blank. On the left is what the target wants at length 12, on the right what the layer does. Framed squares are wrong.

# %%
figure_html(operators_figure(band, 12, layers["pair"], title="names are pairs"), dpi=80)

# %%
figure_html(operators_figure(band, 12, layers["rpe"], title="names are distances"), dpi=80)

# %% [markdown]
# From row 8 on, the first layer gives nothing at all. Its names there are new: training never met them, so their numbers never moved
# from zero. The second layer has no new name where the target wants something. Distances from 8 on are new to it, too; but there
# the target wants zero, and zero is what a new name gives.

# %% [markdown]
# ## 3. The formula
#
# The layer is called *Position-Only Linear Attention*, POLA. Its inputs may be vectors; then the number is a matrix $W_k$, an
# *operator*, one for each name k. Write $\phi(i, j)$ for the name of a pair:
#
# $$y_i = \sum_{j \le i} W_{\phi(i, j)}\; x_j$$
#
# What is learned are the operators W. What the position embedding contributes are the names $\phi$. In plain loops:


# %%
def forward(x, weight, name):
    """Return y_i = sum over j <= i of W[name of (i, j)] x_j; x is [l d], each W is [p d]."""
    outputs = []
    for i in range(len(x)):
        y = 0
        for j in range(i + 1):
            y = y + weight[name(i, j)] @ x[j]
        outputs.append(y)
    return torch.stack(outputs)


# %% [markdown]
# Try it with vectors of width 2, and with another name than above: whether i - j is even or odd. "Even" turns a vector by a right angle,
# "odd" halves it.

# %% tags=["nbval-check-output"]
operators = {0: torch.tensor([[0.0, -1.0], [1.0, 0.0]]), 1: torch.eye(2) / 2}
x = torch.tensor([[1.0, 0.0], [0.0, 4.0], [2.0, 2.0]])
print(forward(x, operators, lambda i, j: (i - j) % 2))

# %% [markdown]
# Check the second row by hand: j = 0 is odd, j = 1 is even. Then change a name or an operator, and predict the rows before you run it.
#
# The layer is *linear*: no softmax, nothing that depends on the content of x. So everything about it can be worked out. That is why we
# study it.

# %% [markdown]
# ## 4. What training does: a mean
#
# In section 1 gradient descent found the numbers. Where does it end? Feed the layer the input that is 1 at place j and 0 elsewhere. Then
# $y_i$ *is* the coefficient of the pair (i, j). So to fit all sequences of length n is to fit all n(n+1)/2 squares of the picture:
#
# $$\text{loss} = \sum_{n} \sum_{j \le i < n} \big( W_{\phi(i, j)} - A(i, j) \big)^2$$
#
# Here $A(i, j)$ is the coefficient that the target wants. Each name has a group of squares to itself, and the groups do not meet. So the
# best number for a name is the one with the least squared distance to its group: **the mean of what its squares ask for**. And a name
# without squares has no part in the loss. It stays where it started, at zero. (Each length shows its squares once more: the square (0, 0) is
# in its group once for every length.)


# %%
def fit(name, target, lengths):
    """Return the number of each name: the mean over all squares that have it."""
    asked = {}
    for n in lengths:
        for i in range(n):
            for j in range(i + 1):
                asked.setdefault(name(i, j), []).append(target(i, j))
    return {k: sum(values) / len(values) for k, values in asked.items()}


# %% tags=["nbval-check-output"]
print("distances:", fit(lambda i, j: i - j, band, TRAIN))
print("one name: ", fit(lambda i, j: "any", band, TRAIN))

# %% [markdown]
# With distances every group asks for one thing, and the fit is exact. With one name for all, the number is a compromise that suits
# nobody.
#
# Is that what gradient descent found? Compare with the layer of section 1:

# %%
means = fit(names["rpe"], band, TRAIN)
apart = max(abs(layers["rpe"].weight[k].item() - mean) for k, mean in means.items())
print(f"largest difference between a mean and a trained number: {apart:.6f}")

# %% [markdown]
# ## 5. Three more ways to the same numbers
#
# The loss can be written with one matrix. C has a row for each square and a column for each name; the row of a square is 1 at its name
# and 0 elsewhere. The vector A holds what the squares ask for. Then the loss is $|C W - A|^2$, and W can be found
#
# - by *least squares*, as any library does it. If there are many best solutions, it takes the one of smallest norm;
# - by *gradient descent from zero*: $W \leftarrow W - \eta\, C^\top (C W - A)$;
# - by gradient descent from *somewhere else*.
#
# The names are the distances 0 to 11. Training, at lengths up to 8, shows the first eight of them. Before you run it: which rows of which
# columns will differ?


# %%
def rows(name, target, lengths, columns):
    """Return C [squares, names] and A [squares]."""
    pairs = [(i, j) for n in lengths for i in range(n) for j in range(i + 1)]
    C = np.array([[float(name(i, j) == k) for k in columns] for i, j in pairs])
    return C, np.array([float(target(i, j)) for i, j in pairs])


def descend(C, A, start, steps=500):
    """Return where gradient descent ends."""
    W, rate = start.copy(), 1 / np.linalg.norm(C, 2) ** 2
    for _ in range(steps):
        W = W - rate * C.T @ (C @ W - A)
    return W


# %% tags=["nbval-check-output"]
C, A = rows(names["rpe"], band, TRAIN, columns=range(12))
ways = {
    "mean": np.array([means.get(k, 0.0) for k in range(12)]),
    "least squares": np.linalg.lstsq(C, A, rcond=None)[0],
    "from zero": descend(C, A, np.zeros(12)),
    "from elsewhere": descend(C, A, np.random.default_rng(0).normal(size=12)),
}
print("distance " + "".join(f"{way:>16}" for way in ways))
for k in range(12):
    print(f"{k:8} " + "".join(f"{round(W[k], 3) + 0.0:16.3f}" for W in ways.values()))

# %% [markdown]
# The first three columns agree. The last one agrees where training looked. Beyond, it keeps the numbers that it started with: nothing in the
# loss moves them. They do no harm at length 8, and ruin length 9. So the start at zero is part of the learner: from zero,
# gradient descent ends in the solution of smallest norm, here and for every linear model.
#
# The library's POLA does the same, for any relation and for operators of any size:

# %% tags=["nbval-check-output"]
model, residual = theory.POLA(relations.build("rpe", positions=LONGEST), 1, 1).fit(band, TRAIN)
print("the same numbers:", all(model.weight[k].item() == mean for k, mean in means.items()))
print("error on training lengths:", residual)
print("error at length 200:      ", model.error(band, [LONGEST]))

# %% [markdown]
# ## 6. Your prediction
#
# Four targets. `band` wants three different coefficients; the others want 1 at some pairs and 0 at the rest:
#
# | target | $y_i$ |
# |---|---|
# | `total` | $x_0 + x_1 + \dots + x_i$ |
# | `first` | $x_0$ |
# | `band` | as above |
# | `half` | $x_{\lfloor i/2 \rfloor}$ |
#
# Five ways to name a pair:
#
# | name | the pair (i, j) is called | whose is it? |
# |---|---|---|
# | `none` | always the same | no position embedding (NoPE) |
# | `ape` | j | absolute positions of the keys (APE) |
# | `pair` | (i, j) | absolute positions of queries and keys; a finer APE |
# | `rpe` | i - j | relative positions (RPE) |
# | `ideal` | the coefficient that the target wants there | an ideal position embedding (IPE), made by someone who knows the target |
#
# Each is fitted on lengths up to 8. **Before you go on, commit yourself.** For each target: with which names is the layer exact on all
# lengths up to 16? Put a set, for instance `{"rpe", "ideal"}`, or `set()` for none.

# %%
prediction = {
    "total": None,
    "first": None,
    "band": None,
    "half": None,
}

# %% [markdown]
# ## 7. The experiment
#
# The measure is the largest error of a coefficient. As a baseline: a layer that has learned nothing and is zero everywhere.


# %%
def total(i, j):
    return 1


def first(i, j):
    return int(j == 0)


def half(i, j):
    return int(j == i // 2)


def ways_to_name(target):
    return {
        "none": lambda i, j: "any",
        "ape": lambda i, j: j,
        "pair": lambda i, j: (i, j),
        "rpe": lambda i, j: i - j,
        "ideal": target,
    }


def error(weight, name, target, lengths):
    """Return the largest difference between a coefficient of the layer and the target's."""
    return max(
        abs(weight.get(name(i, j), 0) - target(i, j))
        for n in lengths
        for i in range(n)
        for j in range(i + 1)
    )


TEST = range(1, 17)
targets = {"total": total, "first": first, "band": band, "half": half}
trained, tested = {}, {}
for word, target in targets.items():
    for kind, name in ways_to_name(target).items():
        weight = fit(name, target, TRAIN)
        trained[word, kind] = error(weight, name, target, TRAIN)
        tested[word, kind] = error(weight, name, target, TEST)

# %% tags=["nbval-check-output"]
kinds = list(ways_to_name(band))
shown = (("lengths 1..8, as in training", trained, TRAIN), ("lengths 1..16", tested, TEST))
for title, measured, lengths in shown:
    print(f"largest error on {title}\n         {'nothing':>8}" + "".join(f"{k:>8}" for k in kinds))
    for word, target in targets.items():
        nothing = error({}, target, target, lengths)  # no name has a number yet
        print(f"{word:9}{nothing:8.2f}" + "".join(f"{measured[word, k]:8.2f}" for k in kinds))

# %% [markdown]
# And your prediction?

# %%
for word, said in prediction.items():
    exact = {kind for kind in kinds if tested[word, kind] == 0}
    verdict = (
        "no prediction made" if said is None else "as predicted" if said == exact else "not so"
    )
    print(f"{word:6} exact: {', '.join(sorted(exact)):16} ({verdict})")

# %% [markdown]
# Each of the usual ways to name has a target of its own, and fails at the others: `none` has `total`, `ape` has `first`, `rpe` has `band`.
# And `half` has none of them. The finest names, `pair`, fit every target in training and carry over to nothing. Only the names that were
# made for the target are exact in every row.
#
# Compare the two tables. There are **two ways to fail**:
#
# - *One name asks for two things.* If training shows both, the layer is wrong in training already: its number is a mean that suits nobody.
#   If the second thing comes later, the layer is wrong later. More data do not help; finer names do.
# - *A name is new.* The layer may be perfect in training. It is wrong beyond, wherever a new name asks for something. Coarser names help.
#
# So a good embedding sits between the two: **fine enough to tell apart what must be told apart, and no finer.** Here is `half` under
# `rpe`, which fails in both ways. Near the diagonal a distance asks now for 1, now for 0, and gets a mean. In the lower rows the
# target wants distances that asked for nothing in training (5 to 7), and at last one that training did not show (8):

# %%
rpe = theory.POLA(relations.build("rpe", positions=16), 1, 1).fit(half, TRAIN)
figure_html(operators_figure(half, 16, rpe, title="half, with names that are distances"), dpi=80)

# %% [markdown]
# **Change it.** Write names of your own and run the next cell again. Can you find names, other than the ideal ones, that are exact for
# `half`? And a riddle: there is just one target for which `ape` and `rpe` are both exact in this experiment. Which, and why?


# %%
def mine(i, j):
    return i + j


weight = fit(mine, half, TRAIN)
print(
    f"training {error(weight, mine, half, TRAIN):.2f}, test {error(weight, mine, half, TEST):.2f}"
)

# %% [markdown]
# ## 8. A negative control
#
# Is `ideal` exact because it is made for *this* target? Then the names that were made for another one must fail. Rows are targets,
# columns say for which target the names were made.

# %% tags=["nbval-check-output"]
print("target   " + "".join(f"{'for ' + made_for:>12}" for made_for in targets))
for word, target in targets.items():
    row = [error(fit(name, target, TRAIN), name, target, TEST) for name in targets.values()]
    print(f"{word:9}" + "".join(f"{e:12.2f}" for e in row))

# %% [markdown]
# On the diagonal there are zeros, and outside of it there are errors, with one row as an exception. `total` wants one and the same coefficient at each
# pair. Names that tell more apart than that do no harm as long as training shows all of them.

# %% [markdown]
# ## 9. When even ideal names fail
#
# One more target: $y_i = \sum_{j \le i} \left(\tfrac45\right)^{i-j} x_j$. The past fades.


# %%
def fading(i, j):
    return 0.8 ** (i - j)


# %% tags=["nbval-check-output"]
for kind, name in ways_to_name(fading).items():
    weight = fit(name, fading, TRAIN)
    errors = [error(weight, name, fading, lengths) for lengths in (TRAIN, TEST)]
    print(f"{kind:6} training {errors[0]:.3f}, lengths up to 16 {errors[1]:.3f}")

# %% [markdown]
# Each longer length wants a coefficient that no shorter one has. So it gets a new name, and a new name gives zero. No naming can
# help: someone would have to hand out a number that was never learned. How many different operators does a target want? That
# number is the subject of lesson 4.
#
# There is a way around, if we allow more than names. Let the position embedding give each pair a *code*: not one of many names, but a few
# numbers $c_1, \dots, c_r$, by which the operators are mixed:
#
# $$y_i = \sum_{j \le i} \Big( \sum_k c_k(i, j)\, W_k \Big)\, x_j$$
#
# Names are the special case in which one of the $c_k$ is 1 and the others are 0. In section 5 each row of C was such a code. All that we said
# there stays true with any other code: the fit is least squares, and of all best solutions the one of smallest norm.
#
# For `fading` take one number, $c(i, j) = \left(\tfrac45\right)^{i-j}$. To see the smallest norm at work, give the same number twice:


# %% tags=["nbval-check-output"]
def twice(query, key, scale):
    """Return the code (c, c) with c = 0.8^(i - j), as [q k 2]."""
    c = 0.8 ** (query[:, None] - key[None, :]).double()
    return torch.stack([c, c], dim=-1)


coded, residual = theory.CodedPOLA(twice, 1, 1, dtype=torch.float64).fit(fading, TRAIN)
print("weights:", [round(w, 6) for w in coded.weight.flatten().tolist()])
print(f"error on lengths up to 16: {coded.error(fading, TEST):.6f}")

# %% [markdown]
# Any two weights with the sum 1 would do. The smallest ones are two halves. And the layer is exact at every length: the code knows how
# the past fades, and the layer had to learn one number only.
#
# But look who did the work. The code knew the target's very numbers. The position embedding does not compute anything new for
# the layer; it tells it *where to use* what it has.

# %% [markdown]
# ## What this does not show
#
# - POLA is not a Transformer. It has no softmax and one layer, and it cannot look at content. What carries over from here to
#   Transformers is the question about names; from lesson 6 on we ask it there.
# - The ideal names came from someone who knows the target. How a model may find them is a matter of lessons 10 and 11.
# - The fit was without noise and saw every square. If training leaves squares out, names are new that need not have been.
# - Another learner might guess better than zero at new names. But it would have to be told so by something else than the data: section 5
#   shows that data do not move them.
# - An error of zero here means exact numbers. A layer may be good enough with less; look at `fading`, whose errors are small.

# %% [markdown]
# ## Sources
#
# - Chen, Liang and Lin, *On the Limitations and Capabilities of Position Embeddings for Length Generalization* (2025), arXiv
#   2510.04130: the model, Position-Only Linear Attention, and the ideal position embedding are after them. The definitions here are the
#   course's own formalisation; all numbers are those of the run above.
# - Zhang et al., *Understanding deep learning requires rethinking generalization* (2017), arXiv 1611.03530: gradient descent from zero
#   ends in the solution of smallest norm (section 5).
# - Katharopoulos et al., *Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention* (2020), arXiv 2006.16236:
#   attention without softmax.
#
# Next: exercise 3, `exercises/03_pola.ipynb`.
