"""Lesson 6. Which tasks need something new at longer inputs? Counting unit operators: SRC.

Nothing in the text may state a measured number: the cells print them.
"""

# %% [markdown]
# # Lesson 6: Sequential representation complexity
#
# **The claim.** A task that is solved token by token needs a number of different small operations. Whether that number stays the same on
# longer inputs depends on what may be written down on the way, and it says whether length generalisation can be hoped for.
#
# Time: about 35 minutes, of which less than half a minute is training, on two CPU cores. You need lessons 1 and 5.

# %%
from itertools import product

import torch

import lgcourse
from lgcourse import embeddings, relations, tasks, theory
from lgcourse.show import complexity_figure, layout_figure
from lgcourse.show.widgets import figure_html
from lgcourse.training import seeded

# %% [markdown]
# ## 1. A model that knows every short answer
#
# Is the number of ones in a row of bits odd? That is *parity*. The order of the bits does not matter, so we give the model no positions at
# all (`none`). Then nothing can go wrong with positions that training did not show.

# %% tags=["nbval-check-output"]
task = tasks.get("parity-direct")
print("10110 ->", task.solve("10110="))
print("11110 ->", task.solve("11110="))

# %% [markdown]
# There are few rows of up to 4 bits, and the model sees each of them again and again. The next cell takes about 15 seconds.

# %%
LONGEST = 4
embedding = embeddings.build("none", task, width=64, heads=4)
with seeded(0, "weights"):  # the same first weights at every run
    model = lgcourse.Transformer(len(task.vocabulary), embedding, layers=2, width=64, heads=4)


def train(steps):
    run = lgcourse.fit(
        model,
        task,
        range(1, LONGEST + 1),
        steps=steps,
        seed=0,
        batch=64,
        learning_rate=2e-3,
        device="cpu",
    )
    print(f"{run.steps} updates in {run.seconds:.0f} s, last loss {run.losses[run.steps]:.4f}")


train(steps=1500)

# %% [markdown]
# Now we ask it for **all** rows of bits, not for a sample. The metric is exact match; guessing would reach one half.


# %%
def share_of_right(n):
    """Return the model's exact match on all rows of n bits."""
    bits = torch.tensor(list(product((0, 1), repeat=n)))  # 2^n rows
    equals = torch.full((len(bits), 1), task.vocabulary.index("="))
    with torch.inference_mode():
        logits = model(torch.cat([bits, equals], dim=1), n)  # b l v
    return (logits[:, -1].argmax(-1) == bits.sum(dim=1) % 2).double().mean().item()


print("bits   rows   exact match")
for n in range(1, 11):
    print(f"{n:4}  {2**n:5}   {share_of_right(n):11.3f}" + ("   new" if n > LONGEST else ""))

# %% [markdown]
# Compare the first new row with one half. One more bit, and the model does no better than guessing. No position that training did not show can
# have misled it: it was given none. What did it lack?

# %% [markdown]
# ## 2. A circuit, built by hand
#
# A decoder writes one token per step. Let us write down what a step has to do: which earlier tokens it reads, and which token follows. The
# second part is a finite table from a tuple of tokens to a token. We call it a **unit operator**. A **circuit** is a list of steps for each
# scale n.
#
# Parity with a *chain of thought* may write the running result: `x1 .. xn = y1 .. yn`, where y_t is the parity of the first t bits. Here are its
# two operators, as dictionaries:

# %% tags=["nbval-check-output"]
take = {(0,): 0, (1,): 1}
xor = {(0, 0): 0, (0, 1): 1, (1, 0): 1, (1, 1): 0}


def parity_steps(n):
    """Return the steps of parity with chain of thought: (output position, table, positions read)."""
    first = [(n + 1, take, (0,))]  # y_1 = x_1
    return first + [(n + t, xor, (n + t - 1, t - 1)) for t in range(2, n + 1)]  # y_(t-1), x_t


def run(steps, prompt):
    """Return the tokens that a circuit writes behind a prompt."""
    line = list(prompt)
    for _output, table, reads in steps:  # in the order of their outputs
        line.append(table[tuple(line[position] for position in reads)])
    return line[len(prompt) :]


EQUALS = 2
print("1 0 1 1 0 =", *run(parity_steps(5), [1, 0, 1, 1, 0, EQUALS]))

