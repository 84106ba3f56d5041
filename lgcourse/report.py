"""What does a person see on the terminal? Progress on stderr, tables and answers on stdout."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm.auto import tqdm

from lgcourse.errors import InputError
from lgcourse.show.curves import curve_figure, png


class Progress:
    """A progress bar on stderr with the loss and the time left; a context manager.

    Args:
        title: what is trained.
    """

    def __init__(self, title: str):
        self.title = title
        self.bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_) -> None:
        if self.bar is not None:
            self.bar.close()

    def step(self, trainer) -> None:
        """Show one more step."""
        if self.bar is None:
            self.bar = tqdm(
                total=trainer.steps,
                initial=trainer.step - 1,
                desc=self.title,
                unit="step",
                file=sys.stderr,
                mininterval=0.5,
            )
        if trainer.losses:
            self.bar.set_postfix_str(f"loss {list(trainer.losses.values())[-1]:.4f}", refresh=False)
        self.bar.update(trainer.step - self.bar.n)

    def testing(self, scale) -> None:
        """Say which scale is tested."""
        self.__exit__()
        print(f"testing scale {scale}", file=sys.stderr)


def run_lines(result: Mapping[str, Any]) -> list[str]:
    """Return the lines that `lgcourse train` prints for people."""
    columns = {"scale": list(result["exact_match"])}
    for name in ("exact_match", "hard_exact_match", "token_accuracy"):
        if name in result:
            columns[name.replace("_", " ")] = [f"{v:.3f}" for v in result[name].values()]
    rows = list(zip(*columns.values(), strict=True))
    lines = text_table(list(columns), rows)
    lines.append(
        f"{result['task']}, {result['pe']}, seed {result['seed']}: trained on scales "
        f"1..{result['train_scale']}, {result['steps']} steps, {result['seconds']:.1f} s on "
        f"{result['device']}, {result['samples']} samples per scale"
    )
    lines.append(f"run folder: {result['run']} (its curve.png shows the table)")
    return lines


def answer_lines(result: Mapping[str, Any]) -> list[str]:
    """Return the lines that `lgcourse solve` prints for people."""
    width = max(len(result["answer"]), len(result["true"]))
    given, true = result["answer"].rjust(width), result["true"].rjust(width)
    lines = [f"note: {note}" for note in result["notes"]]
    lines += [f"model  {given}", f"true   {true}"]
    if result["agree"]:
        return [*lines, f"they agree, all {len(result['true'])} characters"]
    marks = "".join(" " if a == b else "^" for a, b in zip(given, true, strict=True))
    return [*lines, f"       {marks}", f"they differ in {marks.count('^')} of {width} characters"]


def prediction_lines(task: str, pe: str, train_scale: int, result: Mapping[str, Any]) -> list[str]:
    """Return the lines that `lgcourse predict` prints for people."""
    lines = [f"{task}, {pe}, trained on scales 1..{train_scale}: {result['verdict']}"]
    for scale, share in result["resolvable"].items():
        lines.append(f"  scale {scale:>8}  {bar(share)}  {share:.2f} of the steps are resolvable")
    if result["src_train"] is not None:
        lines.append(
            f"operators: {result['src_train']} in training, {result['src_test']} with test"
        )
    return [*lines, f"because {result['reason']}"]


def complexity_lines(result: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return one line per stretch of scales with the same count, with a bar.

    >>> print("\\n".join(complexity_lines({"src": {"1": 1, "2": 2, "3": 2}})))
    src
      1     1  #
      2..3  2  ##
    """
    lines = []
    for name, curve in result.items():
        stretches: list[list[Any]] = []
        for scale, count in curve.items():
            if stretches and stretches[-1][2] == count:
                stretches[-1][1] = scale
            else:
                stretches.append([scale, scale, count])
        labels = [a if a == b else f"{a}..{b}" for a, b, _ in stretches]
        most = max(count for *_, count in stretches)
        lines.append(name)
        for label, (*_, count) in zip(labels, stretches, strict=True):
            mark = "#" * (count if most <= 40 else round(40 * count / most))
            width, digits = max(map(len, labels)), len(str(most))
            lines.append(f"  {label:<{width}}  {count:>{digits}}  {mark}".rstrip())
    return lines


def curve_picture(settings, table) -> bytes:
    """Return the PNG of exact match over scale that lies beside a run."""
    rows = {f"{settings.task}, {settings.pe}": table.exact_match}
    return png(curve_figure(rows, settings.train_scale))


def save_curves(curves, title: str, path: str, quantity: str = "number of operators") -> None:
    """Draw complexity curves into a new PNG file."""
    from lgcourse import show

    _save(show.complexity_figure(curves, title=title, quantity=quantity), path)


