"""Exercise 6. Five questions on circuits, unit operators, SRC and alignment, each done by hand.

The questions, their points, hints and checks stand in lgcourse/grading/bank/e06.py.
"""

# %% [markdown]
# # Exercise 6: Sequential representation complexity
#
# Five questions, 16 points, about an hour and a half. You run a circuit, find an operator that hides a carry, write a circuit, count how many
# operators are needed, and judge which steps a relation leaves within reach.
#
# Replace each line that ends in `# your code here`. Then run the cell below it: the check answers at once and names the
# likely mistake. If you are stuck, ask for a hint; hint 1 says least, hint 3 nearly gives the code. You can run the whole
# notebook at any time, finished or not.

# %%
import torch
from jaxtyping import Bool
from torch import Tensor

from lgcourse import tasks
from lgcourse.grading import checks
from lgcourse.show import layout_figure
from lgcourse.show.widgets import figure_html

ex = checks(6)

# %% [markdown]
# ## 1. `run_circuit` (2 points, 10 minutes, difficulty 2 of 5)
#
# A step is `(output, table, reads)`: the token at position `output` is the entry of `table`, a dictionary, for the tuple of tokens at the positions
# `reads`. The prompt stands at the positions from 0 on; the steps write all positions behind it, one each. **The steps may be listed in any
# order.**
#
# Return the tokens that the circuit writes, in the order of their positions.
#
# With the table `{(0,): 1, (1,): 0}`, the steps `[(2, table, (1,)), (1, table, (0,))]` and the prompt `[1]` the answer is `[0, 1]`.


# %%
def run_circuit(steps: list[tuple[int, dict, tuple[int, ...]]], prompt: list[int]) -> list[int]:
    """Return what a circuit writes behind a prompt."""
    ### BEGIN SOLUTION
    line = list(prompt)
    for _output, table, reads in sorted(steps, key=lambda step: step[0]):
        line.append(table[tuple(line[position] for position in reads)])
    return line[len(prompt) :]
    ### END SOLUTION


# %%
ex.check_run_circuit(run_circuit)
# ex.check_run_circuit.hint(1)

# %% What one sees [markdown] tags=["solution"]
# This is all that a decoder has to do. What makes it hard for a model is not the doing, but that it must learn the tables, and where the
# operands stand.

# %% [markdown]
# ## 2. `addition_column` (3 points, 15 minutes, difficulty 3 of 5)
#
# Addition is written with the least digit first. No carry is ever written. Still each digit follows from five tokens: the two digits of its own
# column, and the column before with the digit that was written there.

# %%
figure_html(layout_figure(tasks.get("addition"), 3))

# %% [markdown]
# Write the operator: return the digit of this column. In the column before, 7 and 5 with the written digit 3 mean that a carry had come in
# (7 + 5 + 1 = 13), and that one goes out.


# %%
def addition_column(a: int, b: int, a_before: int, b_before: int, s_before: int) -> int:
    """Return the digit of a column, from its two digits and the column before."""
    ### BEGIN SOLUTION
    carry_in = (s_before - a_before - b_before) % 10
    carry = (a_before + b_before + carry_in) // 10
    return (a + b + carry) % 10
    ### END SOLUTION


# %%
ex.check_addition_column(addition_column)
# ex.check_addition_column.hint(1)

# %% What one sees [markdown] tags=["solution"]
# A carry can run through a thousand columns, and yet each step reads five tokens and one table is enough. That is why SRC of addition stays
# the same.

# %% [markdown]
# ## 3. `parity_in_threes` (3 points, 15 minutes, difficulty 3 of 5)
#
# Parity of 2m + 1 bits with a shorter chain of thought: `x1 .. x(2m+1) = y1 .. ym`. Each step reads **three** tokens and writes their parity. The
# first one reads x1, x2, x3. Each later one reads the result before it and the next two bits, in this order.
#
# Return the steps in their order, as a list of `(output position, (three positions that are read))`. Positions count from 0.


