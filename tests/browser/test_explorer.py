"""Does `lgcourse explore` serve every widget on a page of its own?"""

from __future__ import annotations

import pytest
from browser import helpers
from browser.conftest import Server, chromium_path

pytest.importorskip("voila", reason="needs voila: pip install 'lgcourse[explore]'")


@pytest.fixture(scope="module")
def explorer(tmp_path_factory, pages):
    """The page of the explorer."""
    chromium_path()

    def command(port):
        return ["-m", "lgcourse", "explore", f"--port={port}", "--no-browser"]

    server = Server(tmp_path_factory.mktemp("explorer"), command, "/no-such-page")
    page = pages.open(server.url)
    page.locator(".widget-html img").first.wait_for()
    yield page
    server.close()


def widgets():
    """Return the keys of the list and the number of controls that the widget has at least."""
    pytest.importorskip("ipywidgets")
    from lgcourse.show.widgets.all import ENTRIES

    return list(ENTRIES)


def test_no_code_is_shown(explorer):
    assert "import explorer" not in explorer.locator("body").inner_text()
    assert explorer.title() == "lgcourse: the explorer"


@pytest.mark.parametrize("number", range(len(widgets())), ids=widgets())
def test_each_widget_answers(explorer, number):
    menu = explorer.locator("select").first
    before = helpers.source_of(explorer.locator("body"))
    if menu.evaluate("list => list.selectedIndex") != number:
        menu.select_option(index=number)
        explorer.wait_for_function(
            """before => {
                const images = [...document.querySelectorAll('.widget-html img')];
                const last = images[images.length - 1];
                return last && last.src !== before;
            }""",
            arg=before,
        )
    widget = explorer.locator(".widget-vbox .widget-vbox .widget-vbox").last
    handles = helpers.handles_of(widget)
    if handles.count():
        handle = handles.last
        helpers.expect_change(explorer, widget, lambda: helpers.press(explorer, handle), "a slider")
        helpers.expect_change(
            explorer, widget, lambda: helpers.click_track(explorer, handle), "its track"
        )
    else:
        button = widget.locator("button:enabled").first
        button.focus()
        helpers.expect_change(explorer, widget, lambda: explorer.keyboard.press("Enter"), "a guess")
    assert widget.locator("img").last.get_attribute("alt")


def test_a_list_answers_to_arrow_keys(explorer):
    explorer.locator("select").first.focus()
    body = explorer.locator("body")
    words = body.locator(".widget-html p").first.inner_text()
    explorer.keyboard.press("ArrowUp")
    explorer.wait_for_function(
        "before => document.querySelector('.widget-html p')?.innerText !== before", arg=words
    )


def test_it_fits_a_narrow_window(explorer):
    explorer.set_viewport_size({"width": 683, "height": 700})  # 1,024 pixels at 150 % zoom
    explorer.locator("select").first.select_option(index=0)
    explorer.locator(".widget-html img").last.wait_for()
    right = explorer.evaluate(
        "() => Math.max(...[...document.querySelectorAll('img, select, .widget-slider')]"
        ".filter(e => e.offsetParent).map(e => e.getBoundingClientRect().right))"
    )
    assert right <= 683