# %% [markdown]
# The same in a picture. Each coloured square is a token that a step reads:

# %%
figure_html(layout_figure(tasks.get("parity-cot"), 5))

# %% [markdown]
# And parity *without* a chain of thought: one step that reads all n bits. Its table has a row for each of the $2^n$ inputs.

# %% tags=["nbval-check-output"]


def direct_steps(n):
    """Return the one step of parity without chain of thought."""
    table = {bits: sum(bits) % 2 for bits in product((0, 1), repeat=n)}
    return [(n + 1, table, tuple(range(n)))]


print("1 0 1 1 0 =", *run(direct_steps(5), [1, 0, 1, 1, 0, EQUALS]))
print("n            ", *(f"{n:5}" for n in range(1, 11)))
for words, steps in {"with CoT": parity_steps, "without": direct_steps}.items():
    rows = [sum(len(t) for t in {id(t): t for _, t, _ in steps(n)}.values()) for n in range(1, 11)]
    print(f"{words:9} rows", *(f"{count:5}" for count in rows))

# %% [markdown]
# That is what the model lacked. The table for one more bit is a new table, and nobody showed it. Could a step read less? No: flip any one bit,
# and the answer flips. A step that leaves out a bit is wrong on one of the two.

# %% tags=["nbval-check-output"]
for n in range(1, 9):
    ((_, table, reads),) = direct_steps(n)
    decides = [
        all(table[bits] != table[(*bits[:k], 1 - bits[k], *bits[k + 1 :])] for bits in table)
        for k in range(n)
    ]
    print(n, "bits:", sum(decides), "of them decide")

# %% [markdown]
# ## 3. Counting
#
# How many unit operators does a circuit need on all scales up to n? Two steps may share an operator if one table serves both:
#
# - both read the same number of tokens, and
# - where both tables say something about the same tuple, they say the same.
#
# The second point matters: a table need not be complete. Two tables that never meet the same tuple can be one. So we put each operator into the
# first group whose members it agrees with, and open a new group where there is none.


# %%
def consistent(f, g):
    """Return whether one table serves two operators."""
    if {len(key) for key in f} != {len(key) for key in g}:
        return False
    return all(g.get(key, token) == token for key, token in f.items())


def merge(tables):
    """Return groups of tables, such that one table serves each group."""
    groups = []
    for table in tables:
        for group in groups:
            if all(consistent(table, other) for other in group):
                group.append(table)
                break
        else:
            groups.append([table])
    return groups


def count_operators(steps_of, n):
    """Return the number of tables, after merging, of a circuit on scales 1..n."""
    distinct = []
    for scale in range(1, n + 1):
        for _, table, _ in steps_of(scale):
            if table not in distinct:
                distinct.append(table)
    return len(merge(distinct))


# %% tags=["nbval-check-output"]
print("scale     ", *range(1, 8))
print("with CoT  ", *(count_operators(parity_steps, n) for n in range(1, 8)))
print("without   ", *(count_operators(direct_steps, n) for n in range(1, 8)))

# %% [markdown]
# With the chain of thought two operators are enough for ever. Without it, each scale brings one.
#
# > **Definition.** The *sequential representation complexity* $\mathrm{SRC}_k(f, n)$ of a task $f$ is the least number of unit operators, over all
# > circuits of the task whose steps read at most k tokens, that serve all scales up to n.
#
# The bound k belongs to the definition. Without it one could always read everything in a single step, and each task would look alike. With a
# bound, parity without chain of thought has no circuit at all beyond k bits: then we say that SRC is infinite.
#
# What a program counts, ours and the library's, is the number for one given circuit. It is an upper bound of SRC: a better circuit might
# need fewer. And taking the first group that fits is not always best. The library looks for the least number of groups, and so will
# you in exercise 6.

# %% [markdown]
# ## 4. Does merging ever matter?
#
# Multiplication of two long numbers can be written with all partial products (`multiply-scratchpad`). Two operators of its circuit read a
# single token: `take` copies a digit, and `mark` writes the next of the signs between the products. The one never meets a sign and
# the other never meets a digit, so one table serves both.

# %% tags=["nbval-check-output"]
scratchpad = tasks.get("multiply-scratchpad")
operators = {step.operator for n in scratchpad.scales((4, 4)) for step in scratchpad.circuit(n)}
for operator in sorted(operators, key=lambda one: (one.arity, one.name)):
    print(f"{operator.name:14} reads {operator.arity}, {len(operator.table):6} rows")
