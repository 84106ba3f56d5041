"""Exercise 4. Six questions on LRC: counted in both ways, length by length, and what it means.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e04.py.
"""

# %% [markdown]
# # Exercise 4: Linear representation complexity
#
# Six questions, 17 points, about an hour and twenty minutes. You count LRC in both ways, follow it from length to length, and build
# what it promises: names that are fine enough, and the shortest code.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.
#
# The operators of a target come as a tensor `operators` with the p x d matrix of the pair (i, j) at `operators[i, j]`. **Pairs are those with
# j <= i**; what stands above the diagonal means nothing, in `operators` and in any other table over pairs. Unless it says
# otherwise the target does not depend on the length, so that the table of length l holds those of all shorter lengths. Numbers
# are float64, and equal operators are exactly equal.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lgcourse.grading import checks

ex = checks(4)

# %% [markdown]
# ## 1. `lrc_operators` (2 points, 10 minutes, difficulty 2 of 5)
#
# The first reading: the number of different non-zero operators at all pairs.


# %%
def lrc_operators(operators: Float[Tensor, "l l p d"]) -> int:
    """Return the number of different non-zero operators."""
    ### BEGIN SOLUTION
    i, j = torch.tril_indices(len(operators), len(operators))
    different = operators[i, j].flatten(1).unique(dim=0)
    return int(different.any(dim=1).sum())
    ### END SOLUTION


# %%
ex.check_lrc_operators(lrc_operators)
# ex.check_lrc_operators.hint(1)

# %% [markdown]
# ## 2. `lrc_by_length` (3 points, 15 minutes, difficulty 3 of 5)
#
# Now for targets that may depend on the length n. `operators[n - 1]` is the table of length n. All tables have the same size; at length n the pairs are
# those with j <= i < n, and what stands elsewhere means nothing.
#
# Return LRC up to each of the lengths 1, 2, ..., l, as a list of ints. Remember that LRC up to n counts the operators of *all* lengths up to n.
#
# Take a target of numbers that wants 5 at (0, 0) at length 1, and 6 at each of its three pairs at length 2: the answer is `[1, 2]`.


# %%
def lrc_by_length(operators: Float[Tensor, "l l l p d"]) -> list[int]:
    """Return the number of different non-zero operators up to each length."""
    ### BEGIN SOLUTION
    met, curve = set(), []
    for n in range(1, len(operators) + 1):
        i, j = torch.tril_indices(n, n)
        rows = operators[n - 1][i, j].flatten(1).tolist()
        met |= {tuple(row) for row in rows if any(row)}
        curve.append(len(met))
    return curve
    ### END SOLUTION


# %%
ex.check_lrc_by_length(lrc_by_length)
# ex.check_lrc_by_length.hint(1)

# %% What one sees [markdown] tags=["solution"]
# For reverse, where the same pair wants something else at each length, the list is 1, 1, 1, ... The target moves, and its operator stays.

# %% [markdown]
# ## 3. `represents` (3 points, 15 minutes, difficulty 3 of 5)
#
# The test that lesson 4 put to all ways of naming. `ids[i, j]` is the name of the pair (i, j). A POLA has one operator for each name, and the
# name `other` has the operator zero. (It may be that no pair is called `other`. `other` is any number; here it need not be 0.)
# Say whether the operators can be chosen so that the layer is exact.


# %%
def represents(ids: Int[Tensor, "l l"], operators: Float[Tensor, "l l p d"], other: int) -> bool:
    """Return whether a POLA with these names can be exact."""
    ### BEGIN SOLUTION
    i, j = torch.tril_indices(len(ids), len(ids))
    names, rows = ids[i, j], operators[i, j].flatten(1)
    for k in names.unique():
        mine = rows[names == k]
        wanted = torch.zeros_like(mine[0]) if k == other else mine[0]
        if (mine != wanted).any():
            return False
    return True
    ### END SOLUTION


# %%
ex.check_represents(represents)
# ex.check_represents.hint(1)

# %% What one sees [markdown] tags=["solution"]
# The answer is yes for the ideal names at every length. Whether a layer *learns* the operators at short lengths is another question: for that no
# name may be new where something is wanted.

# %% [markdown]
# ## 4. `lrc_rank` (3 points, 15 minutes, difficulty 3 of 5)
#
# The second reading: the dimension of the space that the operators span.


# %%
def lrc_rank(operators: Float[Tensor, "l l p d"]) -> int:
    """Return the dimension of the span of all operators."""
    ### BEGIN SOLUTION
    i, j = torch.tril_indices(len(operators), len(operators))
    return int(torch.linalg.matrix_rank(operators[i, j].flatten(1)))
    ### END SOLUTION


# %%
ex.check_lrc_rank(lrc_rank)
# ex.check_lrc_rank.hint(1)

# %% [markdown]
# ## 5. `basis_and_code` (4 points, 20 minutes, difficulty 4 of 5)
#
# The rank r is a promise: r operators are enough, and a code of r numbers for each pair mixes them. Keep it. The rows of `stack` are
# operators, flattened, in the order of their pairs. Go through them from the top and keep each row that is no mix of the rows
# before it: these are the basis. (Zeros are a mix of no rows at all, so they are never kept.) Return `(code, basis)` with
#
# $$\text{stack} = \text{code} \cdot \text{basis} .$$
#
# For the rows (1, 0), (2, 0), (1, 1) the basis is the first and the third row, and the code is (1, 0), (2, 0), (0, 1).


# %%
def basis_and_code(
    stack: Float[Tensor, "m f"],
) -> tuple[Float[Tensor, "m r"], Float[Tensor, "r f"]]:
    """Return the code of each row, and the rows that are kept."""
    ### BEGIN SOLUTION
    kept: list[int] = []
    for m in range(len(stack)):
        if torch.linalg.matrix_rank(stack[[*kept, m]]) > len(kept):
            kept.append(m)
    basis = stack[torch.tensor(kept, dtype=torch.long)]
    return stack @ torch.linalg.pinv(basis), basis
    ### END SOLUTION


# %%
ex.check_basis_and_code(basis_and_code)
# ex.check_basis_and_code.hint(1)

# %% What one sees [markdown] tags=["solution"]
# `theory.ideal_code_of` does this with the operators of the training lengths. At a longer length it goes on mixing the same basis, and that is
# enough just if the rank does not grow.

# %% [markdown]
# ## 6. `enough_length` (2 points, 5 minutes, difficulty 1 of 5)
#
# `curve` is the LRC of a target up to the lengths 1, 2, ..., l, so `curve[0]` belongs to length 1. Training shows all lengths up to
# N0, with N0 at least 1, and the test goes up to l. Return the least N0 from which on LRC does not grow any more up to l.


# %%
def enough_length(curve: list[int]) -> int:
    """Return the least training length after which LRC does not grow."""
    ### BEGIN SOLUTION
    return curve.index(curve[-1]) + 1
    ### END SOLUTION


# %%
ex.check_enough_length(enough_length)
# ex.check_enough_length.hint(1)

# %% Why it matters [markdown] tags=["solution"]
# In practice nobody has the whole curve. That a curve has rested for a while does not mean that it has stopped growing.

# %%
ex.summary()
