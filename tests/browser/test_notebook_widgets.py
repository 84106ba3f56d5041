"""Do the widgets work in JupyterLab, by keyboard and by mouse, and after the notebook is closed?"""

from __future__ import annotations

import json
import statistics
import time

import pytest
from browser import helpers

nbformat = pytest.importorskip("nbformat")

# widget -> its controls at the start: sliders that can be moved, and lists
CONTROLS = {
    "task_explorer": (1, 1),
    "step_explorer": (3, 1),
    "relation_explorer": (2, 2),
    "lrc_explorer": (3, 1),
    "src_explorer": (2, 2),
    "attention_viewer": (2, 1),
    "gates_viewer": (1, 1),
    "hint_explorer": (3, 0),
    "training_monitor": (3, 2),
    "generalisation_quiz": (0, 0),
}
STARTS = {"training_monitor": "training_monitor(steps=100)"}
NOT_THERE = ("model not found", "Loading widget", "Error displaying widget", "Failed to load model")


def write_notebook(path, sources):
    v4 = nbformat.v4
    notebook = v4.new_notebook(
        cells=[v4.new_code_cell(source) for source in sources],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}},
    )
    nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def notebook(lab, pages):
    """A notebook with one widget per cell, run; its page."""
    write_notebook(
        lab.folder / "widgets.ipynb",
        [
            "from lgcourse.show.widgets import *",
            *(STARTS.get(name, f"{name}()") for name in CONTROLS),
        ],
    )
    page = pages.open(f"{lab.url}/lab/tree/widgets.ipynb")
    helpers.run_all(page)
    page.wait_for_function(
        "count => document.querySelectorAll('.jp-OutputArea .widget-html img').length >= count",
        arg=len(CONTROLS),
    )
    return page


def widget_of(page, name):
    """Return the output of the cell that made a widget."""
    return (
        page.locator(".jp-CodeCell")
        .nth(1 + list(CONTROLS).index(name))
        .locator(".jp-Cell-outputArea")
    )


@pytest.mark.parametrize("name", [name for name in CONTROLS if sum(CONTROLS[name])])
def test_each_control_changes_the_picture(notebook, name):
    widget = widget_of(notebook, name)
    assert helpers.move_everything(notebook, widget) == CONTROLS[name]


def test_the_quiz_by_keyboard_and_mouse(notebook):
    quiz = widget_of(notebook, "generalisation_quiz")
    buttons = quiz.locator("button")
    buttons.nth(0).focus()
    helpers.expect_change(notebook, quiz, lambda: notebook.keyboard.press("Enter"), "a guess")
    assert "Measured" in helpers.picture_of(quiz).locator("img").get_attribute("alt")
    assert buttons.nth(0).is_disabled() and buttons.nth(2).is_enabled()
    helpers.expect_change(notebook, quiz, lambda: buttons.nth(2).click(), "the next question")
    helpers.expect_change(notebook, quiz, lambda: buttons.nth(1).click(), "another guess")


def test_a_training_is_watched_and_stopped(notebook):
    monitor = widget_of(notebook, "training_monitor")
    monitor.locator(".noUi-handle").nth(1).focus()
    notebook.keyboard.press("End")  # the most updates: it will not end by itself
    notebook.wait_for_timeout(300)
    begin, halt = monitor.locator("button").all()
    helpers.expect_change(notebook, monitor, begin.click, "the training begins")
    helpers.expect_change(notebook, monitor, lambda: None, "the training goes on")
    # the kernel is free meanwhile: another widget answers
    other = widget_of(notebook, "relation_explorer")
    handle = helpers.handles_of(other).first
    helpers.expect_change(
        notebook, other, lambda: helpers.press(notebook, handle), "another widget"
    )
    halt.focus()
    notebook.keyboard.press("Enter")
    notebook.wait_for_function("button => !button.disabled", arg=begin.element_handle())
    assert halt.is_disabled()


def test_a_move_is_answered_within_300_ms(notebook):
    medians = {}
    for name, at in (("relation_explorer", 1), ("step_explorer", 0), ("lrc_explorer", 1)):
        widget = widget_of(notebook, name)
        handle = helpers.handles_of(widget).nth(at)
        handle.scroll_into_view_if_needed()
        handle.focus()
        notebook.keyboard.press("End")  # the largest scale
        notebook.wait_for_timeout(1000)
        notebook.evaluate(helpers.CLOCK, helpers.picture_of(widget).element_handle())
        for move in range(20):
            key = "ArrowRight" if move % 2 else "ArrowLeft"
            helpers.expect_change(notebook, widget, lambda k=key: notebook.keyboard.press(k), name)
        notebook.wait_for_function("() => window.answers.length >= 20")
        medians[name] = statistics.median(notebook.evaluate("() => window.answers"))
    print(f"median answer of 20 moves in ms: {medians}")
    if busy():
        pytest.skip(f"the machine is busy with other things; measured, in ms: {medians}")
    assert max(medians.values()) <= 300, medians


def busy():
    """Return whether a program that only counts is kept waiting."""
    wall, own = time.perf_counter(), time.process_time()
    while time.process_time() - own < 0.3:
        pass
    return (time.process_time() - own) / (time.perf_counter() - wall) < 0.8


def readable(page):
    """Return the text of a page, after everything that can be shown is there."""
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output")
    page.wait_for_function(
        "words => !words.some(word => document.body.innerText.includes(word))",
        arg=list(NOT_THERE),
        timeout=30_000,
    )
    return page.locator(".jp-Notebook").inner_text()


def test_a_saved_notebook_can_be_read_without_a_kernel(notebook, lab, lab_without_kernels, pages):
    notebook.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    text = (lab.folder / "widgets.ipynb").read_text()
    assert "widget-view" in text
    (lab_without_kernels.folder / "widgets.ipynb").write_text(text)
    page = pages.open(f"{lab_without_kernels.url}/lab/tree/widgets.ipynb")
    page.wait_for_timeout(8000)
    page.screenshot(path="/tmp/nokernel.png")
    print(json.loads(text)["metadata"].keys())
    readable(page)
