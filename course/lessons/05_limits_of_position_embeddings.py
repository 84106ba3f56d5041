"""Lesson 5. What no position embedding can do for a linear target, and what a suitable one can.

Nothing in the text may state a measured number: the cells print them.
"""

# %% [markdown]
# # Lesson 5: What position embeddings can and cannot do
#
# **The claim.** A position embedding that names pairs leads each pair to an operator that training has shown; it never makes a new
# one. So it fails where longer inputs need a new operator, and where they need none, a suitable one exists.
#
# Time: about 35 minutes, all of it reading and thinking; the code runs in a few seconds. You need lessons 3 and 4: POLA, and the two
# readings of LRC.

# %%
import numpy as np
import torch

from lgcourse import relations, theory
from lgcourse.show import complexity_figure, operators_figure
from lgcourse.show.widgets import figure_html

# %% [markdown]
# ## 1. Two targets, and the wrong guess
#
# Both targets below are linear maps of a sequence. Both have one non-zero coefficient in each row.
#
# - `half`: $y_i = x_{\lfloor i/2 \rfloor}$. It reads further and further back. At a longer scale it reads from distances that no
#   short scale has.
# - `weighted`: $y_i = (i+1)\,x_i$. It always reads from the place where it stands.
#
# Which of them can be learned from short sequences? The second one looks easier: its reads never move. Here is a test of both.
# Someone who knows the whole target designs the position embedding. We may use only what training showed.


