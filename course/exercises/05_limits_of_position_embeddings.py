"""Exercise 5. Six questions on the two theorems of lesson 5: what is out of reach, and what is not.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e05.py.
"""

# %% [markdown]
# # Exercise 5: What position embeddings can and cannot do
#
# Six questions, 17 points, about an hour and a half. The first two are the two limitations, the third is the proof of the capability,
# the fourth follows one fit pair by pair. The last two build a target that fools a learner, and a relation that aligns a task.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.

# %%
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lgcourse import tasks
from lgcourse.grading import checks
from lgcourse.show import layout_figure
from lgcourse.show.widgets import figure_html

ex = checks(5)

# %% [markdown]
# ## 1. `best_error` (2 points, 10 minutes, difficulty 2 of 5)
#
# A POLA has learned k operators, each a p x d matrix. Now m pairs of a longer scale want operators of their own. A relation can hand out
# one learned operator to each pair, or zero (under an id that training did not show). Someone who knows everything chooses.
#
# Return the error of the model then: the largest absolute difference between a coefficient and what is wanted, over all pairs and all
# entries, as a Python float.
#
# For learned numbers 1, 2, 3 and wanted numbers 2, 5 the answer is `2.0`.


# %%
def best_error(learned: Float[Tensor, "k p d"], wanted: Float[Tensor, "m p d"]) -> float:
    """Return the least error that any relation can reach."""
    ### BEGIN SOLUTION
    choices = torch.cat([learned, torch.zeros_like(wanted[:1])])
    apart = (choices[None, :] - wanted[:, None]).abs().amax(dim=(2, 3))  # m choices
    return apart.amin(dim=1).max().item()
    ### END SOLUTION


# %%
ex.check_best_error(best_error)
# ex.check_best_error.hint(1)

# %% What one sees [markdown] tags=["solution"]
# Where this number is not zero, theorem 1 applies: no relation helps, whoever designs it.

# %% [markdown]
# ## 2. `in_span` (3 points, 15 minutes, difficulty 3 of 5)
#
# A position embedding that gives each pair a code of numbers can also form combinations of learned operators. Say for each of m new
# operators whether it is a combination of the k operators of training.
#
# For the training numbers [[3]] the new number [[7]] is one: it is 7/3 times the old one.


# %%
def in_span(trained: Float[Tensor, "k p d"], new: Float[Tensor, "m p d"]) -> Bool[Tensor, " m"]:
    """Return for each new operator whether it is a combination of training operators."""
    ### BEGIN SOLUTION
    known = trained.flatten(1)
    rank = torch.linalg.matrix_rank(known)
    with_one = [torch.linalg.matrix_rank(torch.cat([known, row[None]])) for row in new.flatten(1)]
    return torch.stack(with_one) == rank
    ### END SOLUTION


# %%
ex.check_in_span(in_span)
# ex.check_in_span.hint(1)

# %% What one sees [markdown] tags=["solution"]
# For numbers the answer is nearly always True, and so a code can nearly always help there. The limitation for codes needs matrices.

# %% [markdown]
# ## 3. `ideal_ids` (3 points, 15 minutes, difficulty 3 of 5)
#
# Theorem 2 is proved by building a relation. Build it. You get all operators of one scale, `operators[i, j]`, each a p x d matrix. Number
# the distinct non-zero ones 0, 1, 2, ... in the order in which they appear, row by row and from the left, among the pairs with j <= i.
# Return the table of ids. Pairs with the zero operator, and all pairs with j > i, get the next free number, `other`.


# %%
def ideal_ids(operators: Float[Tensor, "l l p d"]) -> Int[Tensor, "l l"]:
    """Return the id of each pair: the index of its operator, or other."""
    ### BEGIN SOLUTION
    known: dict[tuple, int] = {}
    length = len(operators)
    found = torch.full((length, length), -1)
    for i in range(length):
        for j in range(i + 1):
            if operators[i, j].any():
                operator = tuple(operators[i, j].flatten().tolist())
                found[i, j] = known.setdefault(operator, len(known))
    return torch.where(found < 0, len(known), found)
    ### END SOLUTION


# %%
ex.check_ideal_ids(ideal_ids)
# ex.check_ideal_ids.hint(1)

# %% What one sees [markdown] tags=["solution"]
# The number of ids besides `other` is LRC. The library's `theory.ideal_relation_of` does the same for all scales up to a given one.

