"""Does the site work in a browser: search, keys, both themes, narrow windows, axe-core?"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from browser.conftest import chromium_path

pytest.importorskip("nbconvert", reason="needs nbconvert: pip install 'lgcourse[site]'")
pytest.importorskip("latex2mathml", reason="needs latex2mathml: pip install 'lgcourse[site]'")

ROOT = Path(__file__).resolve().parents[2]
AXE = "axe-core@4.10.3"
NARROW = {"width": 683, "height": 700}  # 1,024 pixels at 150 % zoom


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, as files."""
    chromium_path()
    from lgcourse.authoring.site import build_site

    return build_site(ROOT, tmp_path_factory.mktemp("site") / "site")


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The script of axe-core, from npm; skipped where it cannot be had."""
    folder = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("axe-core comes from npm, and npm was not found")
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", AXE]
    try:
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not bring axe-core in 90 seconds")
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip(f"npm did not bring axe-core: {made.stderr.strip()[-200:]}")
    return script


def address(site, name="index.html"):
    return f"file://{site / name}"


def lesson(site, number=0):
    return str(sorted((site / "notebooks").glob("*.html"))[number].relative_to(site))


def test_the_search_finds_a_section_and_goes_there(site, pages):
    page = pages.open(address(site, lesson(site, 2)))
    page.get_by_role("searchbox").focus()
    page.keyboard.type("scale hint")
    hits = page.locator("#found a")
    hits.first.wait_for()
    assert "Scale Hint" in hits.first.inner_text()
    page.keyboard.press("Tab")  # the button of the theme
    page.keyboard.press("Tab")  # the first hit
    assert page.evaluate("document.activeElement.closest('#found') !== null")
    page.keyboard.press("Enter")
    page.wait_for_url("**/notebooks/*.html#*")
    anchor = page.url.split("#")[1]
    assert page.locator(f"[id='{anchor}']").is_visible()


def test_a_word_that_is_nowhere(site, pages):
    page = pages.open(address(site))
    page.get_by_role("searchbox").fill("zzzyx")
    page.get_by_text("Nothing found").wait_for()


def test_next_and_previous_lead_through_all_pages(site, pages):
    page = pages.open(address(site))
    seen = []
    while page.locator(".steps a[rel=next]").count():
        page.locator(".steps a[rel=next]").click()
        page.wait_for_load_state()
        seen.append(page.url)
    built = {path.as_uri() for path in site.rglob("*.html")} - {(site / "index.html").as_uri()}
    assert len(seen) == len(built) and set(seen) == built
    page.locator(".steps a[rel=prev]").click()
    page.wait_for_url(seen[-2])


def test_the_theme_follows_the_system_and_the_button(site, pages):
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = pages.open(address(site), color_scheme="dark")
    light = pages.open(address(site), color_scheme="light")
    first, second = dark.evaluate(ground), light.evaluate(ground)
    assert first != second
    light.get_by_role("button", name="Dark or light").click()
    assert light.evaluate(ground) == first
    light.goto(address(site, lesson(site)))
    assert light.evaluate(ground) == first  # it is kept


def test_all_pages_fit_a_narrow_window(site, pages):
    page = pages.open(address(site), viewport=NARROW)
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        wide = page.evaluate("document.scrollingElement.scrollWidth")
        assert wide <= NARROW["width"], path.name


@pytest.mark.parametrize(
    ("scheme", "only"),
    [("light", None), ("dark", ["color-contrast"])],  # the themes differ in colours alone
    ids=["light", "dark"],
)
def test_axe_finds_no_serious_fault(site, pages, axe, scheme, only):
    page = pages.open(address(site), color_scheme=scheme)
    options = {"preload": False, "resultTypes": ["violations"]}
    options |= {"runOnly": only} if only else {}
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        page.add_script_tag(path=axe)
        found = page.evaluate("async options => (await axe.run(options)).violations", options)
        serious = [
            (fault["id"], [node["html"][:160] for node in fault["nodes"][:3]])
            for fault in found
            if fault["impact"] in ("serious", "critical")
        ]
        assert serious == [], path.name