# %%
def half(i, j, n):
    """Return A(i, j, n), the coefficient of x_j in y_i."""
    return int(j == i // 2)


def weighted(i, j, n):
    return i + 1 if i == j else 0


def pairs(scales):
    """Yield every query i, key j <= i and scale n."""
    for n in scales:
        for i in range(n):
            for j in range(i + 1):
                yield i, j, n


def operators(target, scales):
    """Return the distinct operators of a target."""
    return {target(*pair) for pair in pairs(scales)}


# %% tags=["nbval-check-output"]
for target in (half, weighted):
    shown = operators(target, range(1, 9))  # scales 1 to 8: training
    needed = operators(target, [9])
    print(
        f"{target.__name__:9} training shows {shown}, scale 9 needs also {needed - shown or '{}'}"
    )

# %% [markdown]
# For `half` the designer has all that is needed. For `weighted` the coefficient 9 is missing. One step beyond training, no design
# can hand it out, because nobody has learned it. It is the *values* that count, not the distances.
#
# The rest of this lesson makes that a theorem, twice: what cannot be done, and what can.

# %% [markdown]
# ## 2. The picture
#
# One square per pair of a query (row) and a key (column). Equal operators have one colour and one number; zero is blank. In
# `half` the colour wanders, and it stays one colour:

# %%
figure_html(operators_figure(half, 12, title="y_i = x_(i//2)"))

# %% [markdown]
# In `weighted` the squares stay on the diagonal, and each one has a colour of its own:

# %%
figure_html(operators_figure(weighted, 12, title="y_i = (i+1) x_i"))

# %% [markdown]
# ## 3. The learner, built by hand
#
# A *relation* $\phi(i, j, n)$ gives each pair an id. POLA has one weight $W_k$ per id and computes
#
# $$y_i = \sum_{j \le i} W[\phi(i, j, n)]\; x_j .$$
#
# We let it fit the target on all scales up to 8. The fit is least squares from zero. With one id per pair that is simple: the weight
# of an id is the mean of the operators that it was asked for, and an id that training never showed keeps the weight 0.


# %%
def fit(phi, target, scales):
    """Return the weight of each id: the mean over its pairs."""
    asked = {}
    for pair in pairs(scales):
        asked.setdefault(phi(*pair), []).append(target(*pair))
    return {k: sum(values) / len(values) for k, values in asked.items()}


def error(weights, phi, target, scales):
    """Return the largest difference between a coefficient of the model and the target's."""
    return max(abs(weights.get(phi(*p), 0) - target(*p)) for p in pairs(scales))


# %% [markdown]
# Four relations. In lesson 2 APE was a vector per key, so a pair was named by j. Here APE names both positions of a pair, (i, j): that
# tells even more. The last relation is made for the target by someone who knows it: pairs with the same operator get the same id. The simplest name for an operator is the operator itself.

# %%
TRAIN, TEST = range(1, 9), range(1, 17)  # scales 1..8, then 1..16


def ideal(target):
    return lambda i, j, n: target(i, j, n)


def four_relations(target):
    return {
        "NoPE": lambda i, j, n: "any",
        "APE": lambda i, j, n: (i, j),
        "RPE": lambda i, j, n: i - j,
        "ideal": ideal(target),
    }


# %% [markdown]
# ## 4. Your prediction
#
# Two more targets, so that there are four:
#
# | name | target | operators |
# |---|---|---|
# | `band` | distances 0, 1 and 3 carry 2, -1 and 4 | the same at each scale from 4 on |
# | `decay` | distance k carries $2^{-k}$ | a new one at each scale |
# | `half` | $y_i = x_{\lfloor i/2 \rfloor}$ | the same at each scale |
# | `weighted` | $y_i = (i+1)\,x_i$ | a new one at each scale |
#
# **Before you go on, commit yourself.** Each relation is fitted on scales up to 8. For each target, which of the four relations are
# exact, with error 0, on all scales up to 16? Put a set of names, for instance `{"RPE", "ideal"}`, or `set()` for none.

# %%
prediction = {
    "band": None,
    "decay": None,
    "half": None,
    "weighted": None,
}

# %% [markdown]
# ## 5. The experiment


# %%
def band(i, j, n):
    return {0: 2, 1: -1, 3: 4}.get(i - j, 0)


def decay(i, j, n):
    return 0.5 ** (i - j)


targets = {"band": band, "decay": decay, "half": half, "weighted": weighted}
measured = {}
for name, target in targets.items():
    for words, phi in four_relations(target).items():
        weights = fit(phi, target, TRAIN)
        measured[name, words] = error(weights, phi, target, TEST)

# %% [markdown]
# The metric is the largest error of a coefficient on scales up to 16. NoPE, one id for all pairs, is the baseline.

# %% tags=["nbval-check-output"]
print("target     LRC at 8 -> 16 " + "".join(f"{words:>9}" for words in four_relations(band)))
for name, target in targets.items():
    counts = [len(operators(target, range(1, n + 1)) - {0}) for n in (8, 16)]
    row = "".join(f"{measured[name, words]:9.3f}" for words in four_relations(target))
    print(f"{name:9}  {counts[0]:6} -> {counts[1]:<6}  {row}")

# %% [markdown]
# And your prediction?

# %%
for name, said in prediction.items():
    exact = {words for words in four_relations(band) if measured[name, words] == 0}
    verdict = (
        "no prediction made" if said is None else "as predicted" if said == exact else "not so"
    )
    print(f"{name:9} exact: {', '.join(sorted(exact)) or 'none':12} ({verdict})")

# %% [markdown]
# Read the table by its second column, the count of operators besides zero at both scales. Where it grows, no relation is exact, not even the one
# that was made with the target in hand. Where it stays, the ideal one is. The usual relations come in between: RPE serves `band`, because there
# the operator depends on the distance alone and far distances carry nothing. It does not serve `half`.
#
# In the last row the ideal relation is no better than APE. It gives each new operator an id of its own, and such an id has learned nothing.
#
# Here is RPE on `half`. Framed squares are wrong:

# %%
rpe = theory.POLA(relations.build("rpe", positions=16), 1, 1).fit(half, TRAIN)
figure_html(operators_figure(half, 16, rpe, title="half: target, and RPE fitted on scales up to 8"))

# %% [markdown]
# ## 6. Theorem 1: what cannot be done
#
# > **Limitation.** A POLA is fitted on the scales up to $N_0$ by least squares from zero. If a longer scale needs a non-zero operator
# > that no training scale has, then **no** relation makes the model exact on all scales up to that one.
#
# *Proof.* If the model is not exact on the training scales, there is nothing to show. If it is, then all training pairs with the id $k$
# have one and the same operator, and $W_k$ is that operator. An id that training did not show has $W_k = 0$. So every weight that a
# relation can hand out is an operator of training, or zero. The new operator is neither. $\square$
#
# The proof never asks what the relation is. So it holds for every relation, with or without a Scale Hint, made by hand or learned. Let us
# try all of them at the first place where `weighted` needs something new: the pair (8, 8).

# %% tags=["nbval-check-output"]
weights = fit(ideal(weighted), weighted, TRAIN)
choices = sorted({*weights.values(), 0.0})
print("what a relation can hand out:", choices)
print("the target needs", weighted(8, 8, 9), "so the best choice is off by", 9 - max(choices))

# %% [markdown]
# The number of distinct non-zero operators up to scale n is the *linear representation complexity* LRC of lesson 4. The theorem says: if
# LRC grows after training, no relation helps. Position embeddings do not add operators.

# %%
curves = {name: theory.lrc_curve(target, 16) for name, target in targets.items()}
figure_html(complexity_figure(curves, 8, title="Four targets", quantity="LRC (operators)"))

# %% [markdown]
# ## 7. Theorem 2: what can be done
#
# > **Capability.** If LRC is the same at $N_0$ and at $N$, there is a relation with which the same learner is exact on all scales up to
# > $N$.
#
# *Proof.* Give each pair the index of its operator as its id, and one more id, "other", to all pairs with the zero operator. Each id
# then stands for one operator, so the fit on the training scales is exact and $W_k$ is operator $k$. LRC did not grow, so every non-zero
# operator up to $N$ has an index that training showed, and the model hands out just that operator. The weight of "other" is zero, whether training
# showed it or not. $\square$
#
# The proof builds the relation. It is the *ideal* one of the table. The library has it, too; and it does not stop at 16:

# %% tags=["nbval-check-output"]
phi = theory.ideal_relation_of(half, 200)
model, residual = theory.POLA(phi, 1, 1).fit(half, TRAIN)
print("fitted on scales up to 8; error at scale 200:", model.error(half, [200]))

# %% [markdown]
# **A negative control.** If the relation is the cause, a wrong one must fail on the same target. We take the same labels, but shift them by one
# place at queries that training does not show:


# %% tags=["nbval-check-output"]
def mislabelled(i, j, n):
    return half(i, j, n) if i < 8 else half(i, j - 1, n)


weights = fit(mislabelled, half, TRAIN)
for words, scales in {"up to 8": TRAIN, "up to 16": TEST}.items():
    print(f"scales {words:8} error {error(weights, mislabelled, half, scales):.1f}")

# %% [markdown]
# So invariant LRC is not enough by itself. It says that a suitable relation exists, not that yours is one.

# %% [markdown]
# ## 8. A loophole, and how it closes
#
# A relation gives each pair one id. What if a position embedding may give each pair *numbers* $c_k(i, j, n)$, a code, and the model
# mixes its weights with them?
#
# $$y_i = \sum_{j \le i} \Big(\sum_k c_k(i, j, n)\, W_k\Big)\, x_j$$
#
# Then `weighted` is easy. One weight is enough; the code says $i + 1$:


# %% tags=["nbval-check-output"]
def count_up(query, key, scale):
    """Return the code c(i, j, n) = i + 1 on the diagonal, as [q k 1]."""
    return ((query[:, None] == key) * (query[:, None] + 1.0))[..., None]


coded, residual = theory.CodedPOLA(count_up, 1, 1, dtype=torch.float64).fit(weighted, TRAIN)
print(f"error up to scale 16: {coded.error(weighted, TEST):.6f}")

# %% [markdown]
# Is the theorem wrong? No: it is about ids. For codes one must count differently: not how many operators there are, but how many are
# needed to combine all others. That is the dimension of their span, the *rank* reading of LRC. For numbers it is 1 at once: each number
# is a multiple of any other. So to see the limit one needs operators that are matrices.
#
# Let the operators be 2 x 2 matrices, a new one at each position of the diagonal. They live in a space with four dimensions. See where the rank
# stops to grow:

# %% tags=["nbval-check-output"]
rows = np.random.default_rng(0).integers(-3, 4, (16, 2, 2))


def fresh(i, j, n):
    """A new 2 x 2 operator at each position of the diagonal, and zero elsewhere."""
    return rows[i] * (i == j)


print("scale               ", *(f"{n:3}" for n in range(1, 9)))
for kind in ("operators", "rank"):
    curve = theory.lrc_curve(fresh, 8, kind=kind)
    print(f"LRC, {kind:15}", *(f"{curve[n]:3}" for n in range(1, 9)))

# %% [markdown]
# Now we take the best code there is. It has full knowledge of the target, at every scale: it gives each operator by its coordinates in a
# basis of the training operators, and where that is not possible, the nearest thing.

# %%
for largest in range(1, 7):
    code = theory.ideal_code_of(fresh, largest)
    best, residual = theory.CodedPOLA(code, 2, 2, dtype=torch.float64).fit(
        fresh, range(1, largest + 1)
    )
    print(
        f"trained up to scale {largest}: error there {residual:.4f}, "
        f"on scales up to 16 {best.error(fresh, TEST):.4f}"
    )

# %% [markdown]
# It fails until training has shown as many independent operators as there are dimensions. Then it is exact, although each position still
# needs an operator that training never showed.
#
# > **Limitation, for codes.** If the rank grows between $N_0$ and $N$, no code makes the model exact on all scales up to $N$.
#
# *Proof.* Write the codes of all training pairs as the rows of a matrix $C$, and their operators, flattened, as the rows of $A$. The
# solution of least norm is $W = C^{+} A$. Each row of $W$ is a combination of rows of $A$: of training operators. What a code can form
# is a combination of rows of $W$, so again of training operators. An operator outside their span is missed. $\square$
#
# The other half is as before: if the rank stays, the coordinates in a basis of training operators are a code that is exact.
#
# Does gradient descent from zero end in the same solution? It stays among the combinations of training operators, since each gradient is one. And an
# id that training did not show gets no gradient at all. The next cell takes about 2 seconds.


# %%
def train(steps):
    """Fit RPE to `band` by gradient descent from zero, and compare with our fit."""
    phi = relations.build("rpe", positions=16)
    model, residual = theory.POLA(phi, 1, 1, dtype=torch.float64).fit_gradient(band, TRAIN, steps)
    ours = fit(lambda i, j, n: i - j, band, TRAIN)
    apart = max(abs(model.weight[k].item() - w) for k, w in ours.items())
    print(f"after {steps} steps the largest difference between two weights is {apart:.1e}")
    print(
        "weights of the distances that training did not show:", model.weight[8:].abs().max().item()
    )


train(300)

# %% [markdown]
# ## 9. For almost all targets
#
# How special are targets with a new operator? Take k random 2 x 2 matrices as training operators, and draw a thousand new ones. How many of
# these are combinations of the k?

# %% tags=["nbval-check-output"]
random = np.random.default_rng(1)
for k in range(1, 6):
    known = random.normal(size=(k, 4))
    new = random.normal(size=(1000, 4))
    nearest = new @ np.linalg.pinv(known) @ known  # projection on the span
    inside = (abs(new - nearest).max(axis=1) < 1e-9).sum()
    print(f"{k} training operators: {inside:4} of 1000 new ones are in their span")

# %% [markdown]
# It is none or all. Below four dimensions the span is a thin sheet, and a random matrix falls beside it with probability one. That is
# what "for almost all targets" means: if there is room for something new, a random new operator uses it.

# %% [markdown]
# ## 10. Training data do not tell you
#
# Can one see from short sequences whether LRC will stay? No. Here is a second target. It agrees with `half` on each training scale:


# %% tags=["nbval-check-output"]
def twin(i, j, n):
    """Equal to half where training looks, and off by 2 behind."""
    return half(i, j, n) + (0 if i < 8 else 2)


phi = ideal(half)
same = fit(phi, half, TRAIN) == fit(phi, twin, TRAIN)
errors = [error(fit(phi, one, TRAIN), phi, one, TEST) for one in (half, twin)]
print("the same weights:", same)
print(f"error up to 16 on half: {errors[0]:.0f}, on its twin: {errors[1]:.0f}")

# %% [markdown]
# A learner that sees nothing but the training data makes the same model for both. The two targets are 2 apart behind the training scales, so on one
# of them it is off by at least 1, whatever its position embedding. Length generalisation is never earned by data alone. It rests on an
# assumption about the task: that longer inputs need nothing new. Lesson 6 makes that assumption precise for tasks that are solved token by
# token.

# %% [markdown]
# ## What this does not show
#
# - POLA has no softmax, no content in its scores and no layers. Both theorems are about this model. For Transformers the course has a
#   conjecture, tested in the next lessons, and not a theorem.
# - The limitation is about *learning*, not about *representing*. With an id for each pair, `weighted` can be represented at every scale.
#   But somebody has to set the weights.
# - It counts exact equality. A model may come close without it: the error of `decay` is small, because its new operators are small.
# - Another learner can do better or worse on ids that training did not show. Least squares from zero leaves them at 0. Weights that start
#   elsewhere stay elsewhere, and no one has told them where to go.
# - Theorem 2 gives a relation to someone who knows the target. How a model may find it by itself is a matter of later lessons.

# %% [markdown]
# ## Sources
#
# - Chen, Liang and Lin, *On the Limitations and Capabilities of Position Embeddings for Length Generalization* (2025), arXiv
#   2510.04130. The two results are after them. The definitions and proofs here are the course's own formalisation; all numbers are
#   those of the run above.
# - Zhang et al., *Understanding deep learning requires rethinking generalization* (2017), arXiv 1611.03530: section 5 has the
#   argument that gradient descent from zero ends in the solution of least norm.
# - Wolpert, *The lack of a priori distinctions between learning algorithms* (1996), Neural Computation 8(7): the general form of
#   section 10.
#
# Next: exercise 5, `exercises/05_limits_of_position_embeddings.ipynb`.
