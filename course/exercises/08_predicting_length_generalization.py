"""Exercise 8. Five questions on lesson 8: the conditions of alignment piece by piece, and counting.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e08.py.
"""

# %% [markdown]
# # Exercise 8: Predicting length generalisation
#
# Five questions, 15 points, about an hour and a quarter. The first is condition 1 of lesson 8, the next three are condition 2 for steps of
# any kind, the last counts predictions.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.

# %%
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lgcourse import relations, tasks
from lgcourse.grading import checks
from lgcourse.show import alignment_figure
from lgcourse.show.widgets import figure_html

ex = checks(8)

# %% [markdown]
# ## 1. `met_share` (2 points, 10 minutes, difficulty 2 of 5)
#
# Condition 1. Each row of `train` holds the ids of the r operands of one training step, in the order of their roles. Each row of `test`
# does so for a test step. All steps use the same operator.
#
# Return the share of test steps whose ids training showed together, as a Python float.
#
# For `train = [[1, 5], [2, 6]]` and `test = [[1, 5], [1, 6]]` the answer is 0.5.


# %%
def met_share(train: Int[Tensor, "m r"], test: Int[Tensor, "s r"]) -> float:
    """Return the share of test steps whose tuple of ids occurs in training."""
    ### BEGIN SOLUTION
    same = (test[:, None] == train[None, :]).all(dim=-1)  # s m
    return same.any(dim=1).double().mean().item()
    ### END SOLUTION


# %%
ex.check_met_share(met_share)
# ex.check_met_share.hint(1)

# %% What one sees [markdown] tags=["solution"]
# With a learned position for each token every new step has new ids, and the share falls as the inputs get longer. With roles as names there is one
# tuple for each operator.

# %% [markdown]
# ## 2. `beats` (4 points, 20 minutes, difficulty 3 of 5)
#
# Condition 2, first part. Row s of `ids` holds the ids of all keys at training step s; -1 stands for a key that the query cannot see.
# `operand[s]` is the id of the operand.
#
# At each step the operand's id must win over the other ids that are there. Only ids that are some step's operand matter. Sort these
# ids, `operand.unique()`, and return a square table over them: entry (a, b) is True if the a-th had to win over the b-th at some step.
# An id does not win over itself.
#
# Here is such a training: shift, under `rpe-sh`. In the first step the key one place back is read, in all later ones another.

# %%
shift = tasks.get("shift")
figure_html(alignment_figure(shift, relations.build("rpe-sh", shift, max_scale=8), range(1, 6), 5))

# %% [markdown]
# For `ids = [[7, 3], [3, 4]]` and `operand = [3, 4]` the sorted ids are 3 and 4, and 4 has won over 3: `[[False, False], [True, False]]`.


# %%
def beats(ids: Int[Tensor, "s k"], operand: Int[Tensor, " s"]) -> Bool[Tensor, "m m"]:
    """Return which ids of operands had to win over which."""
    ### BEGIN SOLUTION
    known = operand.unique()
    present = (ids[:, :, None] == known).any(dim=1)  # s m
    mine = operand[:, None] == known  # s m
    won = (mine[:, :, None] & present[:, None, :]).any(dim=0)
    return won & ~torch.eye(len(known), dtype=torch.bool)
    ### END SOLUTION


# %%
ex.check_beats(beats)
# ex.check_beats.hint(1)

# %% [markdown]
# ## 3. `has_order` (3 points, 15 minutes, difficulty 3 of 5)
#
# Condition 2, second part. Attention gives each id one strength. So the ids of a role can be put in order, the strongest first. Given a
# table as in question 2, say whether there is an order in which every a stands before every b that it had to win over.


# %%
def has_order(beats: Bool[Tensor, "m m"]) -> bool:
    """Return whether some order of the ids agrees with all that training forces."""
    ### BEGIN SOLUTION
    reach = beats
    for _ in range(len(beats)):  # one step further each time
        further = (reach[:, :, None] & beats[None, :, :]).any(dim=1)
        reach = reach | further
    return not bool(reach.diagonal().any())
    ### END SOLUTION


# %%
ex.check_has_order(has_order)
# ex.check_has_order.hint(1)

# %% What one sees [markdown] tags=["solution"]
# A learned position for each token has no order in unpadded copy: the first key must win over the second at one step, and lose to it at the
# next. Such a model must use more than one number per id, and what it makes of them need not reach beyond training.

# %% [markdown]
# ## 4. `found` (4 points, 20 minutes, difficulty 4 of 5)
#
# Condition 2, at test steps. The m ids that were operands in training have the numbers 0 to m - 1; any larger number is an id that no operand had.
# `above[a, b]` says that a wins over b, by what training forced and all that follows from it. Row s of `ids` holds the keys of a test step
# (-1: cannot be seen), and `operand[s]` is its operand's id.
#
# Say for each step whether the operand is singled out: its id is known, stands on one key only, and is above every other known id that is
# there. Keys with unknown ids do no harm.


# %%
def found(
    above: Bool[Tensor, "m m"], ids: Int[Tensor, "s k"], operand: Int[Tensor, " s"]
) -> Bool[Tensor, " s"]:
    """Return for each test step whether its operand is singled out."""
    ### BEGIN SOLUTION
    size = len(above)
    known = (ids >= 0) & (ids < size)
    single = (ids == operand[:, None]).sum(dim=1) == 1
    mine = operand.clamp(max=size - 1)
    wins = above[mine[:, None], ids.clamp(0, size - 1)]  # s k
    rival = known & (ids != operand[:, None]) & ~wins
    return (operand < size) & single & ~rival.any(dim=1)
    ### END SOLUTION


# %%
ex.check_found(found)
# ex.check_found.hint(1)

# %% What one sees [markdown] tags=["solution"]
# The mean of this over the steps of a scale is what `theory.predict` calls resolvable, if conditions 1 and 3 hold as well.

# %% [markdown]
# ## 5. `tally` (2 points, 10 minutes, difficulty 2 of 5)
#
# Count how well predictions did. Each cell is `(predicted, trained, tested)`: what theory said, exact match on the longest training scale, and
# exact match at the test scale. A model generalises if its exact match at the test scale is at least `bar`.
#
# Return `(right, wrong, silent)`. Silent are cells without a prediction (`"no prediction"` or `"not covered"`) and cells whose
# model was not trained: exact match below `bar` on the longest training scale.


# %%
def tally(cells: list[tuple[str, float, float]], bar: float) -> tuple[int, int, int]:
    """Return how many predictions were right, wrong, and not to be counted."""
    ### BEGIN SOLUTION
    counted = [c for c in cells if c[0] in ("generalises", "fails") and c[1] >= bar]
    right = sum((said == "generalises") == (tested >= bar) for said, _, tested in counted)
    return right, len(counted) - right, len(cells) - len(counted)
    ### END SOLUTION


# %%
ex.check_tally(tally)
# ex.check_tally.hint(1)

# %% Why it matters [markdown] tags=["solution"]
# Models that learn nothing fail at every scale. If they counted, the prediction "fails" could be made to look as good as one likes.

# %%
ex.summary()