# %% [markdown]
# ## 4. `right_pairs` (3 points, 15 minutes, difficulty 3 of 5)
#
# Alignment by hand. A training pair is given by its id and the number (a 1 x 1 operator) that it asks for. A POLA is fitted on them as in
# lesson 5: least squares, from zero. Then come test pairs, again with ids and the numbers that they ask for.
#
# Say for each test pair whether the fitted model is right there. All numbers are such that no rounding occurs: compare with `==`.
#
# For training ids 0, 0, 1 that ask for 2, 2, 6, the test pairs (id 0, asks for 2), (id 0, asks for 6) and (id 9, asks for 0) give
# `[True, False, True]`.


# %%
def right_pairs(
    train_ids: Int[Tensor, " t"],
    train_values: Float[Tensor, " t"],
    ids: Int[Tensor, " m"],
    values: Float[Tensor, " m"],
) -> Bool[Tensor, " m"]:
    """Return for each test pair whether the fitted POLA is right at it."""
    ### BEGIN SOLUTION
    same = ids[:, None] == train_ids[None, :]  # m t
    sums = torch.where(same, train_values[None, :], 0).sum(dim=1)
    weights = sums / same.sum(dim=1).clamp(min=1)  # 0 for ids that training did not show
    return weights == values
    ### END SOLUTION


# %%
ex.check_right_pairs(right_pairs)
# ex.check_right_pairs.hint(1)

# %% What one sees [markdown] tags=["solution"]
# There are two ways to fail: an id that training did not show, and an id that stands for two operators. APE fails in the first way, NoPE in
# the second.

# %% [markdown]
# ## 5. `counterexample` (3 points, 15 minutes, difficulty 3 of 5)
#
# Someone trained a model on scales 1 to N0 of a target. `target` is the table of the target's coefficients, [l l], with l larger than N0;
# the scale n is its upper left n x n block. `predicted` is the table that the trained model computes.
#
# Build another target that gives **the same training data**, and on which this very model is off by 1 at every pair that training did not
# show: there let each coefficient with j <= i be the predicted one plus 1. Above the diagonal all coefficients are zero.


# %%
def counterexample(
    target: Float[Tensor, "l l"], predicted: Float[Tensor, "l l"], train_scale: int
) -> Float[Tensor, "l l"]:
    """Return a target with the same training data, on which the model is off by 1 elsewhere."""
    ### BEGIN SOLUTION
    made = target.clone()
    made[train_scale:] = predicted[train_scale:] + 1
    return torch.tril(made)
    ### END SOLUTION


# %%
ex.check_counterexample(counterexample)
# ex.check_counterexample.hint(1)

# %% What one sees [markdown] tags=["solution"]
# This works against every learner, whatever its position embedding. So each claim that a model generalises in length is also a claim about the
# task.

# %% [markdown]
# ## 6. `reverse_relation` (3 points, 15 minutes, difficulty 3 of 5)
#
# Now the other side: a task in which longer inputs need nothing new. Reverse is `x1 .. xn = xn .. x1`. Here it is for n = 4:

# %%
figure_html(layout_figure(tasks.get("reverse"), 4))

# %% [markdown]
# Write the relation that aligns it, with Scale Hint: for each pair of a query i and a key j
#
# - id 0 if the step at query i reads the token at key j,
# - id 1 ("other") if not. So also if j comes after i, and if query i writes nothing.
#
# `query` and `key` hold positions, in any order and number. At n = 4 the query 4 (the `=`) writes the first answer token and reads position 3.


# %%
def reverse_relation(
    query: Int[Tensor, " q"], key: Int[Tensor, " k"], n: int
) -> Int[Tensor, "q k"]:
    """Return 0 for each pair of a step's query and the key that it reads, and 1 for all others."""
    ### BEGIN SOLUTION
    i, j = query[:, None], key[None, :]
    read = (i + j == 2 * n - 1) & (i >= n)
    return torch.where(read, 0, 1)
    ### END SOLUTION


# %%
ex.check_reverse_relation(reverse_relation)
# ex.check_reverse_relation.hint(1)

# %% What one sees [markdown] tags=["solution"]
# Copy keeps the difference i - j, reverse the sum i + j, both up to a multiple of n. A relation over differences alone, as RPE is, cannot
# align reverse, not even with a Scale Hint.

# %%
ex.summary()
