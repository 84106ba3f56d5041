"""Exercise 3. Six questions on POLA: forward pass, new names, the fit in three ways, ideal names.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e03.py.
"""

# %% [markdown]
# # Exercise 3: POLA, attention by position only
#
# Six questions, 16 points, about an hour and a half. You build the layer of lesson 3 with tensors, its fit in three ways, and names for a
# target.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.
#
# In all questions i is a place of the output (a query) and j a place of the input (a key), both from 0. A table of names is given as
# `ids`: the pair (i, j) is called `ids[i, j]`. **Pairs are those with j <= i.** What a table holds above the diagonal means nothing, unless
# it says otherwise. Numbers are float64.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lgcourse.grading import checks
from lgcourse.show import operators_figure
from lgcourse.show.widgets import figure_html

ex = checks(3)

# %% [markdown]
# ## 1. `pola_forward` (3 points, 15 minutes, difficulty 2 of 5)
#
# The layer itself, for a batch of b sequences of l vectors of width d. `weight` holds one operator [p, d] for each name:
#
# $$y_i = \sum_{j \le i} W_{\text{ids}[i, j]}\; x_j$$


# %%
def pola_forward(
    x: Float[Tensor, "b l d"], weight: Float[Tensor, "k p d"], ids: Int[Tensor, "l l"]
) -> Float[Tensor, "b l p"]:
    """Return the outputs of a POLA."""
    ### BEGIN SOLUTION
    mask = torch.ones(ids.shape).tril()[:, :, None, None]
    return torch.einsum("ijpd,bjd->bip", weight[ids] * mask, x)
    ### END SOLUTION


# %%
ex.check_pola_forward(pola_forward)
# ex.check_pola_forward.hint(1)

# %% [markdown]
# ## 2. `new_ids` (2 points, 10 minutes, difficulty 2 of 5)
#
# Training shows all pairs up to length `trained`, a test needs all pairs up to length `tested`. Which ids does the test need that training
# did not show? Return them in rising order, each once. The table may be larger than both lengths.
#
# For distances, ids[i, j] = i - j, with `trained = 3` and `tested = 5` the answer is `[3, 4]`.


# %%
def new_ids(ids: Int[Tensor, "l l"], trained: int, tested: int) -> Int[Tensor, " m"]:
    """Return the ids that a longer length brings, sorted."""

    ### BEGIN SOLUTION
    def occurring(n):
        return ids[:n, :n][torch.ones(n, n).bool().tril()].unique()

    needed = occurring(tested)
    return needed[~torch.isin(needed, occurring(trained))]
    ### END SOLUTION


# %%
ex.check_new_ids(new_ids)
# ex.check_new_ids.hint(1)

# %% What one sees [markdown] tags=["solution"]
# Each new id has the weight 0. That is harmless if the target wants nothing there: RPE serves `band` in spite of its many new distances.

# %% [markdown]
# ## 3. `mean_operators` (3 points, 20 minutes, difficulty 3 of 5)
#
# The fit of lesson 3, name by name, now for operators of any size. `operators[i, j]` is what the target wants at the pair (i, j). Training
# shows the lengths in the list `lengths`; each length n shows all its pairs, those with j <= i < n.
#
# Return the weight of each of the ids 0 to size - 1: the mean over all that its pairs ask for, at all lengths.
#
# For one id at every pair, numbers 6 at (0, 0), 2 at (1, 0) and 2 at (1, 1), and lengths [1, 2] the answer is 4: the pair (0, 0) is shown
# twice.


# %%
def mean_operators(
    ids: Int[Tensor, "l l"], operators: Float[Tensor, "l l p d"], lengths: list[int], size: int
) -> Float[Tensor, "k p d"]:
    """Return the weights of a POLA that is fitted on all lengths."""
    ### BEGIN SOLUTION
    sums = torch.zeros(size, *operators.shape[2:], dtype=operators.dtype)
    counts = torch.zeros(size, dtype=operators.dtype)
    for n in lengths:
        i, j = torch.tril_indices(n, n)
        sums.index_add_(0, ids[i, j], operators[i, j])
        counts.index_add_(0, ids[i, j], torch.ones(len(i), dtype=operators.dtype))
    return sums / counts.clamp(min=1)[:, None, None]
    ### END SOLUTION


