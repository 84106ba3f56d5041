"""Are the questions those of the stored runs, and do they tell the outcome only after a guess?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lgcourse.errors import InputError
from lgcourse.show.questions import Question, collect, load, read_rows
from lgcourse.show.verdict import verdict_figure, verdict_text

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
QUESTION = Question("copy", "rpe", 2, 100, 5, 20, (1.0, 1.0, 0.95), (0.0, 0.1, 1.0))


def test_the_questions_are_those_of_the_stored_rows():
    assert load() == collect(read_rows(RESULTS))


def test_scores_of_a_question_are_those_of_its_runs():
    rows = [
        row for row in read_rows(RESULTS)
        if (row["settings"]["task"], row["settings"]["pe"]) == ("copy", "rpe")
    ]  # fmt: skip
    (question,) = [q for q in load() if (q.task, q.pe) == ("copy", "rpe")]
    assert sorted(question.far) == sorted(row["exact_match"]["50"] for row in rows)
    assert sorted(question.near) == sorted(row["exact_match"]["10"] for row in rows)


def test_most_seeds_decide():
    def measured(near, far):
        return Question("copy", "rpe", 2, 1, 5, 20, near, far).measured

    assert measured((1.0, 1.0, 1.0), (1.0, 0.9, 0.0)) == "generalises"
    assert measured((1.0, 1.0, 0.0), (0.89, 0.89, 1.0)) == "fails"
    assert measured((0.5, 0.5, 1.0), (0.0, 0.0, 0.0)) == "not trained"


def test_predictions_are_those_of_the_command_line():
    from lgcourse.embeddings.named import setting

    for question in load()[::8]:
        said = setting(question.task, question.pe, question.train_scale, (question.scale,))
        assert question.predicted()[0] == said.predict().verdict


def texts(figure):
    return " ".join(text.get_text() for axes in figure.axes for text in axes.texts)


def test_nothing_is_given_away_before_the_guess():
    figure = verdict_figure(QUESTION)
    assert len(figure.axes) == 1 and "fails" not in texts(figure) + verdict_text(QUESTION)
    assert "since" not in verdict_text(QUESTION) and "0.95" not in verdict_text(QUESTION)


def test_the_guess_is_compared():
    figure = verdict_figure(QUESTION, "generalises")
    assert texts(figure).count("≠ your guess") == 2  # theory and measurement say that it fails
    assert texts(verdict_figure(QUESTION, "fails")).count("= your guess") == 2
    near, far = figure.axes[1].lines[:2]
    assert list(near.get_ydata()) == [1.0, 1.0, 0.95]
    assert list(far.get_ydata()) == [0.0, 0.1, 1.0]
    assert figure.alt == verdict_text(QUESTION, "generalises")  # type: ignore[attr-defined]


def row(task="copy", train=5, seed=0, layers=1, **exact):
    settings = {"task": task, "pe": "rpe", "train_scale": train, "layers": layers, "steps": 9}
    return {"settings": {**settings, "seed": seed}, "exact_match": exact}


def test_the_far_scale_is_the_largest_up_to_50():
    scores = {"5": 1.0, "20": 0.5, "50": 0.25, "100": 0.0}
    (question,) = collect([row(**scores)], wanted=1)
    assert (question.scale, question.far) == (50, (0.25,))


def test_rows_that_ask_nothing_are_left_out():
    assert collect([row(**{"5": 1.0})], wanted=1) == []
    assert collect([row(**{"20": 1.0})], wanted=1) == []
    assert collect([row(**{"5": 1.0, "20x20": 1.0})], wanted=1) == []
    assert collect([row(**{"5": 1.0, "20": 1.0})], wanted=2) == []


def test_of_several_depths_the_smallest_is_taken():
    deep, flat = row(layers=3, **{"5": 1.0, "20": 0.0}), row(**{"5": 1.0, "20": 1.0})
    (question,) = collect([deep, flat], wanted=1)
    assert question.layers == 1 and question.far == (1.0,)


def test_wrong_input_is_refused():
    with pytest.raises(InputError, match="did you mean 'fails'"):
        verdict_text(QUESTION, "fail")
    with pytest.raises(InputError, match="a row has settings and exact_match"):
        collect([{"settings": {}}])