print("operators:", len(operators), "  after merging:", theory.src(scratchpad, 4))

# %% [markdown]
# ## 5. Your prediction
#
# Training shows scales up to 8, the test goes up to 16. For each task: does the number of unit operators stay the same (`"stays"`) or grow
# (`"grows"`) from 8 to 16?
#
# | name | what is written |
# |---|---|
# | `reverse` | x1 .. xn = xn .. x1 |
# | `addition` | a1 .. an + b1 .. bn = s1 .. s(n+1), least digit first |
# | `multiply-digit` | a1 .. an * d = p1 .. p(n+1) |
# | `add-index-mod` | x1 .. xn = y1 .. yn with y_t = x_t + t mod 10 |
# | `random-permutation-per-position` | y_t = pi_t(x_t), where each place t has a random table of its own |
#
# **Before you go on, commit yourself.**

# %%
prediction = {
    "reverse": None,
    "addition": None,
    "multiply-digit": None,
    "add-index-mod": None,
    "random-permutation-per-position": None,
}

# %% [markdown]
# ## 6. The count

# %%
curves = {name: theory.src_curve(tasks.get(name), 16) for name in prediction}
curves["parity with CoT"] = theory.src_curve(tasks.get("parity-cot"), 16)
curves["parity without"] = theory.src_curve(tasks.get("parity-direct"), 14)
short = {"random-permutation-per-position": "random-permutation"}  # to fit into the picture
drawn = {short.get(name, name): curve for name, curve in curves.items()}
figure_html(complexity_figure(drawn, 8, title="Unit operators", quantity="unit operators"))

# %% tags=["nbval-check-output"]
print("unit operators                    up to 8  up to 10  up to 14")
for name, curve in curves.items():
    print(f"{name:32}  {curve[8]:7}  {curve[10]:8}  {curve[14]:8}")

# %% [markdown]
# And your prediction?

# %%
for name, said in prediction.items():
    found = "grows" if curves[name][16] > curves[name][8] else "stays"
    verdict = (
        "no prediction made" if said is None else "as predicted" if said == found else "not so"
    )
    print(f"{name:32} {found} ({verdict})")

# %% [markdown]
# Three things to see.
#
# - Addition needs as few operators at 16 digits as at 2. It has a carry, but the carry can be read off from what is already written.
# - `add-index-mod` grows, and then it stops: after ten places all ten tables are known. "Grows" is about *two* scales. Trained up to 8 it
#   lacks two tables, trained up to 10 it lacks none.
# - In `random-permutation-per-position` each place is a task of its own. No model can know a table that it has not seen.
#
# What holds for parity holds for multiplication. Without partial products a digit depends on all digits of both numbers up to its own place, so
# each place needs a table of its own. The library can write these tables down for two digits, and no further. With partial products two digits show all
# that there is:

# %% tags=["nbval-check-output"]
counts = [theory.src(scratchpad, n) for n in range(1, 7)]
print("multiplication with scratchpad, up to 1, 2, .. 6 digits:", *counts)

# %% [markdown]
# ## 7. Is the count right? A negative control
#
# A count of operators is worth something only if the circuit computes its task, and if merging tells real differences from names. First,
# the library runs each circuit against ordinary arithmetic:

# %% tags=["nbval-check-output"]
for name in ("parity-cot", "addition", "multiply-digit"):
    tasks.check_circuit(tasks.get(name), 12)
    print(name, "- the circuit computes the task")

# %% [markdown]
# Then we spoil one entry in the table of one late step. The circuit is wrong now, and the number of operators must go up by one. A copy of the
# table under another name must change nothing.

# %% tags=["nbval-check-output"]
spoiled, copied = {**xor, (1, 1): 1}, dict(xor)


def with_last(table):
    """Return the steps of parity with another table in the last step of scale 7."""

    def steps_of(n):
        steps = parity_steps(n)
        return [*steps[:-1], (steps[-1][0], table, steps[-1][2])] if n == 7 else steps

    return steps_of


for words, table in {"as it was": xor, "a copy": copied, "one entry spoiled": spoiled}.items():
    answer = run(with_last(table)(7), [1, 0, 1, 1, 0, 0, 1, EQUALS])
    print(f"{words:18} operators {count_operators(with_last(table), 7)}, writes", *answer)

# %% [markdown]
# ## 8. The conjecture, and where positions come in
#
# Lesson 5 had a theorem for POLA. For Transformers there is a conjecture, after Chen, Liang and Lin:
#
# > Length generalisation is possible if and only if SRC does not grow from the training scales to the test scales. With a position embedding that
# > *aligns* the circuit, it happens.
#
# A circuit that needs few operators is not enough. At each step the model must also find the operands. What it knows of them is their id under
# the relation $\phi$. So to the model a step is a pair: the operator, and the ids of its operands. Let us count these pairs, the **induced**
# operators, for parity with chain of thought:


# %%
def count_induced(steps_of, phi, n):
    """Return the number of distinct (table, ids of the operands) on scales 1..n."""
    found = set()
    for scale in range(1, n + 1):
        for output, table, reads in steps_of(scale):
            ids = tuple(phi(output - 1, key, scale) for key in reads)  # the query is output - 1
            found.add((frozenset(table.items()), ids))
    return len(found)


def from_the_nearest(i, j, n):
    """Measure the distance from 0 or from n, whichever it is nearer to."""
    return ("n back", i - j - n) if 2 * (i - j) > n else ("back", i - j)


ways = {
    "APE: j": lambda i, j, n: j,
    "RPE: i - j": lambda i, j, n: i - j,
    "with Scale Hint": from_the_nearest,
}

# %% tags=["nbval-check-output"]
print("scale             ", *(f"{n:3}" for n in (1, 2, 4, 8, 16)))
for words, phi in ways.items():
    print(f"{words:18}", *(f"{count_induced(parity_steps, phi, n):3}" for n in (1, 2, 4, 8, 16)))

# %% [markdown]
# The third relation is told the scale n. It calls the result before "0 back", and the next bit "n back, and 0 more". These two names never change,
# and so the count stays at the number of operators. The others give the same operand ever new names. To a model with APE, parity with chain of
# thought is a task that grows.
#
# That is the whole theory in one line: **the task decides whether something new is needed; the position embedding decides whether the
# model can see that nothing new is needed.** The library puts both together and says what to expect before any training:

# %% tags=["nbval-check-output"]
parity = tasks.get("parity-cot")
for name in ("ape", "rpe", "ideal-sh"):
    said = theory.predict(parity, relations.build(name, parity), range(1, 9), [16])
    print(f"parity-cot, {name:8} {said.verdict}: {said.src_train} -> {said.src_test} operators")
said = theory.predict(task, relations.build("none", task), range(1, LONGEST + 1), [10])
print(f"parity-direct, none  {said.verdict}")

# %% [markdown]
# The last line is the model of section 1. Lesson 7 trains the others.

# %% [markdown]
# ## What this does not show
#
# - The conjecture is no theorem. The course tests it on many tasks (lesson 8), and tests can fail to find a counterexample.
# - One model at chance in section 1 does not prove that no model gets parity right. There are Transformers, set by hand, that compute parity of
#   any length. They were not *learned* from short rows.
# - The numbers are for given circuits. That no circuit with fewer operators exists is a separate argument, as we had for the bits of
#   parity.
# - An operator counts as one, whether its table has four rows or twenty thousand. How much data it takes to learn it is another question.
# - Some tasks are not covered: sorting, or finding the majority, have no circuit that reads fixed positions. Nothing here says that they are
#   hard.

# %% [markdown]
# ## Sources
#
# - Chen, Liang and Lin, *On the Limitations and Capabilities of Position Embeddings for Length Generalization* (2025), arXiv
#   2510.04130. SRC and the conjecture are after them. The definitions here (tables, merging, the bound k, induced operators) are the course's
#   own formalisation; all numbers are those of the run above.
# - Anil et al., *Exploring Length Generalization in Large Language Models* (2022), arXiv 2207.04901: parity with and without
#   scratchpads.
# - Chiang and Cholak, *Overcoming a Theoretical Limitation of Self-Attention* (2022), arXiv 2202.12172: Transformers, set by hand,
#   that compute parity.
# - Zhou et al., *What Algorithms can Transformers Learn?* (2023), arXiv 2310.16028: another conjecture about which tasks generalise in
#   length.
#
# Next: exercise 6, `exercises/06_sequential_representation_complexity.ipynb`.