# %%
ex.check_mean_operators(mean_operators)
# ex.check_mean_operators.hint(1)

# %% [markdown]
# ## 4. `descend` (2 points, 10 minutes, difficulty 2 of 5)
#
# The same fit by gradient descent. `codes` is the matrix C of lesson 3, with a row for each training pair and a column for each name (or for each number
# of a code); `wanted` is the vector A of what the pairs ask for. The loss is
#
# $$\tfrac12\, |C W - A|^2 .$$
#
# Start at `start`, take `steps` steps, each of `rate` times the gradient, and return where that ends. Leave `start` as it is.


# %%
def descend(
    codes: Float[Tensor, "m r"],
    wanted: Float[Tensor, " m"],
    start: Float[Tensor, " r"],
    rate: float,
    steps: int,
) -> Float[Tensor, " r"]:
    """Return the weights after some steps of gradient descent."""
    ### BEGIN SOLUTION
    W = start.clone()
    for _ in range(steps):
        W = W - rate * codes.T @ (codes @ W - wanted)
    return W
    ### END SOLUTION


# %%
ex.check_descend(descend)
# ex.check_descend.hint(1)

# %% [markdown]
# ## 5. `minimum_norm` (3 points, 15 minutes, difficulty 3 of 5)
#
# And where does it end, after ever so many small steps from zero? At the solution of least squares that has the smallest norm. Return it. Now each row of `wanted`
# is an operator, flattened to f numbers, and `codes` holds any codes: its columns may depend on each other, and some may be zero.
#
# For `codes = [[1, 1]]` and `wanted = [[6]]` the answer is `[[3], [3]]`.


# %%
def minimum_norm(codes: Float[Tensor, "m r"], wanted: Float[Tensor, "m f"]) -> Float[Tensor, "r f"]:
    """Return the W of smallest norm among those that make |C W - A| least."""
    ### BEGIN SOLUTION
    return torch.linalg.pinv(codes) @ wanted
    ### END SOLUTION


# %%
ex.check_minimum_norm(minimum_norm)
# ex.check_minimum_norm.hint(1)

# %% What one sees [markdown] tags=["solution"]
# With names instead of codes, the pseudo-inverse of C divides by how often each name occurs: the mean of question 3.

# %% [markdown]
# ## 6. `half_and_own` (3 points, 15 minutes, difficulty 3 of 5)
#
# Make ideal names. The target is $y_i = x_{\lfloor i/2 \rfloor} + 3\, x_i$. Here is a part of what it wants; the first rows are left out.


# %%
def target(i, j):
    return (int(j == i // 2) + 3 * int(j == i)) * int(i >= 4)


figure_html(operators_figure(target, 10), dpi=80)

# %% [markdown]
# Write the relation. For each pair of a query i and a key j, in any order and number,
#
# - id 0 if only $x_{\lfloor i/2 \rfloor}$ is read there,
# - id 1 if only the $x_i$ of the second term is read there,
# - id 2 if both terms read there,
# - id 3 if none does; so also for keys after their query.


# %%
def half_and_own(query: Int[Tensor, " q"], key: Int[Tensor, " k"]) -> Int[Tensor, "q k"]:
    """Return the ideal name of each pair of a query and a key."""
    ### BEGIN SOLUTION
    i, j = query[:, None], key[None, :]
    half, own = j == i // 2, j == i
    ids = torch.where(half, 0, 3)
    return torch.where(own, torch.where(half, 2, 1), ids)
    ### END SOLUTION


# %%
ex.check_half_and_own(half_and_own)
# ex.check_half_and_own.hint(1)

# %% What one sees [markdown] tags=["solution"]
# Two terms, and three operators: where two reads fall together there is a third one. Training shows all three as soon as it shows length 2,
# and a POLA with these names is then exact at every length.

# %%
ex.summary()
