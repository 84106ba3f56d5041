"""Do the controls of every widget choose what is drawn? Asked of its data, without a kernel."""

from __future__ import annotations

import html
import re

import pytest

ipywidgets = pytest.importorskip("ipywidgets")

from untrained import run_of  # noqa: E402

from lgcourse import relations, tasks  # noqa: E402
from lgcourse.errors import InputError  # noqa: E402
from lgcourse.show import hint, stepping, trained  # noqa: E402
from lgcourse.show.attention import attention_text  # noqa: E402
from lgcourse.show.gates import gates_text  # noqa: E402
from lgcourse.show.growth import circuit_growth, growth_text, target_growth  # noqa: E402
from lgcourse.show.pairs import relation_text  # noqa: E402
from lgcourse.show.questions import Question  # noqa: E402
from lgcourse.show.widgets import (  # noqa: E402
    attention_viewer,
    explorer,
    gates_viewer,
    generalisation_quiz,
    hint_explorer,
    lrc_explorer,
    relation_explorer,
    src_explorer,
    step_explorer,
    training_monitor,
)
from lgcourse.show.widgets.all import ENTRIES  # noqa: E402
from lgcourse.show.widgets.html import STATIC  # noqa: E402
from lgcourse.show.widgets.lrc import KINDS  # noqa: E402
from lgcourse.show.widgets.src import CLOCK, Clock  # noqa: E402
from lgcourse.theory import src  # noqa: E402

MAKERS = [
    step_explorer,
    relation_explorer,
    lrc_explorer,
    src_explorer,
    attention_viewer,
    gates_viewer,
    hint_explorer,
    training_monitor,
]


def controls_of(box):
    return {control.description: control for control in box.children[0].children}


def picture_of(box):
    return box.children[-1]


def alt_of(box):
    found = re.search('alt="([^"]*)"', picture_of(box).value)
    assert found is not None, picture_of(box).value[:200]
    return html.unescape(found[1])


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_each_control_changes_the_picture_in_place(make):
    box = make()
    picture, size = picture_of(box), re.match(r"<img width=\S+ height=\S+", picture_of(box).value)
    seen = {picture.value}
    for control in controls_of(box).values():
        if control.disabled or isinstance(control, ipywidgets.Button):
            continue
        if isinstance(control, ipywidgets.Dropdown):
            control.index = 1 if control.index != 1 else 0
        else:
            assert isinstance(control, ipywidgets.IntSlider) and not control.continuous_update
            step = control.step
            control.value += step if control.value + step <= control.max else -step
        assert picture.value not in seen, control.description
        seen.add(picture.value)
        again = re.match(r"<img width=\S+ height=\S+", picture.value)
        assert size and again and size[0] == again[0], control.description
    assert picture_of(box) is picture and len(seen) > 2


@pytest.mark.parametrize("make", [*MAKERS, generalisation_quiz], ids=lambda make: make.__name__)
def test_every_control_has_a_name_and_a_native_kind(make):
    for name, control in controls_of(make()).items():
        assert name
        assert type(control) in (ipywidgets.Dropdown, ipywidgets.IntSlider, ipywidgets.Button)


# --- what is shown is what was chosen -------------------------------------------------------------
def test_the_stepper():
    box = step_explorer("addition", 3, 4)
    controls = controls_of(box)
    assert alt_of(box) == stepping.step_text(tasks.get("addition"), 3, 4)
    controls["scale n"].value = 2  # has three steps only
    assert controls["step"].value == controls["step"].max == 3
    assert alt_of(box) == stepping.step_text(tasks.get("addition"), 2, 3)
    controls["sample"].value = 5
    assert alt_of(box) == stepping.step_text(tasks.get("addition"), 2, 3, 5)
    controls["task"].value = "copy"
    assert "Task copy, scale 2" in alt_of(box) and controls["step"].max == 2


def test_the_relation_explorer():
    box = relation_explorer("ape", "reverse", 2, 4)
    assert alt_of(box) == relation_text("ape", tasks.get("reverse"), (2, 4))
    controls = controls_of(box)
    controls["right scale"].value = 30
    assert alt_of(box) == relation_text("ape", tasks.get("reverse"), (2, 30))
    controls["task"].value = "multiply-scratchpad"  # too long at 30: the slider moves
    assert "task multiply-scratchpad" in alt_of(box) and controls["right scale"].value < 12


def test_a_relation_of_your_own_is_one_more():
    own = relations.FormRelation([relations.Form(1, -1, -1)], -1, 1, "mine")
    box = relation_explorer(own)
    assert "Relation mine" in alt_of(box)
    controls_of(box)["relation"].value = "rpe"
    assert "Relation rpe" in alt_of(box)


@pytest.mark.parametrize("kind", [*KINDS, "half"])
def test_the_lrc_explorer(kind):
    box = lrc_explorer(kind, 3, 9, 4)
    target = KINDS[kind](3) if kind in KINDS else "half"
    assert alt_of(box) == growth_text(target_growth(target, 9, 4))
    assert controls_of(box)["size k"].disabled is (kind not in KINDS)


