"""Exercise 10. Five questions: build a learned relation from its parts, and count what is new.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e10.py.
"""

# %% [markdown]
# # Exercise 10: Learned position embeddings
#
# Five questions, 16 points, a bit more than an hour. The first four are the parts of a learned relation: the gate, the forms, the
# cells and what is left out. Put together they are the library's. The last one counts how much of a fixed relation was never trained.
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

ex = checks(10)

# %% [markdown]
# ## 1. `gate_shares` (2 points, 5 minutes, difficulty 1 of 5)
#
# Each head has one number per form, its gate. A softmax with a temperature T makes shares of them: at a high temperature all forms
# have a share, at a low one the largest gate takes nearly all.
#
# Return for each head the share of each form.


# %%
def gate_shares(gates: Float[Tensor, "h f"], temperature: float) -> Float[Tensor, "h f"]:
    """Return the share of each form in each head; the shares of a head add up to 1."""
    ### BEGIN SOLUTION
    return torch.softmax(gates / temperature, dim=1)
    ### END SOLUTION


# %%
ex.check_gate_shares(gate_shares)
# ex.check_gate_shares.hint(1)

# %% [markdown]
# ## 2. `form_values` (3 points, 10 minutes, difficulty 2 of 5)
#
# A form is $u(i, j, n) = a\,i + b\,j + c\,n$ with whole numbers a, b, c. Row f of `forms` holds a, b and c of form f.
#
# Return the value of each form for each query i and each key j. `query` and `key` hold positions, in any order and number.


# %%
def form_values(
    forms: Int[Tensor, "f 3"], query: Int[Tensor, " q"], key: Int[Tensor, " k"], n: int
) -> Int[Tensor, "f q k"]:
    """Return a i + b j + c n for each form (a, b, c), query i and key j."""
    ### BEGIN SOLUTION
    a, b, c = (forms[:, column, None, None] for column in range(3))
    return a * query[:, None] + b * key[None, :] + c * n
    ### END SOLUTION


# %%
ex.check_form_values(form_values)
# ex.check_form_values.hint(1)

# %% [markdown]
# ## 3. `soft_strength` (4 points, 20 minutes, difficulty 4 of 5)
#
# One head has a table: for each form, one learned number for each value from -w to w. The first column stands for -w. A pair (i, j)
# gets from each form the number of its value there, times the form's share. A value outside -w..w gives nothing.
#
# Return the sum over the forms, for each pair. `values` is what `form_values` returns.


# %%
def soft_strength(
    share: Float[Tensor, " f"], table: Float[Tensor, "f v"], values: Int[Tensor, "f q k"]
) -> Float[Tensor, "q k"]:
    """Return sum_f share[f] table[f, value of form f], where values outside the table give 0."""
    ### BEGIN SOLUTION
    window = (table.shape[1] - 1) // 2
    inside = values.abs() <= window
    rows = torch.arange(len(table))[:, None, None]
    entry = table[rows, values.clamp(-window, window) + window]
    return (share[:, None, None] * torch.where(inside, entry, 0.0)).sum(dim=0)
    ### END SOLUTION


# %%
ex.check_soft_strength(soft_strength)
# ex.check_soft_strength.hint(1)

# %% Why it matters [markdown] tags=["solution"]
# This number is differentiable in the gates and in the table. So the loss of the task can decide both: which form a head follows,
# and which of its values it likes. An ordinary learnable embedding has the table alone.

# %% [markdown]
# ## 4. `exclude` (3 points, 10 minutes, difficulty 3 of 5)
#
# In the second half of its training a head attends only to keys that stand in one of its chosen cells. `inside` says which pairs
# do; it looks at the numbers only, so it may also be True for keys behind the query.
#
# Return the bias, with minus infinity at each key that gets no attention. Kept are the keys inside that are not behind the
# query, and always the query itself.


# %%
def exclude(
    bias: Float[Tensor, "q k"],
    inside: Bool[Tensor, "q k"],
    query: Int[Tensor, " q"],
    key: Int[Tensor, " k"],
) -> Float[Tensor, "q k"]:
    """Return the bias with minus infinity at keys that are left out."""
    ### BEGIN SOLUTION
    i, j = query[:, None], key[None, :]
    kept = (inside & (j < i)) | (j == i)
    return torch.where(kept, bias, torch.full_like(bias, float("-inf")))
    ### END SOLUTION


# %%
ex.check_exclude(exclude)
# ex.check_exclude.hint(1)

# %% [markdown]
# ## 5. `new_values` (4 points, 20 minutes, difficulty 3 of 5)
#
# Take `reverse`. Here is its layout for n = 3, and what each step reads:

# %%
print(layout_text(tasks.get("reverse"), 3))

# %% [markdown]
# A fixed relation calls each pair of a query and its operand by the value of one form (a, b, c). Training shows the scales 1 to
# `trained`. Which share of the n steps of scale n has an operand under a value that no operand of the training scales had?
#
# For the form (1, -1, 0), the distance, with `trained` = 2 and n = 3: training shows operands at the distances 1 and 3,
# scale 3 needs 1, 3 and 5, so the answer is one third.


# %%
def new_values(form: tuple[int, int, int], trained: int, n: int) -> float:
    """Return the share of the steps of reverse at scale n whose operand has an unknown value."""
    ### BEGIN SOLUTION
    a, b, c = form

    def value(m, t):
        return a * (m + t - 1) + b * (m - t) + c * m

    known = {value(m, t) for m in range(1, trained + 1) for t in range(1, m + 1)}
    return sum(value(n, t) not in known for t in range(1, n + 1)) / n
    ### END SOLUTION


# %%
ex.check_new_values(new_values)
# ex.check_new_values.hint(1)

# %% What one sees [markdown] tags=["solution"]
# Try (1, -1, 0), (1, 1, 0) and (1, 1, -2) with trained = 10 and n = 20. The third has one value for all steps of all scales. No
# table over the first two can be right at 20, however long it was trained.

# %%
ex.summary()
