"""Is the site whole: every notebook a page, every link right, every picture with its text?"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

pytest.importorskip("nbconvert", reason="needs nbconvert: pip install 'lgcourse[site]'")
pytest.importorskip("latex2mathml", reason="needs latex2mathml: pip install 'lgcourse[site]'")
nbformat = pytest.importorskip("nbformat")

from lgcourse.authoring.markup import Markup, formula  # noqa: E402
from lgcourse.authoring.site import build_site, output_html, to_page  # noqa: E402
from lgcourse.errors import InputError  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


class Reader(HTMLParser):
    """Collects what a page links to, its anchors and its pictures."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.images, self.tags = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        have = dict(attrs)
        self.tags.append(tag)
        self.links += [have[name] for name in ("href", "src") if have.get(name)]
        self.anchors += [have["id"]] if "id" in have else []
        self.images += [have] if tag == "img" else []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build_site(ROOT, tmp_path_factory.mktemp("out") / "site")


@pytest.fixture(scope="module")
def read(site):
    return {path: Reader(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_notebook_of_students_is_a_page_and_no_solution(site, read):
    wanted = {
        site / kind / f"{path.stem}.html"
        for kind in ("notebooks", "exercises")
        for path in (ROOT / kind).glob("*.ipynb")
    }
    assert set(read) == wanted | {site / "index.html"} and len(wanted) >= 24
    assert not list(site.rglob("*solution*"))


def test_no_line_of_a_solution_is_on_the_site(site):
    text = "".join(path.read_text("utf-8") for path in site.rglob("*.html"))
    assert "BEGIN SOLUTION" not in text and "END SOLUTION" not in text


def test_every_link_leads_somewhere_on_the_site(site, read):
    lost = []
    for path, page in read.items():
        for link in page.links:
            place = urlparse(link)
            if place.scheme in ("http", "https", "data"):
                continue
            assert not place.scheme and not place.path.startswith("/"), (path.name, link)
            target = (path.parent / unquote(place.path)).resolve() if place.path else path
            here = target.is_file() and site.resolve() in target.parents
            if not here or place.fragment not in ["", *read.get(target, page).anchors]:
                lost.append((path.name, link))
    assert lost == []


def test_pages_load_nothing_from_elsewhere(read):
    for path in read:
        text = path.read_text("utf-8")
        assert not re.search(r'(?:src|href)="(?:https?:)?//[^"]+\.(?:js|css|png|svg|woff2?)"', text)
        assert not re.search(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="https?:', text)


def test_every_picture_has_its_text_and_every_anchor_its_own_name(read):
    for path, page in read.items():
        assert all(image.get("alt") for image in page.images), path.name
        assert len(page.anchors) == len(set(page.anchors)), path.name
        assert page.tags.count("h1") == 1, path.name
    assert sum(len(page.images) for page in read.values()) > 20


def test_the_index_of_the_search_leads_to_sections(site, read):
    text = (site / "index.js").read_text("utf-8")
    rows = json.loads(text.removeprefix("window.siteIndex = ").rstrip(";\n"))
    for row in rows:
        name, anchor = row["url"].split("#")
        assert anchor in read[site / name].anchors
    assert any("Scale Hint" in row["title"] for row in rows)


def test_formulas_are_mathml(read):
    text = "".join(path.read_text("utf-8") for path in read)
    assert text.count("<math ") > 50
    words = re.sub(r"<(pre|code|math)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"\$[^$\n]*\\[a-z]+[^$\n]*\$", words)


def test_the_lesson_with_a_widget_shows_its_picture(site):
    text = (site / "notebooks" / "01_length_generalization.html").read_text("utf-8")
    assert "lgcourse explore" in text and "application/vnd.jupyter.widget-view" not in text
    after = text[text.index("This can be moved in the notebook") :]
    assert re.search(r"<img [^>]*alt=\"Task addition, scale 3", after)


# --- pieces ---------------------------------------------------------------------------------------
def test_equal_headings_get_different_anchors():
    markup = Markup()
    made = markup.html("# A b\n\nfirst\n\n## C\n\n## C\n\nlast words\n")
    assert [anchor for anchor, _ in markup.headings] == ["a-b", "c", "c-2"]
    assert markup.summary == "first" and markup.texts() == ["first", "", "last words"]
    assert '<h2 id="c-2">' in made


def test_markdown_that_starts_without_a_heading():
    markup = Markup()
    assert "<p>words</p>" in markup.html("words")
    assert markup.headings == [] and markup.texts() == []


def test_code_with_a_hash_is_no_heading():
    markup = Markup()
    markup.html("# Title\n\ntext\n\n    # indented\n\n```\n# fenced\n```\n")
    assert [text for _, text in markup.headings] == ["Title"]


def test_a_formula_says_its_source():
    assert formula("a < b").startswith('<math alttext="a &lt; b" ')
    made = Markup().html("so $x_{i-1}$ and\n\n$$y = 2$$\n")
    assert made.count("<math ") == 2 and "$" not in re.sub(r'alttext="[^"]*"', "", made)


def test_text_outputs_are_escaped_and_lose_their_colours():
    v4 = nbformat.v4
    made = output_html(v4.new_output("stream", text="\x1b[31ma < b\x1b[0m\n"), {})
    assert made == '<pre class="output" tabindex="0">a &lt; b</pre>'


def test_a_page_without_headings_is_called_by_its_path():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    assert to_page(notebook, "notebooks", "notebooks/x.html").title == "notebooks/x.html"


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds files that are no site"):
        build_site(ROOT, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    with pytest.raises(InputError, match="is a file"):
        build_site(ROOT, tmp_path / "thesis.txt")


def test_a_second_build_takes_the_place_of_the_first(site):
    (site / "old.html").write_text("left over")
    before = {p.relative_to(site): p.read_bytes() for p in site.rglob("*.html")}
    assert build_site(ROOT, site) == site
    after = {p.relative_to(site): p.read_bytes() for p in site.rglob("*.html")}
    assert before.pop(Path("old.html")) and before == after


def test_without_notebooks_there_is_no_site(tmp_path):
    with pytest.raises(InputError, match="lgcourse build"):
        build_site(tmp_path, tmp_path / "out")


def test_the_command_says_where_the_site_is(tmp_path, capsys):
    from lgcourse import cli

    (tmp_path / "site").mkdir()
    assert cli.run(["site", "--out", str(tmp_path / "site")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "site")
    assert (tmp_path / "site" / "index.html").is_file()
    assert cli.run(["site", "--out", str(tmp_path)]) == 2
    assert "holds files that are no site" in capsys.readouterr().err