def save_alignment(setting, path: str) -> None:
    """Draw which key has which id, at the smallest test scale of a prediction, into a PNG file."""
    from lgcourse import show
    from lgcourse.relations import sizes_of

    at = min(setting.tested, key=lambda scale: (sum(sizes_of(scale)), sizes_of(scale)))
    _save(show.alignment_figure(setting.task, setting.relation, setting.trained, at), path)


def save_explanation(run, path: str) -> None:
    """Draw the attention of each head of a run beside the ideal relation into a new PNG file."""
    from lgcourse import show

    _save(show.explanation_figure(run), path)


def save_relation(run, path: str) -> None:
    """Write the relation that a run learned to a new JSON file, head by head."""
    import json

    from lgcourse.relations import CellRelation
    from lgcourse.relations.saved import as_data
    from lgcourse.training.explanation import readers

    heads = [reader.relation for reader in readers(run.model)]
    cells = [head for head in heads if isinstance(head, CellRelation)]
    if not cells:
        raise InputError(
            f"'{run.settings.pe}' learns no relation of its own to write; lbpe and lbpe-sh do"
        )
    _write(path, ".json", "relations", (json.dumps(as_data(cells), indent=1) + "\n").encode())


def save_certificate(made, path: str) -> None:
    """Write a certificate to a new JSON file."""
    from lgcourse.training.folder import new_file

    made.write(new_file(path, ".json", "certificates"))
    print(f"certificate: {path}", file=sys.stderr)


def _save(figure, path: str) -> None:
    _write(path, ".png", "figures", png(figure))


def _write(path: str, ending: str, what: str, data: bytes) -> None:
    from lgcourse.training.folder import new_file, write_aside

    write_aside(new_file(path, ending, what), data)
    print(f"{what.removesuffix('s')}: {path}", file=sys.stderr)


def bar(share: float, width: int = 20) -> str:
    """Return a bar for a share of 0..1.

    >>> bar(0.5, 4)
    '##..'
    """
    return ("#" * round(share * width)).ljust(width, ".")


