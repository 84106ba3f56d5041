"""Exercise 12. Five questions: neighbouring ideas, what a certificate checks, a task of one's own.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e12.py.
"""

# %% [markdown]
# # Exercise 12: Beyond
#
# Five questions, 17 points, about an hour and a half. Two build the ids of neighbouring ideas. Two build what a certificate needs. The last
# one is the first half of the capstone: you write down the answers, the circuit and the relation of a new task.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.

# %%
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lgcourse.grading import checks

ex = checks(12)

# %% [markdown]
# ## 1. `abacus_ids` (3 points, 15 minutes, difficulty 3 of 5)
#
# Abacus embeddings (McLeish et al., 2024) tell a digit which place of its number it has. The ids of `314+15=` are 1 2 3 0 1 2 0.
#
# `is_digit` says for b sequences which tokens are digits. Return the ids: 1, 2, 3, ... inside each run of digits, 0 for other
# tokens.


# %%
def abacus_ids(is_digit: Bool[Tensor, "b l"]) -> Int[Tensor, "b l"]:
    """Count 1, 2, 3, ... inside each run of digits; other tokens get 0."""
    ### BEGIN SOLUTION
    place = torch.arange(is_digit.shape[1])
    last_sign = torch.where(is_digit, -1, place).cummax(dim=1).values
    return place - last_sign
    ### END SOLUTION


# %%
ex.check_abacus_ids(abacus_ids)
# ex.check_abacus_ids.hint(1)

# %% [markdown]
# ## 2. `coupled_ids` (2 points, 10 minutes, difficulty 2 of 5)
#
# Position coupling (Cho et al., 2024) gives tokens that belong together one id. Write it for addition with the least digit first,
# `a1 .. an + b1 .. bn = s1 .. s(n+1)`: the digits a_t, b_t and s_t share the id t + 1. The `=` has id 1. The `+` goes with the
# last column, that of s_(n+1), and has id n + 2.
#
# Return the ids of all positions of a sequence of scale n. For n = 1 they are 2 3 2 1 2 3.


# %%
def coupled_ids(n: int) -> Int[Tensor, " l"]:
    """Return the id of each position of an addition of n digits."""
    ### BEGIN SOLUTION
    digits = torch.arange(2, n + 2)
    plus, equals = torch.tensor([n + 2]), torch.tensor([1])
    return torch.cat([digits, plus, digits, equals, digits, plus])
    ### END SOLUTION


# %%
ex.check_coupled_ids(coupled_ids)
# ex.check_coupled_ids.hint(1)

# %% [markdown]
# ## 3. `reachable` (4 points, 20 minutes, difficulty 3 of 5)
#
# A certificate checks a model on every tuple of tokens that a step can meet. Some tuples never occur, because a result before
# never has that value.
#
# A running task is given by two tables. `first[x]` is the first result if the first input is x. `step[y, x]` is the result
# after the result y and the input x. -1 stands for what is not defined. Return for each result whether it can ever occur.


# %%
def reachable(first: Int[Tensor, " x"], step: Int[Tensor, "y x"]) -> Bool[Tensor, " y"]:
    """Return which results can occur after some number of steps."""
    ### BEGIN SOLUTION
    found = torch.zeros(len(step), dtype=torch.bool)
    new = first[first >= 0]
    while not bool(found[new].all()):
        found[new] = True
        new = step[found]
        new = new[new >= 0]
    return found
    ### END SOLUTION


# %%
ex.check_reachable(reachable)
# ex.check_reachable.hint(1)

# %% [markdown]
# ## 4. `smallest_margin` (3 points, 10 minutes, difficulty 3 of 5)
#
# A model answered t tuples: one row of logits each. The margin of a tuple is the logit of the right token minus the largest of
# the other logits. It is positive just if the model is right.
#
# Return the smallest margin of all tuples, as a Python float.


# %%
def smallest_margin(logits: Float[Tensor, "t v"], right: Int[Tensor, " t"]) -> float:
    """Return the smallest difference of the right logit and the best other one."""
    ### BEGIN SOLUTION
    own = torch.nn.functional.one_hot(right, logits.shape[1]).bool()
    others = logits.masked_fill(own, float("-inf")).amax(dim=1)
    return (logits[own] - others).min().item()
    ### END SOLUTION


# %%
ex.check_smallest_margin(smallest_margin)
# ex.check_smallest_margin.hint(1)

# %% Why it matters [markdown] tags=["solution"]
# If this number is above what rounding can change, the model is right on every tuple, so by induction it is right at every length. One
# number carries the whole proof.

# %% [markdown]
# ## 5. `my_task` (5 points, 30 minutes, difficulty 4 of 5)
#
# The capstone begins with a task. Take *differences*: `x1 .. xn = y1 .. yn` with $y_t = x_t - x_{t-1}$ modulo 10, and y_1 = x_1.
# So `31415=` gives `38374`.
#
# Return three things for b inputs of n digits:
#
# - the answers, as tokens 0 to 9;
# - the steps t = 1..n as a list of tuples: the position of the query, of x_t, and of x_(t-1), counted from 0; -1 for an operand
#   that a step does not have;
# - the values that $i - j - n$ has at the operands, as a sorted list without repeats. These are the ids that a relation with
#   Scale Hint must tell apart.


# %%
def my_task(
    x: Int[Tensor, "b n"],
) -> tuple[Int[Tensor, "b n"], list[tuple[int, int, int]], list[int]]:
    """Return answers, steps (query, x_t, x_(t-1)), and the values of i - j - n at operands."""
    ### BEGIN SOLUTION
    n = x.shape[1]
    answers = x.clone()
    answers[:, 1:] = (x[:, 1:] - x[:, :-1]) % 10
    steps = [(n + t - 1, t - 1, t - 2) for t in range(1, n + 1)]
    values = sorted({i - j - n for i, *operands in steps for j in operands if j >= 0})
    return answers, steps, values
    ### END SOLUTION


# %%
ex.check_my_task(my_task)
# ex.check_my_task.hint(1)

# %% [markdown]
# ## The second half of the capstone
#
# It has no points here, for nobody but you knows the task. Invent one, or make *differences* a class as lesson 12 shows. Then use
# `report` of that lesson: it checks the circuit, counts the operators, asks theory for a prediction, trains, measures at ten
# times the training scale, and tries for a certificate. Write the prediction down before you train.

# %%
ex.summary()