COUNTS = {  # operators and rank at scale 12 with k = 4, counted by hand
    "band of k distances": (4, 1),
    "blocks of size k": (1, 1),
    "x at i // k": (1, 1),
    "factor i mod k": (4, 1),
    "factor i // k": (3, 1),
    "turns, k to a circle": (4, 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_targets_are_what_they_say(kind):
    curves = target_growth(KINDS[kind](4), 12, 4).curves
    assert (curves["operators"][12], curves["rank"][12]) == COUNTS[kind]


def test_the_src_explorer():
    box = src_explorer("parity-cot", "ape", 4, 9, 5)
    task = tasks.get("parity-cot")
    phi = relations.build("ape", task, max_scale=9)
    assert alt_of(box) == growth_text(circuit_growth(task, phi, 9, 5))
    controls = controls_of(box)
    controls["relation"].value = "(none)"
    assert "induced" not in alt_of(box)
    controls["circuit"].value = CLOCK
    assert "the clock with 4 operators" in alt_of(box) and not controls["size k"].disabled


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_clock_computes_what_it_says(k):
    clock = Clock(k)
    tasks.check_circuit(clock, 7)
    digits, value, wanted = [3, 1, 4, 1, 5, 9, 2], 0, ""
    for t, digit in enumerate(digits, start=1):
        value = (value + digit + t % k) % 10
        wanted += str(value)
    assert clock.solve("".join(map(str, digits)) + "=") == wanted
    assert src(clock, 20) == k + 1  # and the operator of the first step


def test_the_attention_viewer_shows_the_run_that_was_chosen():
    runs = {"one": run_of("copy", "rpe"), "two": run_of("reverse", "rpe", layers=2)}
    box = attention_viewer(runs, 4)
    controls = controls_of(box)
    assert alt_of(box) == attention_text(runs["one"], 4)
    controls["head"].value = (1, 3)
    assert alt_of(box) == attention_text(runs["one"], 4, 1, 3)
    controls["run"].value = runs["two"]
    assert alt_of(box) == attention_text(runs["two"], 4, *controls["head"].value)
    assert len(controls["head"].options) == 8
    assert controls["scale n"].max == 20  # what the run was made for


def test_the_gates_viewer():
    _, gates = trained.small_run()
    box = gates_viewer(gates, 2, 100)
    assert alt_of(box) == gates_text(gates, 2, 100)
    controls_of(box)["update"].value = gates.steps[-1]
    assert alt_of(box) == gates_text(gates, 2, gates.steps[-1])


def test_the_hint_explorer():
    run = run_of("copy", "ideal-sh", tests=(30,))
    box = hint_explorer(run, 4, 1)
    scores = hint.hint_scores(run, 4, hint.hints_around(4))
    assert alt_of(box) == hint.hint_text(hint.hint_data(run, 4, 5, scores))
    controls = controls_of(box)
    controls["true scale n"].value = 2
    controls["hint minus n"].value = -3  # a hint is at least 1
    assert "Scale 2, told 1." in alt_of(box)


# --- the quiz -------------------------------------------------------------------------------------
EASY = Question("copy", "ideal-sh", 1, 9, 5, 20, (1.0,), (1.0,))
HARD = Question("copy", "rpe", 2, 9, 5, 20, (1.0,), (0.0,))
UNTRAINED = Question("copy", "t5", 2, 9, 5, 20, (0.1,), (0.0,))


def test_the_quiz_counts_what_you_and_theory_had_right():
    box = generalisation_quiz([EASY])
    controls = controls_of(box)
    assert "No guess yet" in alt_of(box) and controls["next question"].disabled
    controls["it fails"].click()
    assert "Your guess: fails" in alt_of(box) and "Measured: generalises" in alt_of(box)
    assert box.children[1].value == "Of 1 questions you had 0 right, theory 1."
    assert controls["it fails"].disabled and controls["it generalises"].disabled
    controls["next question"].click()
    assert "No guess yet" in alt_of(box) and not controls["it fails"].disabled
    controls["it generalises"].click()
    assert box.children[1].value == "Of 2 questions you had 1 right, theory 2."


def test_cells_that_are_not_trained_do_not_count():
    box = generalisation_quiz([UNTRAINED])
    controls_of(box)["it fails"].click()
    assert box.children[1].value.startswith("No question answered yet")


def test_all_questions_come_in_an_order_of_the_seed():
    def asked(seed):
        box, seen = generalisation_quiz([EASY, HARD, UNTRAINED], seed), []
        for _ in range(3):
            seen.append(alt_of(box))
            controls_of(box)["it fails"].click()
            controls_of(box)["next question"].click()
        return seen

    first = asked(0)
    assert first == asked(0) and len(set(first)) == 3
    assert any(asked(seed) != first for seed in (1, 2, 3))


# --- the monitor ----------------------------------------------------------------------------------
def test_nothing_is_trained_before_the_button_is_pressed():
    box = training_monitor(steps=50)
    assert box.training is None and "Not started" in alt_of(box)


def test_a_training_runs_to_its_end_and_shows_its_numbers():
    box = training_monitor("copy", "ideal-sh", 2, 50, start=True)
    controls = controls_of(box)
    assert box.training.wait(120)
    assert sorted(box.training.losses)[-1] == 50 and sorted(box.training.scores)[-1] == 50
    assert list(box.training.scores[50]) == [2, 4, 10]
    assert "50 of 50 updates" in alt_of(box) and "Exact match at update 50" in alt_of(box)
    assert not controls["train"].disabled and controls["stop"].disabled


def test_a_training_is_the_one_of_fit():
    from lgcourse.show.widgets.monitor import settings_for
    from lgcourse.training import fit
    from lgcourse.training.settings import build_model

    box = training_monitor("copy", "ideal-sh", 2, 50, start=True)
    settings, task, model = build_model(settings_for("copy", "ideal-sh", 2, 50, 0))
    run = fit(model, task, [1, 2], 50, 0, batch=settings.batch, device="cpu")
    assert box.training.wait(120) and box.training.losses == run.losses


def test_a_training_is_stopped():
    box = training_monitor("copy", "ideal-sh", 2, 3000)
    controls = controls_of(box)
    controls["train"].click()
    assert controls["train"].disabled and not controls["stop"].disabled
    assert all(controls[name].disabled for name in ("task", "embedding", "updates"))
    controls["stop"].click()
    assert box.training.wait(120) and box.training.stopped
    assert max(box.training.scores) < 3000 and "of 3000 updates" in alt_of(box)
    assert not controls["train"].disabled and controls["stop"].disabled


def test_what_cannot_be_trained_is_said_in_the_picture():
    box = training_monitor("permutation-cot-s5", "abacus", 2, 50, start=True)
    if box.training is not None:  # some pairs are refused only in training
        box.training.wait(120)
    assert 'role="alert"' in picture_of(box).value
    assert not controls_of(box)["train"].disabled


# --- the page of all ------------------------------------------------------------------------------
def test_the_explorer_has_every_widget_and_makes_each_once():
    box = explorer("lrc")
    menu, words, place = box.children
    assert len(menu.options) == len(ENTRIES) >= 9
    first = place.children[0]
    menu.value = "quiz"
    assert ENTRIES["quiz"].words[:20] in html.unescape(words.value)
    assert place.children[0] is not first
    menu.value = "lrc"
    assert place.children[0] is first


def test_a_widget_leaves_its_picture_in_the_notebook(monkeypatch):
    shown = []
    monkeypatch.setattr(
        "lgcourse.show.widgets.html.display", lambda thing, **_: shown.append(thing)
    )
    box = step_explorer("copy", 2)
    box._ipython_display_()
    live, static = shown
    assert "application/vnd.jupyter.widget-view+json" in live
    assert STATIC in static.data and picture_of(box).value in static.data
    assert f".{STATIC} {{ display: none }}" in static.data


# --- wrong arguments ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (step_explorer, ("sort",), "has no task 'sort'"),
        (step_explorer, ("copy", 31), r"scales 1\.\.30"),
        (step_explorer, ("copy", 3, 4), "step must be at most 3"),
        (relation_explorer, ("rpee",), "did you mean 'rpe'"),
        (relation_explorer, ("rpe", "sort"), "has no task 'sort'"),
        (relation_explorer, ("rpe", "copy", 0), r"scales 1\.\.30"),
        (lrc_explorer, ("hlf",), "did you mean 'half'"),
        (lrc_explorer, ("half", 13), "size must be at most 12"),
        (lrc_explorer, ("half", 3, 31), "scale must be at most 30"),
        (src_explorer, ("sort",), "unknown circuit 'sort'"),
        (src_explorer, ("copy", "alibi"), "unknown relation 'alibi'"),
        (src_explorer, ("copy", "rpe", 4, 0), "scale must be a whole number"),
        (attention_viewer, ("run",), "got str"),
        (attention_viewer, ({},), "empty"),
        (gates_viewer, (3,), "got int"),
        (hint_explorer, (None, 31), r"scales 1\.\.30"),
        (hint_explorer, (None, 3, 4), r"off by -3\.\.3"),
        (training_monitor, ("cpy",), "did you mean 'copy'"),
        (training_monitor, ("copy", "rp"), "did you mean 'rpe'"),
        (training_monitor, ("copy", "rpe", 11), "train_scale must be at most 10"),
        (training_monitor, ("copy", "rpe", 5, 20), "steps must be a whole number of at least 50"),
        (generalisation_quiz, ([],), "hold no question"),
        (generalisation_quiz, ("rows",), "questions or stored rows"),
        (explorer, ("quizz",), "did you mean 'quiz'"),
    ],
)
def test_wrong_arguments_are_refused(make, arguments, message):
    with pytest.raises(InputError, match=message):
        make(*arguments)


def test_runs_that_a_widget_cannot_show():
    with pytest.raises(InputError, match="this run has rpe"):
        hint_explorer(run_of("copy", "rpe", tests=(30,)))
    two = run_of("addition-unequal", "ideal-sh", tests=((12, 12),))
    with pytest.raises(InputError, match="tasks with one size"):
        hint_explorer(two)
    with pytest.raises(InputError, match=r"scales 1\.\.20"):
        attention_viewer(run_of("copy", "rpe"), 21)