def text_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a plain table, columns right-aligned except the first.

    >>> print("\\n".join(text_table(["pe", "10"], [["rpe", "1.0"], ["none", "0.5"]])))
    pe     10
    rpe   1.0
    none  0.5
    """
    table = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[c]) for row in table) for c in range(len(head))]
    return [
        "  ".join(
            cell.ljust(w) if c == 0 else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


# --- sweeps ---------------------------------------------------------------------------------------
def sweep_lines(result: Mapping[str, Any]) -> list[str]:
    """Return the lines that `lgcourse sweep` prints for people."""
    lines = [
        f"{result['results']}: {result['done']} of {result['runs']} runs done, "
        f"{result['refused']} cannot exist, {result['failed']} failed; "
        f"{result['seconds']:.0f} s of computing"
    ]
    lines += [f"  failed: {error}" for error in result["errors"]]
    if result["failed"] or result["failed_predictions"]:
        lines.append("  the same command with --resume tries these again")
    return [*lines, f"see: lgcourse report {result['results']}"]


def write_page(folder: str) -> list[str]:
    """Write report.html, report.md and their figures beside the results of a sweep.

    results.csv is written again, too, since a sweep that is going on writes it at its end only.

    Args:
        folder: what `lgcourse sweep` made.

    Returns:
        The files.

    Raises:
        InputError: the folder holds no sweep.
    """
    from lgcourse.experiments import Store, cells_of
    from lgcourse.experiments.cells import so_far
    from lgcourse.experiments.plan import plan_of
    from lgcourse.experiments.results import result_table, write_table
    from lgcourse.show import matrix_figure
    from lgcourse.training.folder import write_aside

    store = Store(folder)
    plan = plan_of(store.data())
    write_table(result_table(plan, store), store)
    every = cells_of(plan, store)
    cells = so_far(every)
    groups: dict[str, dict[tuple[str, str], tuple[str, str]]] = {}
    for cell in cells:
        options = "".join(f", {name} {value}" for name, value in cell.variant.items())
        title = f"trained on 1..{cell.train_scale}, tested at {plan.factor} times that{options}"
        groups.setdefault(title, {})[cell.task, cell.pe] = (cell.predicted, cell.measured)
    figures = {}
    for number, (title, group) in enumerate(groups.items(), start=1):
        figures[f"matrix-{number}.png"] = matrix_figure(group, title)
    page = ("Predicted and measured", _opening(plan, every), figures, _parts(plan, cells))
    pages = {"report.md": _markdown(*page), "report.html": _html(*page)}
    files = {name: png(figure) for name, figure in figures.items()}
    files |= {name: text.encode() for name, text in pages.items()}
    for name, data in files.items():
        write_aside(store.path / name, data)
    return [str(store.path / name) for name in files]


def _parts(plan, cells) -> list[tuple[str, Any]]:
    """Return headings with a table or a list of sentences."""
    from lgcourse.experiments import tables

    differ = tables.differences(cells, plan.factor)
    return [
        ("Agreement of prediction and outcome", tables.agreement_table(cells)),
        ("Cells that are not counted", tables.apart_table(cells)),
        ("As a function of the threshold", tables.threshold_table(cells)),
        ("Where they differ", differ or ["Nowhere."]),
        ("All cells", tables.cell_table(cells)),
    ]


def _opening(plan, cells) -> str:
    there, wanted = (
        sum(len(c.far) for c in cells),
        sum(c.wanted for c in cells if "refused" not in (c.predicted, c.measured)),
    )
    part = (
        f"These results are not complete: {there} of {wanted} runs are there, and a cell is judged "
        "by the seeds that it has. "
    )
    return (part if there < wanted else "") + (
        f"A cell generalises if most of its seeds reach an exact match of {plan.threshold:g} at "
        f"{plan.factor} times the largest training scale; it is not trained if most do not reach "
        "it at the training scale. Intervals: 95 %, bootstrap over cells. Every number here comes "
        "from runs.jsonl; results.csv has one row per run and scale."
    )


def write_class_page(grades: str | None, quizzes: Sequence[str]) -> list[str]:
    """Write a page about the misconceptions of a class, as HTML and as Markdown.

    Args:
        grades: what `lgcourse grade --json` wrote, or None.
        quizzes: CSV files with answers to the quiz, in the order in which they were given.

    Returns:
        The files: class.md and class.html beside the first file that was given.

    Raises:
        InputError: a file is not of its form, or none is given.
    """
    from pathlib import Path

    from lgcourse.grading import classreport, quiz
    from lgcourse.lab import course_root
    from lgcourse.training.folder import write_aside

    given = [*([grades] if grades else []), *quizzes]
    if not given:
        raise InputError("a class report needs --class GRADES.json, --quiz ANSWERS.csv, or both")
    root = course_root()
    items = quiz.read_quiz(root / "course/teachers/quiz.toml")
    places = classreport.Places(root, quiz.read_toml(root / "course/teachers/sections.toml"))
    rows = classreport.read_grades(grades) if grades else []
    rounds = {Path(file).stem: quiz.read_answers(file, items) for file in quizzes}
    if len(rounds) < len(quizzes):
        raise InputError("files of answers need names of their own, such as before.csv, after.csv")
    parts = classreport.parts(rows, items, rounds, places)
    asked = [f"{len(rows)} graded submissions"] if grades else []
    asked += [f"{len(answers)} answers to the quiz ({name})" for name, answers in rounds.items()]
    title, opening = "What the class has not understood yet", f"From {', '.join(asked)}."
    folder = Path(given[0]).resolve().parent
    pages = {
        "class.md": _markdown(title, opening, {}, parts),
        "class.html": _html(title, opening, {}, parts),
    }
    for name, text in pages.items():
        write_aside(folder / name, text.encode())
    return [str(folder / "class.md"), str(folder / "class.html")]


def _markdown(title: str, opening: str, figures, parts) -> str:
    lines = [f"# {title}", "", opening, ""]
    lines += [f"![{figure.alt}]({name})\n" for name, figure in figures.items()]
    for heading, part in parts:
        lines += [f"## {heading}", ""]
        if isinstance(part, list):
            lines += [f"- {sentence}" for sentence in part]
        else:
            head, rows = part
            rule = ["---"] * len(head)
            escaped = ([cell.replace("|", "\\|") for cell in row] for row in (head, rule, *rows))
            lines += ["| " + " | ".join(row) + " |" for row in escaped]
        lines.append("")
    return "\n".join(lines)


def _html(title: str, opening: str, figures, parts) -> str:
    import base64
    from html import escape

    body = [f"<h1>{escape(title)}</h1>", f"<p>{escape(opening)}</p>"]
    for figure in figures.values():
        data = base64.b64encode(png(figure)).decode()
        body.append(f'<p><img alt="{escape(figure.alt)}" src="data:image/png;base64,{data}"></p>')
    for heading, part in parts:
        body.append(f"<h2>{escape(heading)}</h2>")
        if isinstance(part, list):
            items = "".join(f"<li>{escape(sentence)}</li>" for sentence in part)
            body.append(f"<ul>{items}</ul>")
        else:
            head, rows = part
            top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
            cells_html = (
                "<tr>" + "".join(f"<td>{escape(value)}</td>" for value in row) + "</tr>"
                for row in rows
            )
            body.append(f"<table><tr>{top}</tr>{''.join(cells_html)}</table>")
    style = (
        "body{font:16px sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
        "table{border-collapse:collapse}th,td{border:1px solid #999;padding:.2em .5em;"
        "text-align:left}img{max-width:100%;height:auto}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )
