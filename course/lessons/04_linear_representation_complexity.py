"""Lesson 4. How many operators does a linear target need? Counted in two ways, checked by brute force.

Nothing in the text may state a measured number: the cells print them.
"""

# %% [markdown]
# # Lesson 4: Linear representation complexity
#
# **The claim.** Count the different operators that a target uses up to each length: if the count grows after training, no way to name pairs
# carries the target over, and if it stays, some way does, though it need not be yours.
#
# The count needs no training and no model. It is a property of the target alone.
#
# Time: about 35 minutes; the code runs in a few seconds. You need lesson 3: POLA, and the two ways to fail.

# %%
import numpy as np
import torch

from lgcourse import relations, theory
from lgcourse.show import complexity_figure, operators_figure
from lgcourse.show.widgets import figure_html

# %% [markdown]
# ## 1. Which one is simpler?
#
# Two targets:
#
# - `prefix`: $y_i = x_0 + x_1 + \dots + x_i$. The longer the sequence, the more it has to read.
# - `weighted`: $y_i = (i+1)\, x_i$. It never reads anything but the place where it stands.
#
# Which one carries over to longer sequences more easily? Places count from 0. Write down what multiple of $x_j$ goes into $y_i$, the
# coefficient of lesson 3. It is called the *operator* of the pair (i, j), as with vectors it is a matrix.
# Targets may also depend on the length n. (Figures and the library call n the scale.)


# %%
def prefix(i, j, n):
    return 1


def weighted(i, j, n):
    return i + 1 if i == j else 0


def show(target, n):
    """Print the operators of a target at one length; rows are the places i."""
    for i in range(n):
        print("".join(f"{target(i, j, n) or '.':>3}" for j in range(i + 1)))


# %% tags=["nbval-check-output"]
show(prefix, 5)
print()
show(weighted, 5)

# %% [markdown]
# Now count. How many *different* numbers stand there, zero aside, at all lengths up to n?


# %%
def key(operator):
    """Return an operator, a number or a matrix, as a tuple of numbers."""
    return tuple(np.ravel(operator).tolist())


def operators(target, n):
    """Return the different non-zero operators of a target on all lengths up to n."""
    found = {key(target(i, j, m)) for m in range(1, n + 1) for i in range(m) for j in range(i + 1)}
    return {operator for operator in found if any(operator)}


# %% tags=["nbval-check-output"]
for target in (prefix, weighted):
    counts = [len(operators(target, n)) for n in (1, 2, 4, 8, 16, 32)]
    print(f"{target.__name__:9} up to length 1, 2, 4, 8, 16, 32:", counts)

# %% [markdown]
# `prefix` reads ever more and needs one operator for ever. `weighted` reads one place and needs a new operator at each length. A layer that has
# learned to sum 8 numbers has all it needs to sum 32. A layer that has learned to multiply by 1, 2, ..., 8 has not learned to
# multiply by 9.

# %% [markdown]
# ## 2. The picture
#
# Equal operators have one colour and one number; zero is blank. The number in a square is a label, counted from 0. It is not the value of
# the operator: that stands in the list beside the picture.

# %%
figure_html(operators_figure(prefix, 10, title="y_i = x_0 + ... + x_i"), dpi=80)

# %%
figure_html(operators_figure(weighted, 10, title="y_i = (i+1) x_i"), dpi=80)

# %% [markdown]
# The size of the coloured area does not count, and neither does its shape. What counts is the number of colours.

# %% [markdown]
# ## 3. The count has a name, and a meaning
#
# The number of different non-zero operators up to length n is the *linear representation complexity*, LRC, of the target:
#
# $$\mathrm{LRC}(A, n) = \big|\{\, A(i, j, m) \ne 0 \;:\; j \le i < m \le n \,\}\big|$$
#
# Why this count? Take a POLA, which has one operator for each name of a pair, and one more name, "other", whose operator is zero.
# How many names does it need to be exact up to length n?
#
# - *Not fewer than LRC.* Pairs with one name get one operator. So pairs that want different operators need different names.
# - *Not more.* Let the name of a pair be the number of the operator that it wants.
#
# So **LRC is the least number of names, besides "other", with which the target can be represented.** That is a claim about all ways to
# name pairs. Let us not believe it, and try them all.

