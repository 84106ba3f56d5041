"""How do the notebooks become a site of plain files? One page each, with contents and a search.

The site needs no network and no server: formulas are MathML, the index of the search is a script
beside the pages, and an interactive widget is shown by the picture that it starts with.
"""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from lgcourse.errors import InputError
from lgcourse.training.folder import write_aside

from .markup import Markup, code_html
from .notebook import read

FILES = Path(__file__).with_name("site_files")
MARK = ".lgcourse-site"  # a folder with this file was made here and may be made anew
KINDS = {"notebooks": "Lessons", "exercises": "Exercises"}
WIDGET = "application/vnd.jupyter.widget-view+json"
STATIC = "lgcourse-static"  # the class of the picture that a widget leaves
TITLE = "Length generalisation and position"


@dataclass
class Page:
    """One page of the site.

    Args:
        path: where it lies, relative to the site.
        kind: the folder of its notebook.
        title: its heading.
        summary: its first paragraph, as text.
        body: what stands on it, in HTML.
        sections: (anchor, heading, text) of each section, for the contents and the search.
    """

    path: str
    kind: str
    title: str
    summary: str
    body: str
    sections: list[tuple[str, str, str]] = field(default_factory=list)


def build_site(root: str | Path, out: str | Path = "build/site") -> Path:
    """Write the site.

    Args:
        root: the folder that holds notebooks/ and exercises/; solutions are never read.
        out: the folder of the site: a new one, or one that an earlier build made. A relative one
            lies below the current folder.

    Returns:
        The folder.

    Raises:
        InputError: there are no notebooks, a package of the extra ``site`` is missing, or the
            folder holds something else.
    """
    root, out = Path(root), Path(out)
    pages = list(read_pages(root))
    if not pages:
        raise InputError(f"no notebooks in '{root}/notebooks'; build them with: lgcourse build")
    _claim(out)
    template = Template((FILES / "page.html").read_text(encoding="utf-8"))
    for number, page in enumerate(pages):
        before = pages[number - 1] if number else None
        after = pages[number + 1] if number + 1 < len(pages) else None
        path = out / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, page_html(template, pages, page, before, after).encode())
    start = Page("index.html", "", TITLE, "", _contents(pages))
    write_aside(out / "index.html", page_html(template, pages, start, None, pages[0]).encode())
    for name in ("style.css", "search.js"):
        write_aside(out / name, (FILES / name).read_bytes())
    write_aside(out / "index.js", f"window.siteIndex = {json.dumps(index(pages))};\n".encode())
    return out


def _claim(out: Path) -> None:
    """Make the folder, or empty one that an earlier build made."""
    if out.exists() and not out.is_dir():
        raise InputError(f"'{out}' is a file; choose another folder with --out")
    if out.is_dir() and any(out.iterdir()):
        if not (out / MARK).is_file():
            raise InputError(f"'{out}' holds files that are no site; choose another --out")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    write_aside(out / MARK, b"made by `lgcourse site`, which may replace it\n")


def read_pages(root: Path) -> Iterator[Page]:
    """Read the notebooks of students, lessons first, each in the order of its numbers."""
    for kind in KINDS:
        for path in sorted((root / kind).glob("*.ipynb")):
            notebook = read(path)
            if notebook is None:
                raise InputError(f"'{path}' is no notebook; build it with: lgcourse build")
            yield to_page(notebook, kind, f"{kind}/{path.stem}.html")


def to_page(notebook: Any, kind: str, path: str) -> Page:
    """Turn a notebook into a page.

    Args:
        notebook: an `nbformat.NotebookNode`.
        kind: the folder that it comes from.
        path: where the page will lie.
    """
    markup = Markup()
    state = notebook.metadata.get("widgets", {})
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(f'<div class="text">{markup.html(cell.source)}</div>')
        elif cell.cell_type == "code" and cell.source.strip():
            parts.append(code_html(cell.source))
            parts += outputs_html(cell.outputs, state)
            markup.add(cell.source)
    title = markup.headings[0][1] if markup.headings else path
    sections = [
        (anchor, heading, text)
        for (anchor, heading), text in zip(markup.headings, markup.texts(), strict=True)
    ]
    return Page(path, kind, title, markup.summary, "\n".join(parts), sections)


