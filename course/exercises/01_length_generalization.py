"""Exercise 1. Three questions on what lesson 1 used: exact match, a layout, the ideal relation of copy.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e01.py.
"""

# %% [markdown]
# # Exercise 1: Length generalisation
#
# Three questions, 8 points, about half an hour. They build by hand what lesson 1 used: the measure, the layout and the
# relation.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.
#
# `Int[Tensor, "b a"]` reads: a tensor of whole numbers with b rows and a columns. (The space in `" b"` means nothing.) Where you
# return whole numbers as a tensor, make it int64, which is what PyTorch takes for them by itself.

# %%
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lgcourse import tasks
from lgcourse.grading import checks
from lgcourse.show import layout_figure
from lgcourse.show.widgets import figure_html

ex = checks(1)

# %% [markdown]
# ## 1. `exact_match` (2 points, 5 minutes, difficulty 1 of 5)
#
# A model has answered b prompts with a tokens each. Say for each of the b answers whether it is right as a whole.
#
# For `guess = [[1, 2], [3, 4]]` and `target = [[1, 2], [3, 0]]` the answer is `[True, False]`.


# %%
def exact_match(guess: Int[Tensor, "b a"], target: Int[Tensor, "b a"]) -> Bool[Tensor, " b"]:
    """Return for each sample whether all of its answer tokens are right."""
    ### BEGIN SOLUTION
    return (guess == target).all(dim=1)
    ### END SOLUTION


# %%
ex.check_exact_match(exact_match)
# ex.check_exact_match.hint(1)

# %% Why it matters [markdown] tags=["solution"]
# The mean of this over b is the exact match of lesson 1. The mean of `guess == target` over both dimensions is token
# accuracy. The second can be high where the first is zero: one wrong token in each answer is enough.

# %% [markdown]
# ## 2. `addition_step` (3 points, 10 minutes, difficulty 2 of 5)
#
# Addition is written with the least digit first, as `a1 .. an + b1 .. bn = s1 .. s(n+1)`. Here it is for n = 3:

# %%
figure_html(layout_figure(tasks.get("addition"), 3))

# %% [markdown]
# Take the step that writes the digit s_t, for some t with 2 <= t <= n. It reads a_t and b_t. It also needs s_(t-1): from
# that digit and the column before one can tell whether there was a carry. (The picture marks the column before, too; leave
# it out here.)
#
# Return four positions, counted from 0: the query of the step, a_t, b_t, and s_(t-1). A formula in n and t is enough.


# %%
def addition_step(n: int, t: int) -> tuple[int, int, int, int]:
    """Return the positions (query, a_t, b_t, s_(t-1)) of the step that writes s_t, 2 <= t <= n."""
    ### BEGIN SOLUTION
    output = 2 * n + 1 + t
    return output - 1, t - 1, n + t, output - 1
    ### END SOLUTION


# %%
ex.check_addition_step(addition_step)
# ex.check_addition_step.hint(1)

# %% What one sees [markdown] tags=["solution"]
# The query and s_(t-1) are the same position: the model stands on the token that it has just written and predicts the next
# one. From there a_t is 2n + 1 places back and b_t is n places back. Both distances grow with n, so a table over distances that
# was trained on small n has no trained entry for them at a new n.

# %% [markdown]
# ## 3. `copy_relation` (3 points, 15 minutes, difficulty 3 of 5)
#
# Copy is `x1 .. xn = y1 .. yn`, so a sequence has the positions 0 to 2n. Write its ideal relation with Scale Hint: for each
# pair of a query i and a key j
#
# - id 0 if the step at query i reads the token at key j,
# - id 1 ("other") if not. So also if j comes after i, and if query i writes nothing.
#
# `query` and `key` hold positions, in any order and number. At n = 4 the query 4 (the `=`) writes y1 and reads x1 at
# position 0.


# %%
def copy_relation(query: Int[Tensor, " q"], key: Int[Tensor, " k"], n: int) -> Int[Tensor, "q k"]:
    """Return 0 for each pair of a step's query and the key that it copies, and 1 for all other pairs."""
    ### BEGIN SOLUTION
    i, j = query[:, None], key[None, :]
    read = (i - j == n) & (j < n)
    return torch.where(read, 0, 1)
    ### END SOLUTION


# %%
ex.check_copy_relation(copy_relation)
# ex.check_copy_relation.hint(1)

# %% What one sees [markdown] tags=["solution"]
# One condition on i - j - n does nearly all of it. That is what a Scale Hint buys: in the form i - j - n the operand has the
# value 0 at every scale, also at those that training never showed.

# %%
ex.summary()