# %% [markdown]
# ## 4. All names there are
#
# At length 3 there are six pairs. (If the target does not depend on n, they hold the shorter lengths as well.) A way to name them puts pairs into
# groups; one of the groups, number 0, is "other". What a group is called does not matter, so we number names in the order in which they
# appear. (So here the labels of operators begin with 1, and not with 0 as in the picture.)


# %%
def all_relations(pairs):
    """Yield every way to name some pairs: 0 is "other", names 1, 2, ... in order of appearance."""

    def longer(ids):
        if len(ids) == pairs:
            yield ids
            return
        for k in range(max(ids, default=0) + 2):
            yield from longer([*ids, k])

    yield from longer([])


def can_represent(ids, wanted):
    """Return whether a POLA with these names can be exact: each name has one operator, 0 has zero."""
    operator = {0: 0}
    return all(operator.setdefault(k, a) == a for k, a in zip(ids, wanted, strict=True))


# %% tags=["nbval-check-output"]
print("two pairs:", list(all_relations(2)))
print("six pairs:", sum(1 for _ in all_relations(6)), "ways to name them")

# %% [markdown]
# Some more targets, and the question for each: of all these ways, how many can represent it, and with how few names?


# %%
def copy(i, j, n):
    return int(j == i)


def shift(i, j, n):
    return int(j == i - 1)