# --- outputs --------------------------------------------------------------------------------------
def outputs_html(outputs: Sequence[Any], state: Any) -> list[str]:
    """Return the outputs of a cell; a widget that left a static picture is shown by that one.

    Args:
        outputs: the outputs.
        state: the saved state of the notebook's widgets.
    """
    static = any(STATIC in output.get("data", {}).get("text/html", "") for output in outputs)
    return [output_html(output, {} if static else state) for output in outputs]


def output_html(output: Any, state: Any) -> str:
    """Return one output of a cell as HTML.

    Args:
        output: the output.
        state: the saved state of the notebook's widgets.
    """
    if output.output_type == "stream":
        return _pre(output.text)
    if output.output_type == "error":
        return _pre("\n".join(output.traceback))
    data = output.get("data", {})
    if WIDGET in data:
        return _widget(data[WIDGET]["model_id"], state)
    if "text/html" in data:
        return f'<div class="output">{data["text/html"]}</div>'
    return _pre(data.get("text/plain", ""))


def _pre(text: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return f'<pre class="output" tabindex="0">{html.escape(plain.rstrip())}</pre>'


def _widget(model: str, state: Any) -> str:
    """Show the pictures that a widget starts with, from its saved state."""
    models = state.get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    pictures = [text for text in _texts(model, models) if "<img" in text]
    note = "This can be moved in the notebook, and with <code>lgcourse explore</code>."
    return f'<div class="output"><p class="note">{note}</p>{"".join(pictures)}</div>'


def _texts(model: str, models: Any) -> Iterator[str]:
    """Yield the HTML of a widget and of all inside it."""
    own = models.get(model.removeprefix("IPY_MODEL_"), {}).get("state", {})
    if own.get("_model_name") == "HTMLModel":
        yield own.get("value", "")
    for child in own.get("children", ()):
        yield from _texts(child, models)


# --- pages ----------------------------------------------------------------------------------------
def page_html(
    template: Template, pages: Sequence[Page], page: Page, before: Page | None, after: Page | None
) -> str:
    """Fill in the frame of a page: contents, neighbours, and what stands on it."""
    up = "../" * page.path.count("/")
    steps = [
        f'<a rel="{rel}" href="{up}{other.path}">{word}: {html.escape(other.title)}</a>'
        for rel, word, other in (("prev", "Previous", before), ("next", "Next", after))
        if other is not None
    ]
    inside = [
        f'<li><a href="#{anchor}">{html.escape(heading)}</a></li>'
        for anchor, heading, _ in page.sections[1:]
    ]
    here = (
        f'<nav class="here" aria-label="On this page"><h2>On this page</h2><ol>{"".join(inside)}'
        "</ol></nav>"
        if inside
        else ""
    )
    return template.substitute(
        title=html.escape(page.title if page.kind else f"{TITLE}: contents"),
        site=html.escape(TITLE),
        up=up,
        contents=_navigation(pages, page, up),
        here=here,
        body=page.body,
        steps="".join(steps),
    )


def _navigation(pages: Sequence[Page], page: Page, up: str) -> str:
    parts = []
    for kind, words in KINDS.items():
        items = []
        for other in (one for one in pages if one.kind == kind):
            current = ' aria-current="page"' if other is page else ""
            title = html.escape(other.title)
            items.append(f'<li><a href="{up}{other.path}"{current}>{title}</a></li>')
        if items:
            parts.append(f"<h2>{words}</h2><ul>{''.join(items)}</ul>")
    return "".join(parts)


def _contents(pages: Sequence[Page]) -> str:
    """Return the first page: every page with its first words."""
    parts = [f"<h1>{html.escape(TITLE)}</h1>"]
    for kind, words in KINDS.items():
        items = [
            f'<li><a href="{page.path}">{html.escape(page.title)}</a>'
            f"<p>{html.escape(page.summary)}</p></li>"
            for page in pages
            if page.kind == kind
        ]
        if items:
            parts.append(f"<h2>{words}</h2><ul class='pages'>{''.join(items)}</ul>")
    return "".join(parts)


def index(pages: Sequence[Page]) -> list[dict[str, str]]:
    """Return what the search looks through: one row per section."""
    return [
        {"page": page.title, "url": f"{page.path}#{anchor}", "title": heading, "text": text}
        for page in pages
        for anchor, heading, text in page.sections
    ]
