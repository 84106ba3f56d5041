"""Lesson 12. Proofs for one trained model, neighbouring ideas, open questions, and the capstone.

Nothing in the text may state a measured number: the cells print them.
"""

# %% [markdown]
# # Lesson 12: Beyond
#
# **The claim.** If a model reads only the keys that a finite relation names, then being right on finitely many tuples of tokens makes it
# right at every length, and a program can check that.
#
# Time: about 45 minutes, of which about one minute is training and proving, on two CPU cores. You need lessons 7 and 9; lesson 11 helps.

# %%
import copy
import tempfile
from pathlib import Path

import torch

import lgcourse
from lgcourse import relations, tasks
from lgcourse.certify import certify, export_run
from lgcourse.embeddings import coupled_ids
from lgcourse.relations.affine import N, T
from lgcourse.show import curve_figure, layout_figure
from lgcourse.show.widgets import figure_html
from lgcourse.tasks import Operator, Segment, family
from lgcourse.tasks.base import Task, identity
from lgcourse.theory import predict, src_curve
from lgcourse.training import Settings, load_run, train_run

# %% [markdown]
# ## 1. A thousand digits
#
# We train on additions of 1 to 10 digits, with the ideal relation of lesson 7 and the Scale Hint of lesson 9. All keys but the operands are shut
# out. The next cell takes about 15 seconds.

# %%
FOLDER = Path(tempfile.mkdtemp())  # run folders; nothing is left in your course folder
runs = {}


def train(task, pe="ideal-sh", test_scales=(10, 100), **settings):
    """Train on scales 1 to 10 with the settings that the embedding recommends; keep the run."""
    chosen = Settings(task, pe, test_scales=test_scales, samples=100, hard_samples=0, **settings)
    result = train_run(chosen, FOLDER / f"{task}-{pe}", device="cpu")
    print(f"{task}, {pe}: {result['steps']} updates in {result['seconds']:.0f} s")
    runs[task] = load_run(result["run"])


train("addition")

# %% [markdown]
# And now numbers of a thousand digits, a hundred times as long as any it saw. This takes about 5 seconds.

# %%
long = lgcourse.evaluate(runs["addition"].model, runs["addition"].task, [10, 100, 1000], samples=20)
print("exact match", long.exact_match)

# %% [markdown]
# Each of these answers has more than a thousand digits, and a single wrong one counts as a wrong answer. It still is only a test: twenty samples
# per length, and there are more additions of a thousand digits than could ever be tried. And nobody has looked at 1,001.
#
# Can one *know*?

# %% [markdown]
# ## 2. Why a finite check can be enough
#
# Take parity with chain of thought: each step reads the result before and the next input. Here is the picture at scale 4.

# %%
figure_html(layout_figure(tasks.get("parity-cot"), 4))

# %% [markdown]
# Suppose a model whose attention reads just the two marked keys, at every scale. Then the logits of a step depend on two tokens and on nothing
# else: not on the length, not on where it stands. There are two kinds of steps: the first one, which has no result before, and all others.
# So one can write the model's whole behaviour into a table:
#
# - first step: the input is 0 or 1;
# - other steps: the result before is 0 or 1, the input is 0 or 1.
#
# If every row of the table is right, every step of every input is right: the first result is right, so the second step meets a pair that was checked,
# and so on. That is induction, and it has no end at any length.
#
# Two things had to hold. The operand keys are *named* at every scale: that is what a relation made of forms does. And nothing in attention depends
# on the number of keys: so no length factor, and all other keys shut out.

# %% [markdown]
# ## 3. The proof, by hand
#
# The next cell takes about 10 seconds.

# %%
train("parity-cot", width=32, heads=4)

# %% [markdown]
# Now the table. A step of each kind occurs in a short input already, so we run the model on inputs of three digits and note for each
# step what it read, and the *margin*: the logit of the right token minus that of the best wrong one. Below zero means wrong.


# %% tags=["nbval-check-output"]
def kinds_of_steps(n):
    """Yield (query, positions read, kind) for the steps of parity with chain of thought."""
    yield n, (0,), "first step"
    for t in range(2, n + 1):
        yield n + t - 1, (n + t - 1, t - 1), "later step"


for query, reads, kind in kinds_of_steps(3):
    print(f"{kind}: query {query} reads positions {reads}")


# %%
def prove(model, task, n=3):
    """Return for each kind of step and tuple of tokens the smallest margin seen."""
    prompts = torch.cartesian_prod(*[torch.tensor([0, 1])] * n)
    equals = torch.full((len(prompts), 1), task.vocabulary.index("="))
    answers = prompts.cumsum(1) % 2
    lines = torch.cat([prompts, equals, answers], dim=1)  # all inputs of n digits
    exact = copy.deepcopy(model).double()
    with torch.inference_mode():
        logits = exact(lines, n)
    table = {}
    for query, reads, kind in kinds_of_steps(n):
        for line, row in zip(lines, logits[:, query], strict=True):
            right = int(line[query + 1])
            others = torch.cat([row[:right], row[right + 1 :]])
            margin = float(row[right] - others.max())
            place = kind, tuple(line[list(reads)].tolist())
            table[place] = min(margin, table.get(place, float("inf")))
    return table


table = prove(runs["parity-cot"].model, runs["parity-cot"].task)
for (kind, tokens), margin in table.items():
    print(f"{kind} {str(tokens):7} margin {margin:.3f}")
print("smallest margin", round(min(table.values()), 3))

# %% [markdown]
# Six rows, and they settle all lengths. The library's `certify` does the same for any task that says its circuit, and it is more careful: it finds
# the kinds of steps at all scales itself, checks that the relation names what it says, and bounds what rounding to float32 can change. The next cell
# takes about 5 seconds.

# %%
made = certify(runs["parity-cot"].model, runs["parity-cot"].task)
print("\n".join(made.lines()))
print("tuples by hand and by the library:", len(table), made.tuples)
print("margins by hand and by the library:", round(min(table.values()), 3), round(made.margin, 3))

# %% [markdown]
# ## 4. Your prediction
#
# The certificate of the addition model looks at every combination of two digits, the two digits of the column before, the last
# result, and the carry. Before you run the next cell, commit yourself: about how many tuples is that? And if we turn the sign of *one* large
# weight of the matrix that makes the logits, is the model still right at every length?

# %%
prediction = {"tuples": None, "certified after one flip": None}  # a number; True or False

# %% [markdown]
# The next cell takes about 10 seconds.

# %%
model, task = runs["addition"].model, runs["addition"].task
whole = certify(model, task)
print(whole.verdict, "for", whole.scales)
print(f"{whole.tuples:,} tuples, smallest margin {whole.margin:.2f}, rounding {whole.error:.4f}")
print("you said", prediction["tuples"])

# %% [markdown]
# ## 5. The negative control: break it
#
# A checker that always says yes is worth nothing. Turn the sign of the largest entry of one weight tensor, in a copy. First in the matrix that makes the
# logits. The next cell takes about 5 seconds.


# %%
def flipped(name):
    """Return a copy of the model in which the largest entry of one tensor has the other sign."""
    broken = copy.deepcopy(model)
    with torch.no_grad():
        entries = dict(broken.named_parameters())[name].view(-1)
        entries[entries.abs().argmax()] *= -1
    return broken


after = certify(flipped("logits.weight"), task)
print("before:", whole.verdict, f"with margin {whole.margin:.2f}")
print("after: ", after.verdict, f"with margin {after.margin:.2f}")
print("you said", prediction["certified after one flip"])

# %% [markdown]
# Look at the margin to see what one flip cost. Where would it hurt more? In the layer norm before the MLP, one entry multiplies a whole channel; in the
# relation's table, one entry decides whether a head reads its operand. The next cell takes about 10 seconds.

# %%
print("exact match: on 200 samples of 10 digits")
for name in ("blocks.0.mlp_norm.weight", "positions.0.table"):
    worse = flipped(name)
    found = certify(worse, task)
    test = lgcourse.evaluate(worse, task, [10], samples=200).exact_match[10]
    print(f"{name}: {found.verdict}, margin {found.margin:.2f}, exact match {test:.3f}")
    print(f"  counterexample: {found.counterexample}")

# %% [markdown]
# Where a model is wrong, the checker does not only say so. It hands over an instance, a problem that you can do in your head, and that the model gets wrong.
#
# Change what is flipped: `[name for name, _ in model.named_parameters()]` lists the tensors. Can you find a model that a test calls
# perfect and that the certificate calls wrong?

# %% [markdown]
# ## 6. A program out of the weights
#
# A model that is certified is a finite table with a loop around it. So it can be written down as a program that needs no PyTorch. The next cell
# takes about 5 seconds.

# %%
program = FOLDER / "parity.py"
export_run(FOLDER / "parity-cot-ideal-sh", program)
source = program.read_text(encoding="utf-8")
print(len(source.splitlines()), "lines; the table of answers is")
print(source[source.index("\nROOTS") : source.index("\n# The layout")].strip())

# %%
space = {"__name__": "exported"}
exec(compile(source, "parity.py", "exec"), space)
for prompt in ("10110=", "1" * 1001 + "="):
    print(
        f"{len(prompt) - 1:5} digits: ... {space['main'](prompt)[-5:]}",
        "true",
        tasks.get("parity-cot").solve(prompt)[-5:],
    )

