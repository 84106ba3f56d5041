"""Do the widgets work in JupyterLab, by keyboard and by mouse, and after the notebook is closed?"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest
from browser import helpers

nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).resolve().parents[2]

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
# widget -> which of its sliders is the scale, or whatever else has the largest pictures
SCALES = {
    "task_explorer": 0,
    "step_explorer": 0,
    "relation_explorer": 1,
    "lrc_explorer": 1,
    "attention_viewer": 0,
    "hint_explorer": 0,
}
STARTS = {"training_monitor": "training_monitor(steps=100)"}
NOT_THERE = ("model not found", "Error displaying widget", "Failed to load model")


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
        "count => document.querySelectorAll('.jp-Cell .widget-html img').length >= count",
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
    for name, at in SCALES.items():
        widget = widget_of(notebook, name)
        handle = helpers.handles_of(widget).nth(at)
        handle.scroll_into_view_if_needed()
        handle.focus()
        if handle.get_attribute("aria-valuenow") != handle.get_attribute("aria-valuemax"):
            helpers.expect_change(
                notebook, widget, lambda: notebook.keyboard.press("End"), "the largest scale"
            )
        notebook.evaluate(helpers.CLOCK, helpers.picture_of(widget).element_handle())
        for move in range(20):
            key = "ArrowRight" if move % 2 else "ArrowLeft"
            notebook.keyboard.press(key)
            notebook.wait_for_function("moves => window.answers.length > moves", arg=move)
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


def read_again(pages, server, path, kernel):
    """Open a copy of a notebook, run nothing, and return its page once all of it is shown."""
    copy = server.folder / f"again-{path.name}"
    copy.write_bytes(path.read_bytes())
    page = pages.open(f"{server.url}/lab/workspaces/{copy.stem}/tree/{copy.name}")
    if kernel:
        helpers.wait_for_kernel(page)
    else:
        page.locator(".jp-Dialog button.jp-mod-reject").click()  # "No Kernel"
    cells = nbformat.read(path, 4).cells
    wanted = sum(1 for cell in cells if cell.get("outputs"))
    page.wait_for_function(
        """([words, wanted]) => {
            const cells = [...document.querySelectorAll('.jp-Cell:has(.jp-OutputArea-output)')];
            const seen = image => image.offsetParent !== null && image.complete;
            const lost = words.some(word => document.body.innerText.includes(word));
            return cells.length >= wanted && !lost && cells.every(cell => {
                const pictures = [...cell.querySelectorAll('.jp-OutputArea-output img')];
                return pictures.length ? pictures.some(seen) : cell.innerText.trim();
            });
        }""",
        arg=[list(NOT_THERE), wanted],
    )
    return page


def pictures_in(page):
    """Return the pictures that can be seen in the outputs of a notebook."""
    return page.locator(".jp-OutputArea-output img:visible").all()


@pytest.fixture(scope="module")
def saved(notebook, lab):
    """The notebook with all widgets, saved after it ran."""
    notebook.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    path = lab.folder / "widgets.ipynb"
    assert "jupyter.widget-view" in path.read_text()
    return path


def test_a_saved_notebook_can_be_read_without_a_kernel(saved, reader, pages):
    pictures = pictures_in(read_again(pages, reader, saved, kernel=False))
    assert len(pictures) == len(CONTROLS)
    assert all(picture.get_attribute("alt") for picture in pictures)


def test_a_saved_notebook_can_be_read_with_a_new_kernel(saved, lab, pages):
    page = read_again(pages, lab, saved, kernel=True)
    page.locator(".noUi-handle").first.wait_for()  # the widgets, from their saved state
    pictures = pictures_in(page)
    assert len(pictures) == len(CONTROLS)
    assert all(picture.get_attribute("alt") for picture in pictures)


def lessons_with_widgets():
    """Return the lessons that hold a widget."""
    folder = ROOT / "notebooks"
    return [p for p in sorted(folder.glob("*.ipynb")) if "jupyter.widget-view" in p.read_text()]


LESSONS = lessons_with_widgets()


def test_there_are_lessons_with_widgets():
    assert LESSONS


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_can_be_read_without_a_kernel(reader, pages, path):
    pictures = pictures_in(read_again(pages, reader, path, kernel=False))
    assert pictures and all(picture.get_attribute("alt") for picture in pictures)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_widgets_of_a_lesson_can_be_moved(lab, pages, path):
    """Run the imports and the widgets of a lesson; other tests run lessons as a whole."""
    lesson = nbformat.read(path, 4)
    code = [cell.source for cell in lesson.cells if cell.cell_type == "code"]
    (imports,) = (source for source in code if "from lgcourse.show.widgets import" in source)
    widgets = [source for source in code if is_widget(source)]
    assert widgets
    write_notebook(lab.folder / path.name, [imports, *widgets])
    page = pages.open(f"{lab.url}/lab/workspaces/{path.stem}/tree/{path.name}")
    helpers.run_all(page)
    for number in range(1, 1 + len(widgets)):
        widget = page.locator(".jp-CodeCell").nth(number).locator(".jp-Cell-outputArea")
        helpers.picture_of(widget).wait_for()
        assert sum(helpers.move_everything(page, widget)) > 0


def is_widget(source):
    """Return whether a cell is the call of a widget."""
    return source.split("(")[0] in CONTROLS
