"""Exercise 9. Five questions on lesson 9: where the hint comes from, what it names, what it saves.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e09.py.
"""

# %% [markdown]
# # Exercise 9: The Scale Hint
#
# Five questions, 16 points, about an hour and twenty minutes. You read the hint off a prompt, write a relation that needs it, find the form that
# names an operand, follow a model that is lied to, and count what is saved.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.

# %%
import torch
from jaxtyping import Int
from torch import Tensor

from lgcourse import tasks
from lgcourse.grading import checks
from lgcourse.show import layout_figure
from lgcourse.show.widgets import figure_html

ex = checks(9)

# %% [markdown]
# ## 1. `scale_of` (2 points, 10 minutes, difficulty 2 of 5)
#
# Rows of unpadded addition, `a1 .. an + b1 .. bn = s1 ..`. The tokens are the digits 0 to 9, 10 for `+` and 11 for `=`. The answer may be
# there, or a part of it, or nothing; behind it zeros may fill the row up. Rows may have different scales.
#
# Return n for each row, as int64.


# %%
def scale_of(tokens: Int[Tensor, "b l"]) -> Int[Tensor, " b"]:
    """Return the number of digits of one operand, for each row."""
    ### BEGIN SOLUTION
    return (tokens == 10).long().argmax(dim=1)
    ### END SOLUTION


# %%
ex.check_scale_of(scale_of)
# ex.check_scale_of.hint(1)

# %% What one sees [markdown] tags=["solution"]
# The hint uses nothing but the prompt, so the model may have it before it writes its first digit.

# %% [markdown]
# ## 2. `shift_relation` (4 points, 20 minutes, difficulty 3 of 5)
#
# Shift is `x1 .. xn = xn x1 .. x(n-1)`: the last symbol comes first. Here it is for n = 4:

# %%
figure_html(layout_figure(tasks.get("shift"), 4))

# %% [markdown]
# Write its ideal relation with Scale Hint: for each pair of a query i and a key j
#
# - id 0 if the step at query i reads the token at key j,
# - id 1 ("other") if not. So also if j comes after i, and if query i writes nothing.
#
# `query` and `key` hold positions, in any order and number. Ids are int64. A sequence can have a single symbol, n = 1.


# %%
def shift_relation(query: Int[Tensor, " q"], key: Int[Tensor, " k"], n: int) -> Int[Tensor, "q k"]:
    """Return 0 for each pair of a step's query and the key that it reads, and 1 for all others."""
    ### BEGIN SOLUTION
    i, j = query[:, None], key[None, :]
    first = (i == n) & (j == n - 1)
    later = (i - j == n + 1) & (j < n - 1)
    return torch.where(first | later, 0, 1)
    ### END SOLUTION


# %%
ex.check_shift_relation(shift_relation)
# ex.check_shift_relation.hint(1)

# %% [markdown]
# ## 3. `fit_form` (4 points, 20 minutes, difficulty 4 of 5)
#
# You have watched the steps of one role: the step at `query[s]`, at scale `scale[s]`, read the key `key[s]`. Steps of at least three scales are among
# them. Find the form that names the operand at all of them: the factors b, -1 or 1, and c, from 0 to 3, for which
#
# $$i + b\,j - c\,n$$
#
# is the same at all steps. Return `(b, c, value)`, where value is that number. One pair (b, c) alone does it.
#
# In copy, the step at query n + t - 1 reads the key t - 1. So the answer is `(-1, 1, 0)`.


# %%
def fit_form(
    query: Int[Tensor, " s"], key: Int[Tensor, " s"], scale: Int[Tensor, " s"]
) -> tuple[int, int, int]:
    """Return b, c and the value that i + b j - c n has at all steps."""
    ### BEGIN SOLUTION
    for b in (-1, 1):
        for c in range(4):
            value = query + b * key - c * scale
            if bool((value == value[0]).all()):
                return b, c, int(value[0])
    raise ValueError("no form fits")
    ### END SOLUTION


# %%
ex.check_fit_form(fit_form)
# ex.check_fit_form.hint(1)

# %% What one sees [markdown] tags=["solution"]
# A step of one scale cannot tell 4 from n. That is the trouble with learning from one length, and the reason why training shows several.

# %% [markdown]
# ## 4. `misread` (4 points, 20 minutes, difficulty 4 of 5)
#
# A model adds perfectly under the true hint: to write s_t, it reads the two keys at the distances at which a_t and b_t stand behind its query. These
# distances depend on the number that it is told, as in lesson 9, and are the same for all t. Now the true scale is n and it is
# told another one, by which it computes its distances. The sequence and the query are those of n.
#
# Return the names of the tokens that it reads for a_t and for b_t, such as `("a2", "b2")`. Names are those of the layout: `a1`, .., `an`,
# `+`, `b1`, .., `bn`, `=`, `s1`, .. A place before the first token is `"nothing"`. Here t is from 1 to n, and the hint may be too small or too large.
#
# For n = 3, told 2 and t = 1 the answer is `("a3", "b2")`.


# %%
def misread(n: int, told: int, t: int) -> tuple[str, str]:
    """Return what is read for a_t and for b_t at scale n under the hint told."""
    ### BEGIN SOLUTION
    names = [f"a{k}" for k in range(1, n + 1)] + ["+"]
    names += [f"b{k}" for k in range(1, n + 1)] + ["="]
    names += [f"s{k}" for k in range(1, n + 2)]
    query = 2 * n + t
    places = (query - 2 * told - 1, query - told)
    first, second = (names[p] if p >= 0 else "nothing" for p in places)
    return first, second
    ### END SOLUTION


# %%
ex.check_misread(misread)
# ex.check_misread.hint(1)

# %% What one sees [markdown] tags=["solution"]
# Off by one in the hint is off by two for a and by one for b: the model adds digits of different columns. No wonder that hardly an answer is right.

# %% [markdown]
# ## 5. `tokens_saved` (2 points, 10 minutes, difficulty 2 of 5)
#
# Training draws each scale n from 1 to `longest` equally often, the last one included. Unpadded, a row of addition is `a1 .. an +
# b1 .. bn = s1 .. s(n+1)`. Padded to W = `width`, each of the three numbers has W + 1 digits at every scale. The `+` and the `=`
# are tokens, too.
#
# Return which share of the tokens an average unpadded row saves, as a Python float.


# %%
def tokens_saved(longest: int, width: int) -> float:
    """Return 1 - (mean length of an unpadded row) / (length of a padded row)."""
    ### BEGIN SOLUTION
    unpadded = 3 * (longest + 1) / 2 + 3
    return 1 - unpadded / (3 * width + 5)
    ### END SOLUTION


# %%
ex.check_tokens_saved(tokens_saved)
# ex.check_tokens_saved.hint(1)

# %%
ex.summary()