# %% [markdown]
# ## 7. Other ways to the same end
#
# This course put everything into a relation and gave it to attention. Others reach length generalisation in other ways. Look at each with
# the question of lesson 1: *under which name does a step find its operand, and has training shown that name?*
#
# - **Abacus embeddings** number the digits inside each number, and add one vector per number to the token.
# - **Position coupling** gives tokens that belong together the same id.
# - **Randomized positions** draw the positions of each training input, in order, from a much longer range.
# - **Scratchpads** change the task, not the positions: the model writes what it needs in between.
#
# Abacus and coupling, for one addition of two digits. An id is built by hand in a few lines:


# %% tags=["nbval-check-output"]
def abacus(text):
    """Count 1, 2, 3, ... inside each run of digits; other tokens get 0."""
    ids = []
    for letter in text:
        ids.append((ids[-1] if ids else 0) + 1 if letter.isdigit() else 0)
    return ids


line = "29+43=621"  # 92 + 34 = 126 with the least digit first
print("tokens  ", "  ".join(line))
print("abacus  ", "  ".join(map(str, abacus(line))))
print("coupled ", "  ".join(map(str, coupled_ids(tasks.get("addition"), 2).tolist())))

# %% [markdown]
# Now count names, as in lesson 1. For each way, a name is the id of the query minus the id of the operand. We collect the names of the digits a_t
# and b_t in training, 1 to 10 digits, and look which are needed at 20.


# %% tags=["nbval-check-output"]
def names(scales, ids):
    """Return the differences of ids between queries and the digits of their column."""
    found = set()
    for n in scales:
        at, layout = ids(n), tasks.get("addition").layout(n)
        for step in tasks.get("addition").circuit(n):
            for role, place in zip(step.operator.roles, step.inputs, strict=True):
                if role in ("a", "b") and layout[place] not in "+=":
                    found.add(at[step.query] - at[place])
    return found


ways = {
    "plain positions": lambda n: list(range(3 * n + 3)),
    "abacus": lambda n: abacus("1" * n + "+" + "1" * n + "=" + "1" * (n + 1)),
    "coupled": lambda n: coupled_ids(tasks.get("addition"), n).tolist(),
}
for way, ids in ways.items():
    known, needed = names(range(1, 11), ids), names([20], ids)
    print(
        f"{way:16} known {len(known):3}, needed at 20 digits {len(needed)}, of these known {len(needed & known)}"
    )

# %% [markdown]
# With both sets of ids one difference leads to the digits of the column at every length. So these ideas also align the operands. They differ in how: they give the
# tokens ids that carry what belongs together, where our relation tells attention so. One catch is left, and it is the reason why both shift their
# ids by a random offset in training: the vectors themselves, for ids beyond those of training, would never be trained.
#
# Scratchpads change what is counted. The number of operators, SRC, is a property of the circuit:


# %% tags=["nbval-check-output"]
for name in ("parity-direct", "parity-cot"):
    curve = src_curve(tasks.get(name), 8)
    print(f"{name:14} operators up to scale 1..8:", list(curve.values()))

# %% [markdown]
# Written in one go, parity needs a new operator for each length. With the results in between, two operators serve for ever. No position embedding
# could do that.

# %% [markdown]
# ## 8. Open questions
#
# - **Two layers.** The proof above needs one layer that reads named keys. With two layers a step depends on what all its keys have read. Can the
#   finite table be kept?
# - **Soft attention.** If other keys get a little attention, the table is not exact. How much may leak before a certificate is lost, and can it be
#   bounded for all lengths?
# - **Tasks whose operands depend on content**: sorting, searching, "the same symbol as". No relation of positions alone describes them.
# - **The scale.** Here n is given. In prose there is no `=`. What plays the role of the Scale Hint there?
# - **The conjecture.** That length generalisation is possible just if SRC does not grow is a conjecture, tested in lesson 8. A single clean
#   counterexample would be news.

# %% [markdown]
# ## 9. Capstone: your own task
#
# A task says three things: the segments of its layout, its steps, and its answers. Everything else follows. Here is *differences*, the
# task of exercise 12: each answer digit is an input digit minus the one before.


# %%
DIGITS = tuple(range(10))
LESS = Operator.from_rule("less", ("this", "before"), lambda x, b: (x - b) % 10, DIGITS)


class Differences(Task):
    """x1..xn = y1..yn with y_t = x_t - x_(t-1) mod 10, and y_1 = x_1."""

    name, example, vocabulary = "differences", "31415=", "0123456789="
    arity, chance = 2, 0.1  # a step reads two tokens; blind guessing is right once in ten times

    def segments(self):
        return [Segment("x", N, DIGITS), self.mark("="), Segment("y", N)]

    def families(self):
        x, y = self.places("x", "y")
        first = family(identity(10), y(T), [x(T)], 1)  # the first step only copies
        return [first, family(LESS, y(T), [x(T), x(T - 1)], 2, N)]  # t = 2..n

    def answer(self, prompt, scale):
        x = prompt[:, :scale]
        return torch.cat([x[:, :1], (x[:, 1:] - x[:, :-1]) % 10], dim=1)


