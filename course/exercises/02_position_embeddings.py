"""Exercise 2. Five position embeddings built by hand: sines, relative bias, T5, ALiBi, RoPE.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e02.py.
"""

# %% [markdown]
# # Exercise 2: Position embeddings
#
# Five questions, 12 points, about 70 minutes. You build five embeddings, each from its formula.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.
#
# In all questions i is the position of a query, j that of a key, both from 0. `positions`, `query` and `key` hold positions in any
# order and number. Numbers are float32 unless it says otherwise.

# %%
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lgcourse.grading import checks

ex = checks(2)

# %% [markdown]
# ## 1. `sinusoidal` (2 points, 10 minutes, difficulty 2 of 5)
#
# The oldest absolute embedding adds a fixed vector to the token at position j. With width d (even), its entries are
#
# $$p_{2m} = \sin\left(j / 10000^{2m/d}\right), \qquad p_{2m+1} = \cos\left(j / 10000^{2m/d}\right), \qquad m = 0, \dots, d/2 - 1.$$


# %%
def sinusoidal(positions: Int[Tensor, " l"], width: int) -> Float[Tensor, "l d"]:
    """Return the vector of each position; width is even."""
    ### BEGIN SOLUTION
    angle = positions[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    ### END SOLUTION


# %%
ex.check_sinusoidal(sinusoidal)
# ex.check_sinusoidal.hint(1)

# %% [markdown]
# ## 2. `relative_bias` (2 points, 10 minutes, difficulty 2 of 5)
#
# A relative embedding adds a learned number to the score of each pair. It stands in a table with a row per head and a
# column per distance 0, 1, ..., c. The pair (i, j) uses column i - j. Distances above c use column c. Keys after their query are
# masked later; let them use column 0.


# %%
def relative_bias(
    query: Int[Tensor, " q"], key: Int[Tensor, " k"], table: Float[Tensor, "h c"]
) -> Float[Tensor, "h q k"]:
    """Return the bias of each head for each pair of a query and a key."""
    ### BEGIN SOLUTION
    distance = query[:, None] - key[None, :]
    return table[:, distance.clamp(0, table.shape[1] - 1)]
    ### END SOLUTION


# %%
ex.check_relative_bias(relative_bias)
# ex.check_relative_bias.hint(1)

# %% [markdown]
# ## 3. `t5_bucket` (3 points, 20 minutes, difficulty 4 of 5)
#
# T5 has 32 buckets for the distances d = i - j of a decoder. Distances 0 to 15 have a bucket each. From there on
#
# $$16 + \left\lfloor 16 \cdot \frac{\log(d / 16)}{\log(128 / 16)} \right\rfloor,$$
#
# at most 31. So 128 and all that is farther share the last bucket.


# %%
def t5_bucket(distance: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """Return the bucket (int64) of each distance; distances are at least 0."""
    ### BEGIN SOLUTION
    share = (distance.clamp(min=16) / 16).log() / math.log(128 / 16)
    far = (16 + (16 * share).long()).clamp(max=31)
    return torch.where(distance < 16, distance, far)
    ### END SOLUTION


# %%
ex.check_t5_bucket(t5_bucket)
# ex.check_t5_bucket.hint(1)

# %% What one sees [markdown] tags=["solution"]
# The clamp at 16 keeps the logarithm of 0 away. It does no harm, since the near distances take the other branch.

# %% [markdown]
# ## 4. `alibi_bias` (2 points, 10 minutes, difficulty 2 of 5)
#
# ALiBi learns nothing. With H heads (here always a power of two), head h = 0, ..., H - 1 adds to the score of the pair (i, j)
#
# $$-2^{-8 (h + 1) / H} \, (i - j).$$
#
# Keys after their query are masked later; the formula may be used for them, too.


# %%
def alibi_bias(
    query: Int[Tensor, " q"], key: Int[Tensor, " k"], heads: int
) -> Float[Tensor, "h q k"]:
    """Return the bias of each head for each pair of a query and a key."""
    ### BEGIN SOLUTION
    slope = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    return -slope[:, None, None] * (query[:, None] - key[None, :])
    ### END SOLUTION


# %%
ex.check_alibi_bias(alibi_bias)
# ex.check_alibi_bias.hint(1)

# %% [markdown]
# ## 5. `rope` (3 points, 20 minutes, difficulty 4 of 5)
#
# RoPE turns the vector at position t. Its coordinates are paired, (0, 1), (2, 3), ...; pair m is turned by the angle
# $t / 10000^{2m/d}$:
#
# $$(x, y) \mapsto (x \cos - y \sin, \; x \sin + y \cos).$$
#
# Queries and keys are both turned, each at its own position.


# %%
def rope(x: Float[Tensor, "l d"], positions: Int[Tensor, " l"]) -> Float[Tensor, "l d"]:
    """Return the vectors, each turned by its position; the width d is even."""
    ### BEGIN SOLUTION
    width = x.shape[1]
    angle = positions[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    cos, sin = angle.cos(), angle.sin()
    first, second = x[:, 0::2], x[:, 1::2]
    return torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(1)
    ### END SOLUTION


# %%
ex.check_rope(rope)
# ex.check_rope.hint(1)

# %% What one sees [markdown] tags=["solution"]
# The product of a turned query and a turned key depends on the difference of their positions only. Try it: turn q at 7 and k
# at 3, then q at 104 and k at 100.

# %%
ex.summary()