# %%
def parity_in_threes(m: int) -> list[tuple[int, tuple[int, int, int]]]:
    """Return the steps (output, reads) of parity of 2 m + 1 bits with arity 3."""
    ### BEGIN SOLUTION
    first = (2 * m + 2, (0, 1, 2))
    later = [(2 * m + 1 + t, (2 * m + t, 2 * t - 1, 2 * t)) for t in range(2, m + 1)]
    return [first, *later]
    ### END SOLUTION


# %%
ex.check_parity_in_threes(parity_in_threes)
# ex.check_parity_in_threes.hint(1)

# %% What one sees [markdown] tags=["solution"]
# One table, "odd number of ones among three", serves all steps: SRC with k = 3 is 1 here, and with k = 2 the circuit of the lesson needs two.
# The bound k matters for the number. For whether it grows it does not matter here.

# %% [markdown]
# ## 4. `least_tables` (4 points, 25 minutes, difficulty 4 of 5)
#
# SRC by hand. Each operator is given by its table: a dictionary from tuples of tokens to a token. All tuples of one table have the same length, its
# arity. Operators can be served by one table if they have the same arity and no two of them say different things about the same tuple. Tables
# need not be complete.
#
# Return the **least** number of tables that serve all. There are at most seven operators.
#
# For `[{(0,): 1}, {(1,): 0}, {(0,): 0}]` the answer is 2.


# %%
def least_tables(tables: list[dict[tuple[int, ...], int]]) -> int:
    """Return the least number of tables that serve all operators."""

    ### BEGIN SOLUTION
    def agree(f, g):
        same_arity = len(next(iter(f))) == len(next(iter(g)))
        return same_arity and all(g.get(key, token) == token for key, token in f.items())

    def least(rest, groups):
        if not rest:
            return len(groups)
        first, rest = rest[0], rest[1:]
        counts = [least(rest, [*groups, [first]])]
        for k, group in enumerate(groups):
            if all(agree(first, other) for other in group):
                counts.append(least(rest, [*groups[:k], [*group, first], *groups[k + 1 :]]))
        return min(counts)

    return least(tables, [])
    ### END SOLUTION


# %%
ex.check_least_tables(least_tables)
# ex.check_least_tables.hint(1)

# %% What one sees [markdown] tags=["solution"]
# Draw a point for each operator and a line between two that disagree. The answer is the least number of colours such that no line has
# two ends of one colour, the chromatic number of the graph. In general that is hard to compute; the operators of a task are few.

# %% [markdown]
# ## 5. `resolvable_steps` (4 points, 25 minutes, difficulty 4 of 5)
#
# Alignment by hand. A step is `(operator's name, query, reads)` here. With each scale comes a table of ids, `ids[query][key]`: what the relation says
# at that scale. `train` is a list of such pairs (steps, ids), one per training scale; `test` is one pair.
#
# A test step can be done if
#
# - some training step had the same operator and the same ids of its operands, role by role, and
# - the id of each operand stands at one key only, among the keys 0 .. query of the test step.
#
# Return one truth value per test step. (The library also looks at what training says about the order of ids. That refinement is left
# out here.)


# %%
def resolvable_steps(train: list, test: tuple) -> Bool[Tensor, " s"]:
    """Return for each test step whether training has shown it and its ids find the operands."""
    ### BEGIN SOLUTION
    met = {
        (operator, tuple(ids[query][key] for key in reads))
        for steps, ids in train
        for operator, query, reads in steps
    }
    steps, ids = test
    good = []
    for operator, query, reads in steps:
        found = [ids[query][key] for key in reads]
        alone = all(ids[query][: query + 1].count(id) == 1 for id in found)
        good.append(alone and (operator, tuple(found)) in met)
    return torch.tensor(good)
    ### END SOLUTION


# %%
ex.check_resolvable_steps(resolvable_steps)
# ex.check_resolvable_steps.hint(1)

# %% What one sees [markdown] tags=["solution"]
# With the ids of RPE and a padded layout all steps pass, with those of APE only the ones that stand where training had them.

# %%
ex.summary()
