"""What tests do in a page: run cells, move controls, and see whether the picture changes."""

from __future__ import annotations

KERNEL_READY = """() => {
    const context = window.jupyterapp?.shell.currentWidget?.sessionContext;
    const kernel = context?.session?.kernel;
    return context?.isReady && kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
}"""
ALL_RUN = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    const code = cells.filter(cell => cell.model.type === 'code');
    return code.every(cell => cell.model.executionCount !== null);
}"""
CHANGED = "([image, before]) => image.querySelector('img')?.src !== before"
# The time from a key or a click to the moment when the new picture can be seen.
CLOCK = """place => {
    window.answers = [];
    let start = null;
    const begin = () => { start = performance.now(); };
    for (const name of ['keydown', 'pointerdown', 'change'])
        document.addEventListener(name, begin, true);
    new MutationObserver(async () => {
        const image = place.querySelector('img');
        if (!image || start === null) return;
        const from = start;
        start = null;
        await image.decode().catch(() => {});  // replaced meanwhile
        window.answers.push(performance.now() - from);
    }).observe(place, { childList: true, subtree: true });
}"""


def wait_for_kernel(page):
    """Wait until the notebook's kernel answers."""
    page.wait_for_selector(".jp-Notebook")
    page.wait_for_function(KERNEL_READY)


def run_all(page):
    """Run all cells and wait until they have ended."""
    wait_for_kernel(page)
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    page.wait_for_function(ALL_RUN)


def picture_of(widget):
    """Return the place whose picture a widget changes."""
    return widget.locator(".widget-html:has(img)").last


def source_of(widget):
    """Return the address of the picture: with a data URI, the picture itself."""
    return picture_of(widget).locator("img").get_attribute("src")


def expect_change(page, widget, act, what):
    """Do something and wait until the picture is another one."""
    before, place = source_of(widget), picture_of(widget).element_handle()
    act()
    try:
        page.wait_for_function(CHANGED, arg=[place, before], timeout=60_000)
    except Exception as error:
        raise AssertionError(f"the picture did not change: {what}") from error


def handles_of(widget):
    """Return the handles of the sliders that can be moved."""
    return widget.locator(".widget-slider:not(:has([disabled])) .noUi-handle")


def lists_of(widget):
    """Return the drop-down lists that can be used."""
    return widget.locator("select:enabled")


def press(page, handle):
    """Move a slider by one step, to where there is room; return what moves it back."""
    now, most = (float(handle.get_attribute(f"aria-value{end}")) for end in ("now", "max"))
    handle.focus()
    there, back = ("ArrowLeft", "ArrowRight") if now == most else ("ArrowRight", "ArrowLeft")
    page.keyboard.press(there)
    return back


def click_track(page, handle):
    """Click into the track of a slider, far from its handle."""
    box = handle.locator("xpath=ancestor::*[contains(@class, 'noUi-base')]").bounding_box()
    now, low, high = (float(handle.get_attribute(f"aria-value{e}")) for e in ("now", "min", "max"))
    share = 0.25 if now > (low + high) / 2 else 0.75
    page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


def choose(page, key):
    """Open the list that has the focus, go one on, and take that one.

    Without the space bar, JupyterLab would take the arrow key for itself and go to another cell.
    """
    for name in ("Space", key, "Enter"):
        page.keyboard.press(name)


def move_everything(page, widget):
    """Move each slider and each list, by keyboard and by mouse; return how many there were."""
    sliders, lists = handles_of(widget), lists_of(widget)
    count = sliders.count(), lists.count()
    for k in range(count[0]):
        handle = sliders.nth(k)
        name = handle.locator("xpath=ancestor::*[contains(@class,'widget-slider')]").inner_text()
        handle.scroll_into_view_if_needed()
        expect_change(page, widget, lambda h=handle: press(page, h), f"{name!r} by keyboard")
        expect_change(page, widget, lambda h=handle: click_track(page, h), f"{name!r} by mouse")
    for k in range(count[1]):
        choice = lists.nth(k)
        choice.scroll_into_view_if_needed()
        choice.focus()
        last = choice.evaluate("list => list.selectedIndex === list.options.length - 1")
        key = "ArrowUp" if last else "ArrowDown"
        expect_change(page, widget, lambda k=key: choose(page, k), f"list {k}: {key}")
        chosen = choice.evaluate("list => list.selectedIndex")
        expect_change(
            page,
            widget,
            lambda c=choice, i=chosen: c.select_option(index=1 if i == 0 else 0),
            f"list {k} by mouse",
        )
    return count