def half(i, j, n):
    return int(j == i // 2)


def band(i, j, n):
    return {0: 1, 1: -0.5, 3: 2}.get(i - j, 0)


def decay(i, j, n):
    return 0.8 ** (i - j)


table = np.random.default_rng(0).random((64, 64)).tolist()


def random(i, j, n):
    """A new random number for each pair."""
    return table[i][j]


# %% tags=["nbval-check-output"]
print("target    ways that can   fewest names   LRC counted   LRC of the library")
for target in (copy, shift, prefix, half, band, weighted, decay, random):
    wanted = [target(i, j, 3) for i in range(3) for j in range(i + 1)]
    able = [ids for ids in all_relations(6) if can_represent(ids, wanted)]
    fewest = min(max(ids) for ids in able)
    counted, library = len(operators(target, 3)), theory.lrc(target, 3)
    print(f"{target.__name__:9} {len(able):13} {fewest:14} {counted:13} {library:20}")

# %% [markdown]
# The last three columns agree. And the first one says something, too: of these targets, those with more operators leave fewer ways of
# naming that are fine enough. For `random` one way is left. It gives each pair a name of its own.
#
# **A trap.** To count different numbers one must know when two numbers are equal. In this target each operator is one tenth:


# %% tags=["nbval-check-output"]
def tenth(i, j, n):
    return 0.1 * (j + 1) / (j + 1)


print("different floats up to length 16:", len(operators(tenth, 16)))
print("LRC of the library:              ", theory.lrc(tenth, 16))

# %% [markdown]
# The library treats floats as equal if they differ by rounding alone (unless it is told otherwise), and is exact with whole numbers and
# fractions. Our count is not as wise, so we keep to targets whose equal operators come out equal.

# %% [markdown]
# ## 5. A second way to count
#
# Lesson 3 ended with a layer that mixes its operators by a *code*, some numbers for each pair, instead of choosing one by name. What does
# such a layer need?
#
# Here is a target with vectors of width 2. An input at distance k is turned by k radians (k times about 57 degrees):


# %%
def turning(i, j, n):
    c, s = np.cos(i - j), np.sin(i - j)
    return np.array([[c, -s], [s, c]])


# %% [markdown]
# No two distances have the same operator. But each of these operators is mixed from two:
#
# $$\begin{pmatrix} \cos k & -\sin k \\ \sin k & \cos k \end{pmatrix}
# = \cos k \begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix} + \sin k \begin{pmatrix} 0 & -1 \\ 1 & 0 \end{pmatrix}$$
#
# So a layer with *two* operators can do it at every length, if the code of a pair is (cos k, sin k). How few operators are enough in general?
# Stack all operators, flattened, as the rows of a matrix. A layer with r operators and a code of r numbers makes this stack as a product
#
# $$\underbrace{\text{stack}}_{\text{pairs} \times f} = \underbrace{\text{codes}}_{\text{pairs} \times r} \; \underbrace{\text{operators}}_{r \times f}$$
#
# where f is the number of entries of one operator. The least r for which a matrix is such a product is its **rank**. This is the
# second reading of LRC: the dimension of the space that the operators span.


# %%
def stack(target, n):
    """Return all operators of a target on lengths up to n, flattened, one in each row."""
    rows = [key(target(i, j, m)) for m in range(1, n + 1) for i in range(m) for j in range(i + 1)]
    return np.array(rows, dtype=float)


def rank(target, n):
    return int(np.linalg.matrix_rank(stack(target, n)))


# %% tags=["nbval-check-output"]
for target in (weighted, turning):
    print(target.__name__)
    print(
        "  operators up to 1, 2, 4, 8, 16:", [len(operators(target, n)) for n in (1, 2, 4, 8, 16)]
    )
    print("  rank      up to 1, 2, 4, 8, 16:", [rank(target, n) for n in (1, 2, 4, 8, 16)])

# %% [markdown]
# For numbers the rank is never more than 1, since any number is a multiple of any other that is not zero. So `weighted`, which is
# beyond all names, is easy for a code: it has to say i + 1.
#
# Is the rank really the least r? Again we do not want to believe it. The product with r operators that has the least squared error is
# known: it is made from the r largest singular values of the stack. How far is it from `turning`?

# %% tags=["nbval-check-output"]
whole = stack(turning, 16)
u, size, v = np.linalg.svd(whole, full_matrices=False)
for r in range(1, 4):
    best = u[:, :r] * size[:r] @ v[:r]
    print(f"r = {r}: largest error of the best product {abs(best - whole).max():.3f}")

# %% [markdown]
# Change `turning` to `band` and to `random` and run the last cell again. Which r is enough? Why, for targets made of numbers?

# %% [markdown]
# ## 6. Your prediction
#
# These are all our targets. The last four are new. An x before the first place counts as 0.
#
# | target | $y_i$ |
# |---|---|
# | `copy`, `shift` | $x_i$, and $x_{i-1}$ |
# | `prefix` | $x_0 + \dots + x_i$ |
# | `half` | $x_{\lfloor i/2 \rfloor}$ |
# | `band` | $x_i - \tfrac12 x_{i-1} + 2 x_{i-3}$ |
# | `decay` | distance k carries $(4/5)^k$ |
# | `weighted` | $(i+1)\, x_i$ |
# | `random` | each pair has a random number of its own |
# | `turning` | distance k turns by k radians |
# | `reverse` | $x_{n-1-i}$, where that place is not later than i; 0 elsewhere |
# | `weekday` | $(i \bmod 7)\, x_i$ |
# | `fresh` | distance k < 4 carries the k-th of four 2 x 2 matrices, none a mix of the others |
# | `units` | place i carries the 4 x 4 matrix that has a 1 at entry number i (mod 16), and 0 elsewhere |
#
# **Before you go on, commit yourself.** We go from length 8 to length 16. For each target: does the number of operators grow, and does the
# rank? Put `"neither"`, `"operators"` (they grow, the rank stays) or `"both"`.

# %%
prediction = {
    "copy": None,
    "shift": None,
    "prefix": None,
    "half": None,
    "band": None,
    "decay": None,
    "weighted": None,
    "random": None,
    "turning": None,
    "reverse": None,
    "weekday": None,
    "fresh": None,
    "units": None,
}

# %% [markdown]
# ## 7. The counts


# %%
def reverse(i, j, n):
    return int(i + j == n - 1)


def weekday(i, j, n):
    return i % 7 if i == j else 0


FOUR = np.array([[[1, 2], [0, 1]], [[0, 1], [1, 1]], [[2, 0], [1, -1]], [[1, -1], [1, 0]]])


def fresh(i, j, n):
    return FOUR[i - j] if i - j < 4 else 0 * FOUR[0]


def units(i, j, n):
    operator = np.zeros(16)
    operator[i % 16] = i == j
    return operator.reshape(4, 4)


TARGETS = {
    target.__name__: target
    for target in (
        copy, shift, prefix, half, band, decay, weighted, random, turning, reverse, weekday, fresh,
        units,
    )
}  # fmt: skip
TRAINED, TEST = 8, 16
counted = {
    name: {n: (len(operators(target, n)), rank(target, n)) for n in (TRAINED, TEST)}
    for name, target in TARGETS.items()
}

# %% tags=["nbval-check-output"]
grows = {}
print("target     operators 8 -> 16     rank 8 -> 16")
for name, row in counted.items():
    (few, low), (many, high) = row[TRAINED], row[TEST]
    grows[name] = "both" if high > low else "operators" if many > few else "neither"
    print(f"{name:9} {few:9} -> {many:3} {low:13} -> {high:2}    grows: {grows[name]}")

# %%
for name, said in prediction.items():
    verdict = (
        "no prediction made"
        if said is None
        else "as predicted"
        if said == grows[name]
        else "not so"
    )
    print(f"{name:9} predicted: {said}; counted: {grows[name]} ({verdict})")

# %% [markdown]
# The library counts the same, at all lengths in one pass. Each curve is an LRC up to length n. It never falls.

# %%
for name, target in TARGETS.items():
    for n, both in counted[name].items():
        assert both == (theory.lrc(target, n), theory.lrc(target, n, kind="rank")), name
shown = ("prefix", "band", "reverse", "weekday", "fresh", "weighted")
curves = {name: theory.lrc_curve(TARGETS[name], TEST) for name in shown}
figure_html(complexity_figure(curves, TRAINED, title="LRC, the number of operators"), dpi=90)

# %% [markdown]
# `reverse` may surprise. It depends on n: at another length the same pair wants something else. But there is one operator to learn, and what changes is
# where it is used. And `weekday` grows only until it has met all days.

# %% [markdown]
# ## 8. What LRC says about longer sequences
#
# Now we fit POLAs on lengths up to 8 and measure them on lengths up to 16. The measure is the largest error of a coefficient. Two layers are made by
# someone who knows the whole target:
#
# - *ideal names*: the name of a pair is the number of the operator that it wants, at all lengths up to 16;
# - *ideal code*: the code of a pair says how to mix the operator that it wants from those that training showed, as well as that is
#   possible.
#
# And `rpe`, names by distance, is an embedding that one might really use.


# %%
def fitted_error(target, model):
    """Fit a model on short lengths and return its largest error on all lengths up to 16."""
    model.fit(target, range(1, TRAINED + 1))
    return model.error(target, range(1, TEST + 1))


measured = {}
for name, target in TARGETS.items():
    width = int(np.sqrt(np.size(target(0, 0, 1))))
    measured[name] = {
        "names": fitted_error(
            target, theory.POLA(theory.ideal_relation_of(target, TEST), width, width, torch.float64)
        ),
        "rpe": fitted_error(
            target,
            theory.POLA(relations.build("rpe", positions=TEST), width, width, torch.float64),
        ),
        "code": fitted_error(
            target,
            theory.CodedPOLA(theory.ideal_code_of(target, TRAINED), width, width, torch.float64),
        ),
    }

# %% tags=["nbval-check-output"]
print("target    grows        ideal names      rpe    ideal code")
for name, row in measured.items():
    print(
        f"{name:9} {grows[name]:11} {row['names']:12.3f} {row['rpe']:8.3f} {row['code'] + 0.0:13.3f}"
    )

# %% [markdown]
# Read it column by column.
#
# - **Ideal names** are exact just where the number of operators stays. Where it grows, they fail, and so do the names of `rpe`. These may come
#   closer: look at `weighted` and `random`. Lesson 5 proves that no names at all are exact there.
# - **rpe** fails in some rows where the number stays: in `prefix`, `half`, `reverse` and `weekday`. That LRC stays means that
#   suitable names *exist*. These are not the ones.
# - **An ideal code** is exact just where the rank stays. That is a milder condition, and `units` violates it: each new place needs an operator that
#   is no mix of the old ones.
#
# So a growing LRC is a barrier, and a constant LRC is an open door. Lesson 5 proves both. Whether one walks through depends on the names.

# %% [markdown]
# ## 9. Better than what? A baseline and a negative control
#
# Could another count do as well? For each target we ask: are ideal names exact at 16? And we let six rules answer:
#
# - *LRC*: yes, if the number of operators does not grow from 8 to 16;
# - *always yes* and *always no*: the baselines;
# - *distances*: yes, if the number of distances at which the target wants something does not grow;
# - *pairs*: yes, if the number of pairs at which it wants something does not grow;
# - *LRC of another*: the negative control. Each target gets the answer that belongs to another one, k places further in the list; the mean over all
#   k.


# %%
def counts_of(target, what):
    """Return how many distances, or pairs, want something up to length 8 and up to length 16."""
    result = []
    for longest in (TRAINED, TEST):
        found = {
            what(i, j)
            for m in range(1, longest + 1)
            for i in range(m)
            for j in range(i + 1)
            if np.any(target(i, j, m))
        }
        result.append(len(found))
    return result


def stays(counts):
    return counts[0] == counts[1]


names = list(TARGETS)
by_lrc = {name: grows[name] == "neither" for name in names}
rules = {
    "LRC": by_lrc,
    "always yes": dict.fromkeys(names, True),
    "always no": dict.fromkeys(names, False),
    "distances": {n: stays(counts_of(t, lambda i, j: i - j)) for n, t in TARGETS.items()},
    "pairs": {n: stays(counts_of(t, lambda i, j: (i, j))) for n, t in TARGETS.items()},
}

# %% tags=["nbval-check-output"]
exact = {name: measured[name]["names"] < 1e-9 for name in names}


def right(answers):
    """Return for how many targets a rule is right."""
    return sum(answers[name] == exact[name] for name in names)


for rule, answers in rules.items():
    print(f"{rule:14} right for {right(answers):4} of {len(names)} targets")
moved = [
    right({name: by_lrc[names[(at + k) % len(names)]] for at, name in enumerate(names)})
    for k in range(1, len(names))
]
print(f"LRC of another right for {sum(moved) / len(moved):4.1f} of {len(names)} targets")

# %% [markdown]
# How many distances or pairs a target uses says little. What it wants there does. (That the first row has no mistake is no luck. It is a theorem,
# and the next lesson has its proof.)

# %% [markdown]
# ## 10. From which length on?
#
# `weekday` has a constant LRC as soon as it has met all days. So it must matter where training ends. Predict first, with ideal names: what is the
# least length up to which training must go, so that the error at lengths up to 16 is zero?

# %%
first_exact = None  # your prediction

# %% tags=["nbval-check-output"]
phi, errors = theory.ideal_relation_of(weekday, TEST), {}
for longest in range(3, 10):
    model, residual = theory.POLA(phi, 1, 1).fit(weekday, range(1, longest + 1))
    errors[longest] = model.error(weekday, range(1, TEST + 1))
    count = theory.lrc(weekday, longest)
    print(f"trained up to {longest}: LRC {count}, error up to 16: {errors[longest]:.0f}")

# %%
print("you said", first_exact, "and it is", min(n for n, error in errors.items() if error == 0))

# %% [markdown]
# Under ideal names, training must have met each operator once. More than that it need not do, and less is not enough. Other names may need more.
#
# **Change it.** Write a target of your own and look at its curve before you fit anything. Can you make one whose LRC grows only at every
# second length? One that looks constant up to 8 and grows at 9?


# %%
def mine(i, j, n):
    return (i - j) % 3


print(theory.lrc_curve(mine, 16))
print("ideal names, error up to 16: ", end="")
print(fitted_error(mine, theory.POLA(theory.ideal_relation_of(mine, TEST), 1, 1)))

# %% [markdown]
# ## What this does not show
#
# - LRC is about *linear* targets and one layer without content. For tasks that are solved token by token there is another count,
#   with the same idea: lesson 6.
# - It is about exactness. `decay` has a growing LRC, and yet its error is smaller than those of the other targets that grow, since its new operators are small.
# - It looks at the whole target, at lengths that training does not show. From training data alone nobody can tell whether LRC will grow.
# - It is a limit of *learning* from short lengths, not of what a layer can represent: with enough names each of these targets can be represented
#   at length 16.
# - The ideal names and codes were made by someone who knows the target up to length 16.
# - "All ways to name pairs" were tried at length 3. For all lengths it takes the two lines of section 3.

# %% [markdown]
# ## Sources
#
# - Chen, Liang and Lin, *On the Limitations and Capabilities of Position Embeddings for Length Generalization* (2025), arXiv
#   2510.04130: linear representation complexity and what it limits are after them. The two readings and the definitions here are the course's own
#   formalisation; all numbers are those of the run above.
# - Eckart and Young, *The approximation of one matrix by another of lower rank* (1936), Psychometrika 1: the best product with r operators, in
#   section 5.
#
# Next: exercise 4, `exercises/04_linear_representation_complexity.ipynb`. Then lesson 5, in which the limit is proved.
