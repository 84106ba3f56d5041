"""The command line: parse, call, print. Nothing is computed here."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from lgcourse.errors import InputError, whole_number

app = typer.Typer(
    name="lgcourse",
    help="Why does a Transformer that learned short inputs fail on long ones?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
JSON = Annotated[bool, typer.Option("--json", help="print one JSON object, nothing else")]
FIGURE = Annotated[str | None, typer.Option(help="draw the answer into this new PNG file")]


@app.command("list")
def list_names(as_json: JSON = False) -> None:
    """List tasks, position embeddings and relations."""
    from lgcourse import embeddings, relations, tasks
    from lgcourse.theory import targets

    rows = {
        "tasks": tasks.names(),
        "embeddings": embeddings.names(),
        "relations": relations.names(),
        "targets": targets.names(),
    }
    emit(rows, as_json, lambda: [f"{kind}: {', '.join(names)}" for kind, names in rows.items()])


@app.command()
def train(
    task: Annotated[str, typer.Argument(help="a task, see `lgcourse list`")],
    pe: Annotated[str, typer.Option(help="a position embedding, see `lgcourse list`")],
    train_scale: Annotated[int, typer.Option(help="sizes are drawn from 1..N")] = 10,
    test_scales: Annotated[
        str, typer.Option(help="for instance 10,20,50 or 20x13")
    ] = "10,20,50,100",
    seed: int = 0,
    steps: Annotated[int, typer.Option(help="updates; 0: what suits the embedding")] = 0,
    batch: Annotated[int, typer.Option(help="sequences per update")] = 64,
    layers: Annotated[int, typer.Option(help="blocks; 0: what suits the embedding")] = 0,
    width: int = 64,
    heads: int = 8,
    learning_rate: Annotated[float, typer.Option(help="0: what suits the embedding")] = 0.0,
    other: Annotated[str, typer.Option(help="auto, soft or excluded")] = "auto",
    precision: Annotated[str, typer.Option(help="float32, or bfloat16 in training")] = "float32",
    samples: Annotated[int, typer.Option(help="test samples per scale")] = 200,
    hard_samples: Annotated[int, typer.Option(help="hardest samples per scale, if any")] = 50,
    task_option: Annotated[
        list[str] | None, typer.Option(help="option of the task, for instance width=30")
    ] = None,
    norm: Annotated[str, typer.Option(help="pre or post: where a block normalises")] = "pre",
    tied: Annotated[
        bool, typer.Option("--tied", help="logits use the weights of the token vectors")
    ] = False,
    loops: Annotated[int, typer.Option(help="how often the blocks are applied")] = 1,
    dropout: Annotated[float, typer.Option(help="share dropped in training")] = 0.0,
    pe_option: Annotated[
        list[str] | None,
        typer.Option(help="option of the embedding, for instance pairing=interleaved"),
    ] = None,
    until_certified: Annotated[
        bool, typer.Option("--until-certified", help="end with the first certificate")
    ] = False,
    add_counterexamples: Annotated[
        bool,
        typer.Option("--add-counterexamples", help="train on what --until-certified finds wrong"),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
    out: Annotated[str | None, typer.Option(help="run folder; default: a new one in runs/")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    as_json: JSON = False,
) -> None:
    """Train a Transformer on scales 1..N and test it on longer ones."""
    from lgcourse import report
    from lgcourse.training.runs import train_run
    from lgcourse.training.settings import Settings

    settings = Settings(
        task=task,
        pe=pe,
        train_scale=train_scale,
        test_scales=scales_for(task, test_scales),
        seed=seed,
        steps=steps,
        batch=batch,
        layers=layers,
        width=width,
        heads=heads,
        learning_rate=learning_rate,
        other=other,
        precision=precision,
        samples=samples,
        hard_samples=hard_samples,
        task_options=parse_options(task_option or []),
        norm=norm,
        tied=tied,
        loops=loops,
        dropout=dropout,
        pe_options=parse_values(pe_option or []),
        until_certified=until_certified,
        add_counterexamples=add_counterexamples,
    )
    if until_certified:
        from lgcourse.certify import until_certified as check_for
    else:
        check_for = None
    if signal.getsignal(signal.SIGINT) is _leave:  # all is imported: an interrupt can be handled
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with report.Progress(f"{task}, {pe}") as bar:
            result = train_run(
                settings,
                out,
                resume,
                device,
                bar.step,
                bar.testing,
                report.curve_picture,
                check_for,
            )
    except KeyboardInterrupt as stop:
        again = (
            f"the same command with --out {stop} --resume goes on from there" if stop.args else ""
        )
        print(f"stopped; the state is saved; {again}".rstrip("; "), file=sys.stderr)
        raise typer.Exit(130) from None
    emit(result, as_json, lambda: report.run_lines(result))


@app.command(context_settings={"ignore_unknown_options": True})  # a text may start with "-"
def solve(
    run: Annotated[str, typer.Argument(help="a run folder that `train` made")],
    text: Annotated[str, typer.Argument(help='a prompt, for instance "905+128="')],
    as_json: JSON = False,
) -> None:
    """Let a trained model answer a prompt, and compare with the true answer."""
    from lgcourse import report
    from lgcourse.training.answer import answer
    from lgcourse.training.runs import load_run

    result = answer(load_run(run), text)
    emit(result, as_json, lambda: report.answer_lines(result))


@app.command()
def explain(
    run: Annotated[str, typer.Argument(help="a run folder that `train` made")],
    text: Annotated[
        str | None, typer.Argument(help="a prompt: say where its answer first goes wrong, and why")
    ] = None,
    figure: FIGURE = None,
    relation: Annotated[
        str | None, typer.Option(help="write the learned relation to this new JSON file")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Say what a trained model reads: its relation, its attention, and what theory expects."""
    from lgcourse import report
    from lgcourse.training.explanation import explain as explain_run
    from lgcourse.training.runs import load_run

    loaded = load_run(run)
    if text is not None:
        from lgcourse.training.mistake import first_mistake

        found = first_mistake(loaded, text)
        emit(found.to_json(), as_json, found.lines)
        return
    result = explain_run(loaded)
    if relation is not None:
        report.save_relation(loaded, relation)
    if figure is not None:
        report.save_explanation(loaded, figure)
    emit(result.to_json(), as_json, result.lines)


