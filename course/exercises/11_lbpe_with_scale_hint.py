"""Exercise 11. Five questions: read a learned relation, use it, and predict what a wrong hint does.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e11.py.
"""

# %% [markdown]
# # Exercise 11: LBPE with Scale Hint
#
# Five questions, 17 points, about an hour and a quarter. You read the relation out of a head, find the keys that it names, measure whether
# attention goes there, and predict what a copying model writes when its hint is wrong.
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
from lgcourse.show import layout_text

ex = checks(11)

# %% [markdown]
# ## 1. `read_cells` (3 points, 10 minutes, difficulty 2 of 5)
#
# A head has a strength for each form and each value from -w to w; the first column stands for -w. `kept` says which cells
# stayed to the end of the training.
#
# Return the kept cells as pairs (number of the form, value), the strongest first. Both are Python integers.


# %%
def read_cells(strength: Float[Tensor, "f v"], kept: Bool[Tensor, "f v"]) -> list[tuple[int, int]]:
    """Return the kept cells of a head as (form, value), strongest first."""
    ### BEGIN SOLUTION
    window = (strength.shape[1] - 1) // 2
    places = kept.nonzero().tolist()
    places.sort(key=lambda place: float(strength[place[0], place[1]]), reverse=True)
    return [(f, column - window) for f, column in places]
    ### END SOLUTION


# %%
ex.check_read_cells(read_cells)
# ex.check_read_cells.hint(1)

# %% [markdown]
# ## 2. `key_of` (3 points, 15 minutes, difficulty 3 of 5)
#
# A cell (a, b, c, w) stands for $a\,i + b\,j + c\,n = w$, with b not 0. For a query i at scale n it names at most one key.
#
# Return the position of that key, or -1 if there is none. A key is a position from 0 up to the query itself.


# %%
def key_of(cell: tuple[int, int, int, int], i: int, n: int) -> int:
    """Return the key that a cell names for the query i at scale n, or -1."""
    ### BEGIN SOLUTION
    a, b, c, w = cell
    j, rest = divmod(w - a * i - c * n, b)
    return j if rest == 0 and 0 <= j <= i else -1
    ### END SOLUTION


# %%
ex.check_key_of(key_of)
# ex.check_key_of.hint(1)

# %% Why it matters [markdown] tags=["solution"]
# This is all that a model with a hard relation needs to look up. It never computes the scores of the other keys, so an input of ten
# times the length takes ten times the work, not a hundred times.

# %% [markdown]
# ## 3. `operand_share` (4 points, 15 minutes, difficulty 3 of 5)
#
# `weights` is the attention of each head at some queries. Row q of `operands` holds the positions that the step at query q
# reads, one per role; -1 stands for a role that this step does not have. One key may have two roles.
#
# Return for each head how much attention its queries put on operands, on average. Leave out queries without any operand.


# %%
def operand_share(
    weights: Float[Tensor, "h q k"], operands: Int[Tensor, "q r"]
) -> Float[Tensor, " h"]:
    """Return the mean attention on operands, per head."""
    ### BEGIN SOLUTION
    key = torch.arange(weights.shape[2])
    read = (operands[:, :, None] == key).any(dim=1)  # q k
    on_operands = (weights * read).sum(dim=2)  # h q
    return on_operands[:, read.any(dim=1)].mean(dim=1)
    ### END SOLUTION


# %%
ex.check_operand_share(operand_share)
# ex.check_operand_share.hint(1)

# %% [markdown]
# ## 4. `drop_weakest` (3 points, 15 minutes, difficulty 3 of 5)
#
# Before its last stage LBPE drops each cell that it can spare. It goes from the weakest cell to the strongest and leaves a cell out
# if the loss then stays below a bound; otherwise the cell comes back.
#
# Here the loss is simple: it grows by the cost of every cell that is missing. Return which cells stay, if all missing ones
# together may cost at most `spare`. All costs are whole numbers.


# %%
def drop_weakest(
    strength: Float[Tensor, " c"], cost: Float[Tensor, " c"], spare: float
) -> Bool[Tensor, " c"]:
    """Return which cells stay when the weakest are tried first."""
    ### BEGIN SOLUTION
    kept = torch.ones(len(strength), dtype=torch.bool)
    for cell in strength.argsort().tolist():
        kept[cell] = False
        kept[cell] = bool(cost[~kept].sum() > spare)
    return kept
    ### END SOLUTION


# %%
ex.check_drop_weakest(drop_weakest)
# ex.check_drop_weakest.hint(1)

# %% [markdown]
# ## 5. `copy_under_hint` (4 points, 20 minutes, difficulty 4 of 5)
#
# A model has learned to copy with the cell i - j - n = 0: the step at query i writes the token that stands n places back. Now
# we tell it another number, `hint`, in place of n. Here is the layout for n = 3:

# %%
print(layout_text(tasks.get("copy"), 3))

# %% [markdown]
# `x` holds the n digits; `=` is the token 10. Suppose that the model obeys its cell exactly: it writes the token at the key j = i
# - hint, whatever it is, also if it wrote that token itself. Where there is no such key, let it write -1. It writes n tokens.
#
# For 3 1 4 1 5 and hint 6 the answer is -1 3 1 4 1. The hint is at least 1.


# %%
def copy_under_hint(x: Int[Tensor, " n"], hint: int) -> Int[Tensor, " n"]:
    """Return what a model that copies by i - j - hint = 0 writes; -1 where it finds no key."""
    ### BEGIN SOLUTION
    line = [*x.tolist(), 10]
    for _ in range(len(x)):
        place = len(line) - 1 - hint  # the query is the last position so far
        line.append(line[place] if place >= 0 else -1)
    return torch.tensor(line[len(x) + 1 :])
    ### END SOLUTION


# %%
ex.check_copy_under_hint(copy_under_hint)
# ex.check_copy_under_hint.hint(1)

# %% What one sees [markdown] tags=["solution"]
# A wrong hint does not add noise. It moves the whole answer by the size of the error. That is a sharp prediction, and lesson 11
# tests it on a trained model.

# %%
ex.summary()
