"""How do markdown, formulas and code become HTML that needs no script and no network?"""

from __future__ import annotations

import html
import re
from typing import Any

from .notebook import optional


def formula(latex: str, display: bool = False) -> str:
    """Return a LaTeX formula as MathML, which browsers and screen readers read.

    Args:
        latex: the formula, without dollar signs.
        display: whether it stands on a line of its own.

    >>> formula("x_i").startswith('<math ') and "<msub>" in formula("x_i")
    True
    """
    made = optional("latex2mathml.converter").convert(
        latex.strip(), display="block" if display else "inline"
    )
    # the source goes along: it is what can be searched and copied
    made = made.replace("<math ", f'<math alttext="{html.escape(latex.strip())}" ', 1)
    return f'<span class="formula" tabindex="0">{made}</span>' if display else made


def code_html(source: str) -> str:
    """Return Python code in colours.

    >>> '<span class="mi">1</span>' in code_html("1")
    True
    """
    pygments = optional("pygments")
    lexer = optional("pygments.lexers").PythonLexer()
    formatter = optional("pygments.formatters").HtmlFormatter(nowrap=True)
    return f'<pre class="code" tabindex="0">{pygments.highlight(source, lexer, formatter)}</pre>'


class Markup:
    """Turns the markdown of one page into HTML, and remembers its headings and its words.

    Attributes:
        headings: (anchor, text) of each heading so far.
        summary: the first paragraph behind the first heading, as text.
    """

    def __init__(self) -> None:
        self.headings: list[tuple[str, str]] = []
        self.summary = ""
        self._texts: list[list[str]] = []
        self._markdown = _markdown(self)

    def html(self, source: str) -> str:
        """Return markdown as HTML; each heading gets an anchor of its own."""
        made = []
        for piece in _sections(source):
            made.append(self._markdown.render(piece))
            self.add(re.sub(r"(?m)^#{1,6} .*$", "", piece))
            if not self.summary and self.headings:
                paragraph = re.search(r"<p>(.*?)</p>", made[-1], flags=re.DOTALL)
                self.summary = plain(paragraph[1]) if paragraph else ""
        return "".join(made)

    def add(self, text: str) -> None:
        """Let the search find a text in the present section."""
        if self._texts:
            self._texts[-1].append(text)

    def texts(self) -> list[str]:
        """Return the words of each section."""
        return [" ".join(" ".join(parts).split()) for parts in self._texts]

    def heading(self, text: str, level: int) -> str:
        """Return a heading with its anchor."""
        words = plain(text)
        anchor = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "section"
        taken = {name for name, _ in self.headings}
        number, name = 2, anchor
        while name in taken:
            name, number = f"{anchor}-{number}", number + 1
        self.headings.append((name, words))
        self._texts.append([])
        return f'<h{level} id="{name}">{text}</h{level}>\n'


def _sections(source: str) -> list[str]:
    """Cut markdown before its headings; a line of fenced code is none.

    >>> _sections("a\\n# b\\nc")
    ['a\\n', '# b\\nc']
    """
    pieces, fenced = [""], False
    for line in source.splitlines(keepends=True):
        fenced ^= line.startswith(("```", "~~~"))
        if not fenced and re.match(r"#{1,6} ", line):
            pieces.append("")
        pieces[-1] += line
    return [piece for piece in pieces if piece]


def plain(text: str) -> str:
    """Return HTML as one line of text; of a formula, its source.

    >>> plain("a <b>b</b> &lt; c")
    'a b < c'
    """
    text = re.sub(r'<math alttext="([^"]*)".*?</math>', r"\1", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())


def _markdown(markup: Markup) -> Any:
    """Make a converter whose headings and formulas are ours."""
    mistune = optional("nbconvert.filters.markdown_mistune")
    base: Any = mistune.IPythonRenderer

    class Renderer(base):
        def heading(self, text, level, **attrs):
            return markup.heading(text, level)

        def inline_math(self, body):
            return formula(body)

        def block_math(self, body):
            return formula(body, display=True)

        def latex_environment(self, name, body):
            return formula(rf"\begin{{{name}}}{body}\end{{{name}}}", display=True)

        def block_code(self, code, info=None):
            language = (info or "").split(" ")[0]
            if language in ("python", "py"):
                return code_html(code)
            return f'<pre class="code" tabindex="0">{html.escape(code)}</pre>'

    return mistune.MarkdownWithMath(renderer=Renderer(escape=False))
