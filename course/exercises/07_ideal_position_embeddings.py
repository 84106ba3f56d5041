"""Exercise 7. Five questions on ideal relations: made by hand, with and without a hint, and used.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e07.py.
"""

# %% [markdown]
# # Exercise 7: Ideal position embeddings
#
# Five questions, 15 points, about an hour and a quarter. You write an ideal relation as a formula and make one from steps. You find out
# whether one exists without a hint, let a head attend by it, and count the ids that another relation has to spare.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lgcourse import tasks
from lgcourse.grading import checks
from lgcourse.show import layout_figure
from lgcourse.show.widgets import figure_html

ex = checks(7)

# %% [markdown]
# ## 1. `parity_relation` (3 points, 15 minutes, difficulty 3 of 5)
#
# Parity with chain of thought is `x1 .. xn = y1 .. yn`. Here it is for n = 4:

# %%
figure_html(layout_figure(tasks.get("parity-cot"), 4))

# %% [markdown]
# Write its ideal relation as a formula, with Scale Hint. We give the bit of the first step the same id as the later bits. For each
# pair of a query i and a key j
#
# - id 0 if the step at i reads y_(t-1) at j, the result before,
# - id 1 if the step at i reads x_t at j,
# - id 2 ("other") if neither. So also if j comes after i, and if query i writes nothing.
#
# `query` and `key` hold positions, in any order and number. The query of the step that writes y_t stands one place before y_t.


# %%
def parity_relation(query: Int[Tensor, " q"], key: Int[Tensor, " k"], n: int) -> Int[Tensor, "q k"]:
    """Return 0 for the result before, 1 for the bit of the input, and 2 for all other pairs."""
    ### BEGIN SOLUTION
    i, j = query[:, None], key[None, :]
    bit = (i - j == n) & (j < n)
    result = (i == j) & (n < i) & (i < 2 * n)
    return torch.where(bit, 1, torch.where(result, 0, 2))
    ### END SOLUTION


# %%
ex.check_parity_relation(parity_relation)
# ex.check_parity_relation.hint(1)

# %% What one sees [markdown] tags=["solution"]
# Two forms, i - j and i - j - n, are zero at the operands, at every scale. The rest of the formula says where there is a step at all.

# %% [markdown]
# ## 2. `ideal_table` (2 points, 10 minutes, difficulty 2 of 5)
#
# Now for any circuit. Its steps at one scale are given as `(query, ((key, role), (key, role), ...))`. Return the table of ids for all pairs of
# positions 0 .. length - 1: the place of the role in the list `roles` where the step at the query reads the key, and `len(roles)`, "other",
# everywhere else.


# %%
def ideal_table(
    steps: list[tuple[int, tuple[tuple[int, str], ...]]], roles: list[str], length: int
) -> Int[Tensor, "l l"]:
    """Return the id of each pair (query, key): the number of its role, or other."""
    ### BEGIN SOLUTION
    ids = torch.full((length, length), len(roles))
    for query, reads in steps:
        for key, role in reads:
            ids[query, key] = roles.index(role)
    return ids
    ### END SOLUTION


# %%
ex.check_ideal_table(ideal_table)
# ex.check_ideal_table.hint(1)

# %% What one sees [markdown] tags=["solution"]
# The numbers of the roles are fixed for all scales. That is the point: what a head has learned for an id at one scale is meant for the same role
# at all others.

# %% [markdown]
# ## 3. `first_conflict` (3 points, 15 minutes, difficulty 3 of 5)
#
# Without a hint one table must serve all scales. You get what the steps of two scales read: `{query: {key: role}}`. At a query that
# makes a step at both scales, both must give each key the same name, where "other" is the name of a key that is not read. A query that
# makes a step at one of the scales only is free at the other.
#
# Return the first pair (query, key) that has two names: the one with the least query, and among these the least key. Return `(-1, -1)` if there
# is none.


# %%
def first_conflict(
    first: dict[int, dict[int, str]], second: dict[int, dict[int, str]]
) -> tuple[int, int]:
    """Return the first (query, key) that two scales name differently, or (-1, -1)."""
    ### BEGIN SOLUTION
    for query in sorted(set(first) & set(second)):
        mine, other = first[query], second[query]
        for key in sorted(set(mine) | set(other)):
            if mine.get(key) != other.get(key):
                return query, key
    return -1, -1
    ### END SOLUTION


# %%
ex.check_first_conflict(first_conflict)
# ex.check_first_conflict.hint(1)

# %% What one sees [markdown] tags=["solution"]
# Without a conflict the tables of all scales can be laid over each other, and no Scale Hint is needed. Padding a task to one width takes the
# conflicts away.

# %% [markdown]
# ## 4. `role_attention` (4 points, 20 minutes, difficulty 4 of 5)
#
# One head that attends by role alone. `ids` is the table of a relation, `strengths[id]` is what the head has learned for an id, and `other` is the
# id of keys without a role. Query i sees the keys j < i that have a role (an id that is not `other`), and always itself, whatever its own id. The
# score of a key is the strength of its id.
#
# Return for each query the mean of `values` over the keys that it sees, weighted by the softmax of their scores.


# %%
def role_attention(
    ids: Int[Tensor, "l l"],
    strengths: Float[Tensor, " k"],
    other: int,
    values: Float[Tensor, "l d"],
) -> Float[Tensor, "l d"]:
    """Return what one head reads if it attends by role."""
    ### BEGIN SOLUTION
    length = len(ids)
    itself = torch.eye(length, dtype=torch.bool)
    causal = torch.tril(torch.ones(length, length)).bool()
    seen = ((ids != other) & causal) | itself
    scores = strengths[ids].masked_fill(~seen, -torch.inf)
    return scores.softmax(dim=1) @ values
    ### END SOLUTION


# %%
ex.check_role_attention(role_attention)
# ex.check_role_attention.hint(1)

# %% What one sees [markdown] tags=["solution"]
# A query sees no more keys on a long row than on a short one. That is why the weights do not fade as rows get longer.

# %% [markdown]
# ## 5. `redundant_ids` (3 points, 15 minutes, difficulty 3 of 5)
#
# An aligning relation may have more ids than there are roles. For each training scale you get a table `ids[query][key]` and what the steps
# read, `{query: {key: role}}`. An id is *met* if it stands at a key 0 .. query of some step's query. It is *used* if it stands at a key that
# the step reads. Used at any scale is used.
#
# Return the number of ids that are met and never used.


# %%
def redundant_ids(train: list) -> int:
    """Return how many ids are met at steps and belong to no operand."""
    ### BEGIN SOLUTION
    met, used = set(), set()
    for ids, reads in train:
        for query, row in reads.items():
            met |= set(ids[query][: query + 1])
            used |= {ids[query][key] for key in row}
    return len(met - used)
    ### END SOLUTION


# %%
ex.check_redundant_ids(redundant_ids)
# ex.check_redundant_ids.hint(1)

# %% What one sees [markdown] tags=["solution"]
# For the ideal relation the answer is 1, `other`, or 0 where all keys are read. For RPE it grows with the length of the rows.

# %%
ex.summary()