@app.command()
def certify(
    run: Annotated[str, typer.Argument(help="a run folder that `train` made")],
    out: Annotated[
        str | None, typer.Option(help="write the certificate to this new JSON file")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Prove that a trained model is exact at every length, or show where it fails."""
    from lgcourse import report
    from lgcourse.certify import certify_run

    made = certify_run(run)
    if out is not None:
        report.save_certificate(made, out)
    emit(made.to_json(), as_json, made.lines)


@app.command("check")
def check_certificate(
    certificate: Annotated[str, typer.Argument(help="a file that `certify --out` wrote")],
    run: Annotated[str, typer.Argument(help="the run folder that it is about")],
    as_json: JSON = False,
) -> None:
    """Check a certificate again with a second, independent program."""
    from lgcourse.certify import check

    result = check(certificate, run)
    emit(result, as_json, lambda: [("holds: " if result["holds"] else "no: ") + result["reason"]])
    if not result["holds"]:
        raise typer.Exit(1)


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="a run folder that `train` made")],
    file: Annotated[str, typer.Argument(help="the new Python file")],
) -> None:
    """Write a certified model as a short Python program that runs without torch."""
    from lgcourse.certify import export_run

    made = export_run(run, file)
    print(f"{file}: exact at {made.scales}, {made.tuples:,} tuples, margin {made.margin:.3f}")


@app.command()
def predict(
    task: Annotated[str, typer.Argument(help="a task, see `lgcourse list`")],
    pe: Annotated[
        str,
        typer.Option(
            help="an embedding or a relation, see `lgcourse list`; or FILE.json of `explain`"
        ),
    ],
    train_scale: Annotated[int, typer.Option(help="training shows scales 1..N")] = 10,
    test_scales: Annotated[str, typer.Option(help="for instance 20,50 or 20x13")] = "20,50",
    figure: FIGURE = None,
    as_json: JSON = False,
) -> None:
    """Predict length generalisation from the task's circuit and the relation, without training."""
    from lgcourse import report
    from lgcourse.embeddings.named import setting

    chosen = setting(task, pe, train_scale, scales_for(task, test_scales))
    result = chosen.predict().to_json()
    if figure is not None:
        report.save_alignment(chosen, figure)
    emit(result, as_json, lambda: report.prediction_lines(task, pe, train_scale, result))


@app.command()
def src(
    task: Annotated[str, typer.Argument(help="a task, see `lgcourse list`")],
    scale: Annotated[int, typer.Option(help="largest scale")] = 20,
    pe: Annotated[str | None, typer.Option(help="count the operators that it induces, too")] = None,
    figure: FIGURE = None,
    as_json: JSON = False,
) -> None:
    """Count the unit operators of a task's circuit, scale by scale (SRC)."""
    from lgcourse import report
    from lgcourse.embeddings.named import src_named

    result = src_named(task, scale, pe)
    if figure is not None:
        report.save_curves(result, f"{task}: unit operators (SRC)", figure)
    emit(result, as_json, lambda: report.complexity_lines(result))


@app.command()
def lrc(
    target: Annotated[str, typer.Argument(help="a named target, or module:function")],
    scale: Annotated[int, typer.Option(help="largest scale")] = 20,
    kind: Annotated[str, typer.Option(help="operators or rank")] = "operators",
    figure: FIGURE = None,
    as_json: JSON = False,
) -> None:
    """Count the operators of a linear target, scale by scale (LRC)."""
    from lgcourse import report
    from lgcourse.theory import lrc_curve
    from lgcourse.theory.targets import resolve

    curve = lrc_curve(resolve(target), scale, kind)
    result = {"lrc": {str(n): value for n, value in curve.items()}}
    if figure is not None:
        quantity = "rank" if kind == "rank" else "number of operators"
        report.save_curves({target: result["lrc"]}, f"LRC of {target}", figure, quantity)
    emit(result, as_json, lambda: report.complexity_lines(result))


@app.command()
def sweep(
    file: Annotated[str, typer.Argument(help="a sweep file, such as sweeps/quick.toml")],
    jobs: Annotated[int, typer.Option(help="processes on this machine, one thread each")] = 1,
    dask: Annotated[
        str | None, typer.Option(help="address of a Dask scheduler, instead of --jobs")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="make what is missing")] = False,
    out: Annotated[
        str | None, typer.Option(help="folder of the results; default: FILE without .toml")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Train and test all combinations that a file names, and store each run as it ends."""
    from lgcourse import report
    from lgcourse.experiments import read_plan
    from lgcourse.experiments import sweep as run_sweep

    plan = read_plan(file)
    folder = out or file.removesuffix(".toml") + ("" if file.endswith(".toml") else "-results")
    if signal.getsignal(signal.SIGINT) is _leave:  # all is imported: an interrupt can be handled
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = run_sweep(plan, folder, resume, jobs, dask)
    except KeyboardInterrupt:
        print("stopped; what ended is stored; --resume goes on from there", file=sys.stderr)
        raise typer.Exit(130) from None
    emit(result, as_json, lambda: report.sweep_lines(result))


@app.command()
def grade(
    paths: Annotated[
        list[str], typer.Argument(help="notebooks, .py or .zip files, folders of submissions")
    ],
    seed: Annotated[int, typer.Option(help="seed of the hidden cases; the notebook's is 0")] = 1,
    csv: Annotated[str | None, typer.Option(help="write a gradebook")] = None,
    gradescope: Annotated[
        str | None, typer.Option(help="write Gradescope's results.json of one submission")
    ] = None,
    html: Annotated[str | None, typer.Option(help="folder for a page per student")] = None,
    jobs: Annotated[int, typer.Option(help="submissions graded at the same time")] = 1,
    dask: Annotated[
        str | None, typer.Option(help="address of a Dask scheduler, instead of --jobs")
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="seconds for the cells, and for each question")
    ] = 30.0,
    memory: Annotated[int, typer.Option(help="megabytes beyond what torch needs")] = 2048,
    late: Annotated[
        str | None, typer.Option(help="CSV file with the columns id, percent: taken off")
    ] = None,
    only: Annotated[str | None, typer.Option(help="grade this question alone")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="keep what is graded already")] = False,
    as_json: JSON = False,
) -> None:
    """Grade submissions: their code runs shut in, and values are compared outside."""
    if os.name == "nt":
        raise InputError("grading needs Linux or macOS; on Windows use WSL")
    from lgcourse import grading
    from lgcourse.grading import gradebook
    from lgcourse.grading.answers import CannotGrade
    from lgcourse.grading.grader import CANNOT, Settings, bounds

    settings = Settings(whole_number("seed", seed, 0), bounds(timeout, memory), only)
    if signal.getsignal(signal.SIGINT) is _leave:  # all is imported: an interrupt can be handled
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        rows = grading.grade(
            paths,
            settings,
            csv=csv,
            gradescope=gradescope,
            html=html,
            late=gradebook.read_late(late) if late else None,
            jobs=whole_number("jobs", jobs, 1, 256),
            dask=dask,
            resume=resume,
            say=lambda line: print(line, file=sys.stderr),
        )
    except KeyboardInterrupt:
        print("stopped; with --csv or --html, --resume goes on from there", file=sys.stderr)
        raise typer.Exit(130) from None
    except CannotGrade as why:
        print(f"error: {why}", file=sys.stderr)
        raise typer.Exit(1) from None
    emit(gradebook.as_json(rows), as_json, lambda: gradebook.lines(rows))
    if any(row["status"] == CANNOT for row in rows):
        raise typer.Exit(1)


@app.command("report")
def write_report(
    folder: Annotated[str, typer.Argument(help="a folder that `sweep` made")] = "sweeps/conjecture",
    grades: Annotated[
        str | None, typer.Option("--class", help="a class instead: what `grade --json` wrote")
    ] = None,
    quiz: Annotated[
        list[str] | None, typer.Option(help="CSV of a class's quiz answers; twice: before, after")
    ] = None,
) -> None:
    """Write a page (HTML and Markdown): results of a sweep, or the misconceptions of a class."""
    from lgcourse import report

    made = report.write_class_page(grades, quiz or []) if grades or quiz else None
    for path in made or report.write_page(folder):
        print(path)


@app.command()
def demo() -> None:
    """Train three models on additions of up to 10 digits, then add two 100-digit numbers."""
    from lgcourse.demo import main as run_demo

    run_demo()


@app.command()
def doctor(as_json: JSON = False) -> None:
    """Check this machine: Python, torch, packages, memory, notebook kernel."""
    from lgcourse import doctor as room

    checks = room.checks()
    if as_json:
        print(json.dumps({"checks": [{**vars(c), "status": c.status} for c in checks]}))
    else:
        print(room.report(checks))
    raise typer.Exit(room.exit_code(checks))


@app.command()
def lab(
    lesson: Annotated[int, typer.Argument(help="number of the lesson to open")] = 1,
    dry: Annotated[bool, typer.Option("--dry", help="print the command, do not run it")] = False,
) -> None:
    """Open JupyterLab on a lesson."""
    from lgcourse.lab import command, start

    print(shlex.join(command(lesson))) if dry else start(lesson)


@app.command()
def explore(
    port: Annotated[int, typer.Option(help="the port to listen on")] = 8866,
    browser: Annotated[bool, typer.Option(help="open a browser window")] = True,
    dry: Annotated[bool, typer.Option("--dry", help="print the command, do not run it")] = False,
) -> None:
    """Serve the widgets as a page of their own, without notebooks."""
    from lgcourse.explore import TEMPLATES, command, start

    if dry:
        print(shlex.join(["env", f"JUPYTER_PATH={TEMPLATES}", *command(port, browser)]))
    else:
        start(port, browser)


@app.command()
def site(
    out: Annotated[
        str, typer.Option(help="the new folder, or one that `site` made")
    ] = "build/site",
) -> None:
    """Build all lessons and exercises as a site of plain files that works offline."""
    from lgcourse.authoring.site import build_site
    from lgcourse.lab import course_root

    print(build_site(course_root(), out))


@app.command("new-task")
def new_task(
    name: Annotated[str, typer.Argument(help="its name, for instance running-maximum")],
    folder: Annotated[str | None, typer.Option(help="the new folder; default: NAME here")] = None,
) -> None:
    """Make a folder with a task of your own to try."""
    from lgcourse.authoring.scaffold import new_task as make

    made = make(name, folder)
    print(f"{made}: change task.py; this checks it, predicts, trains and reports, from anywhere:")
    print(shlex.join([sys.executable, str(made.resolve() / "run.py")]))


@app.command()
def build(
    execute: Annotated[bool, typer.Option("--execute", help="run the notebooks, too")] = False,
    force: Annotated[bool, typer.Option("--force", help="run also those that are in step")] = False,
    check: Annotated[bool, typer.Option("--check", help="only say what is out of step")] = False,
) -> None:
    """Build notebooks/, exercises/ and solutions/ from course/."""
    from lgcourse import authoring
    from lgcourse.lab import course_root

    if check:
        problems = authoring.check(course_root())
        print("\n".join(map(str, problems)) or "notebooks/, exercises/ and solutions/ are in step")
        raise typer.Exit(1 if problems else 0)
    authoring.build(course_root(), execute=execute, force=force, echo=print)


def parse_scales(text: str) -> tuple[Any, ...]:
    """Read scales such as ``10,20,50`` or ``20x13,100x37``.

    >>> parse_scales("10,20x13")
    (10, (20, 13))
    """
    scales: list[Any] = []
    for part in text.split(","):
        sizes = part.strip().split("x")
        numbers = all(s.isascii() and s.isdigit() and len(s) < 20 and int(s) > 0 for s in sizes)
        if not numbers:
            raise InputError(
                "test scales are whole numbers of at least 1 with commas between, such as 10,20,50 "
                f"(or 20x13 for two sizes); got '{part[:40]}' in '{text[:80]}'"
            )
        scales.append(int(sizes[0]) if len(sizes) == 1 else tuple(map(int, sizes)))
    return tuple(dict.fromkeys(scales))


def scales_for(task: str, text: str) -> tuple[Any, ...]:
    """Read the scales of a task; one number stands for all sizes.

    >>> scales_for("addition-unequal", "10,20x13")
    ((10, 10), (20, 13))
    """
    from lgcourse import tasks

    sizes = getattr(tasks.registry.load(task), "sizes", 1)
    scales = parse_scales(text)
    return tuple((n,) * sizes if isinstance(n, int) and sizes > 1 else n for n in scales)


def parse_options(texts: Sequence[str]) -> dict[str, int]:
    """Read options of a task such as ``width=30``.

    >>> parse_options(["width=30"])
    {'width': 30}
    """
    options = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not (name.isidentifier() and value.isascii() and value.isdigit() and len(value) < 20):
            raise InputError(f"an option of a task is NAME=NUMBER, such as width=30; got '{text}'")
        options[name] = int(value)
    return options


def parse_values(texts: Sequence[str]) -> dict[str, Any]:
    """Read options of an embedding: whole numbers, numbers, true or false, other text.

    >>> parse_values(["base=1e4", "buckets=32", "vectors=true", "pairing=half"])
    {'base': 10000.0, 'buckets': 32, 'vectors': True, 'pairing': 'half'}
    """
    options: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not (name.isidentifier() and value and len(value) < 100):
            raise InputError(
                f"an option of an embedding is NAME=VALUE, such as pairing=half; got '{text[:80]}'"
            )
        if name in options:
            raise InputError(f"option '{name}' of the embedding is given twice")
        options[name] = _value(value)
    return options


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return int(text) if text.lstrip("+-").isdecimal() else number


def emit(data: dict[str, Any], as_json: bool, lines) -> None:
    """Print data as one JSON object, or as lines for people."""
    print(json.dumps(data) if as_json else "\n".join(lines()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    signal.signal(signal.SIGINT, _leave)
    for stream in (sys.stdout, sys.stderr):  # names may hold what the terminal has no letter for
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def _leave(number, frame) -> None:
    """End at once: an exception within the import of a package can leave it half made."""
    os.write(2, b"\nstopped\n")
    os._exit(130)


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit code."""
    arguments = arguments or ["--help"]
    try:
        code = typer.main.get_command(app).main(arguments, "lgcourse", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except InputError as error:
        return complain(str(error))
    except (KeyboardInterrupt, typer.Abort):
        print("stopped", file=sys.stderr)
        return 130
    except OSError as error:
        if error.filename is not None:  # a file or folder that the system refuses
            return complain(f"cannot use '{error.filename}': {error.strerror}")
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO):
            raise
        # the reader of our output has gone, or the disk behind it is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return complain(f"cannot write the output: {error.strerror}")
    except Exception as error:  # click's usage errors have no common public name in typer
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            return complain(f"{error.format_message().rstrip('.')}; see: lgcourse COMMAND --help")
        raise


def complain(message: str) -> int:
    """Print one line on stderr and return the exit code for bad input."""
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return 2