if "differences" not in tasks.names():  # so that this cell can be run again
    tasks.register("differences", Differences)
print("".join(tasks.get("differences").layout(3)))

# %% [markdown]
# Predict, train, report. The function below does it for any task and embedding; its rubric is computed, not judged. **Write your prediction
# first**: with `ideal-sh`, and with `rpe`, will the model be right at 100 digits?

# %%
capstone_prediction = {"ideal-sh": None, "rpe": None}  # True or False


def report(name, pe, test_scales=(10, 20, 100)):
    """Check, predict, train and measure a task with an embedding; print one line per criterion."""
    task = tasks.get(name)
    tasks.check_circuit(task, 12)  # raises if the circuit does not compute the answers
    curve = src_curve(task, 12)
    rubric = {"the circuit computes the task": True}
    rubric["the number of operators stops growing"] = curve[10] == curve[12]
    relation = relations.build(pe, task, max_scale=max(test_scales))
    said = predict(task, relation, range(1, 11), test_scales)
    train(name, pe, test_scales)
    score = runs[name].result["exact_match"]
    right = all(value >= 0.99 for value in score.values())
    rubric["right at ten times the training scale"] = score[str(test_scales[-1])] >= 0.99
    rubric["theory and measurement agree"] = said.generalises == right
    proof = certify(runs[name].model, task)
    rubric["proved exact at every length"] = proof.certified
    print("theory:", said.verdict, "because", said.reason)
    print("exact match:", score)
    print("proof:", proof.verdict, "because", proof.reason)
    for criterion, met in rubric.items():
        print(f"  [{'x' if met else ' '}] {criterion}")
    print("you said", capstone_prediction[pe])
    return {int(n): value for n, value in score.items()}


# %% [markdown]
# The next cell takes about 15 seconds.

# %%
scores = {"ideal-sh": report("differences", "ideal-sh")}

# %% [markdown]
# And with plain distances, as a baseline. This one has two layers and fewer updates than it would like; it takes about 15 seconds.

# %%
settings = Settings(
    "differences", "rpe", test_scales=(10, 20, 100), samples=100, steps=600, layers=1
)
baseline = train_run(settings, FOLDER / "differences-rpe", device="cpu")
scores["rpe"] = {int(n): value for n, value in baseline["exact_match"].items()}
print("exact match:", scores["rpe"], "; you said", capstone_prediction["rpe"])

# %%
figure_html(curve_figure(scores, train_scale=10, title="differences"))

# %% [markdown]
# Now yours. On the command line, `lgcourse new-task NAME` makes a folder with such a class to change, and a script that checks it, predicts,
# trains, tries a proof and writes a page. Or stay here: copy the class, give it another name, and change segments, families and answer. Some ideas: the largest digit so far; every second symbol;
# two words merged; a running product modulo 10; comparing two numbers. If `check_circuit` complains, it names the step that is wrong. If theory says
# that it fails, read why before you train: is it the number of operators, or the relation?

# %% [markdown]
# ## 10. What this does not show
#
# - A certificate is about one model with one layer, a finite relation, and exact exclusion of other keys. Most Transformers are not of this kind.
# - It is about the task as its circuit says it. If the circuit is not your task, the proof is about something else. (The library compares the two
#   on small scales.)
# - It rests on what float arithmetic does, on PyTorch, and on our code; a second checker in the library shares no code with the first one.
# - That names align, in section 7, does not say that a model with these ids is trained easily. We have not trained them here.

# %% [markdown]
# ## Sources
#
# - Chen, Liang and Lin, *On the Limitations and Capabilities of Position Embeddings for Length Generalization* (2025), arXiv 2510.04130: the ideas
#   that this course formalises. The certificates are the course's own.
# - McLeish et al., *Transformers Can Do Arithmetic with the Right Embeddings* (2024), arXiv 2405.17399: Abacus.
# - Cho et al., *Position Coupling* (2024), arXiv 2405.20671.
# - Ruoss et al., *Randomized Positional Encodings Boost Length Generalization of Transformers* (2023), arXiv 2305.16843.
# - Nye et al., *Show Your Work: Scratchpads for Intermediate Computation with Language Models* (2021), arXiv 2112.00114.
# - Friedman, Wettig and Chen, *Learning Transformer Programs* (2023), arXiv 2306.01128: models that can be read as code.
# - Zhou et al., *What Algorithms can Transformers Learn?* (2023), arXiv 2310.16028: another conjecture about which tasks generalise in length.
#
# Next: exercise 12, `exercises/12_beyond.ipynb`, and then your own task.
