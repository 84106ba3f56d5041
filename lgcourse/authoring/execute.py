"""How is a notebook run so that two runs on two machines give the same file?

One thread, a fixed hash seed, the Python that runs the build, no start-up files of the user, the
notebook's folder as working directory. The cells are driven one by one: nbclient's own loop over
them takes Ctrl-C as the death of the kernel and would report the author's interruption as a fault.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lgcourse.errors import InputError

from .notebook import digest, optional, to_text
from .percent import Cell
from .portable import traces

CELL_SECONDS = 120
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


def execute(notebook: Any, cells: Sequence[Cell], source: str, folder: Path, root: Path) -> Any:
    """Run a notebook from top to end.

    Args:
        notebook: a notebook made from `cells`; changed in place.
        cells: the cells, for the lines that errors name.
        source: the path of the source, relative to the root.
        folder: the notebook's folder, which exists.
        root: the folder that holds course/.

    Returns:
        The notebook with outputs, execution counts and the state of its widgets.

    Raises:
        InputError: with the file and line of the cell that raised, ran longer than `CELL_SECONDS`
            seconds, lost its kernel, or whose output holds a path, process id or memory address.
    """
    with tempfile.TemporaryDirectory() as settings:
        client = _client(notebook, folder, settings)
        with client.setup_kernel(env=_environment(settings), cleanup_kc=True):
            for index, cell in enumerate(notebook.cells):
                where = f"{source}:{cells[index].line}"
                _run_cell(client, cell, index, where)
            client.set_widgets_metadata()
    for index_or_none, found in traces(notebook, root):
        if index_or_none is None:
            raise InputError(f"{source}: the saved state of the widgets holds {found}")
        where = f"{source}:{cells[index_or_none].line}"
        raise InputError(
            f"{where}: the output of this cell holds {found}; print what is true everywhere"
        )
    return _rename_widgets(notebook, source)


def _run_cell(client: Any, cell: Any, index: int, where: str) -> None:
    """Run one cell; say where it stands if it fails."""
    problems = optional("nbclient.exceptions")
    try:
        client.execute_cell(cell, index, execution_count=client.code_cells_executed + 1)
    except problems.CellExecutionError as error:
        reason = " ".join(f"{error.ename}: {error.evalue}".split())
        raise InputError(f"{where}: the cell raised {reason}") from None
    except problems.CellTimeoutError:
        limit = f"{client.timeout} s, or its output did not arrive"
        raise InputError(f"{where}: the cell ran longer than {limit}") from None
    except problems.DeadKernelError:
        raise InputError(f"{where}: the kernel died in this cell") from None


def _rename_widgets(notebook: Any, source: str) -> Any:
    """Name widget k, in the order of making, by a hash of path and k instead of at random."""
    state = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    text = to_text(notebook)
    for index, name in enumerate(state):
        if not re.fullmatch(r"[0-9a-f]{32}", name):
            continue  # a name that somebody chose: the same in every run
        text = text.replace(name, digest(source, "widget", str(index), length=32))
    return optional("nbformat.v4").reads(text)


def _client(notebook: Any, folder: Path, settings: str) -> Any:
    """Make the client for a kernel of the Python that runs this."""
    optional("ipykernel")
    # Without folders to search, "python3" is this Python, not what some installation calls so.
    specs = optional("jupyter_client.kernelspec").KernelSpecManager(kernel_dirs=[])
    manager = optional("jupyter_client.manager").AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=specs,
        # Sockets in a folder of ours: nobody else on the machine can listen, no port is needed.
        transport="tcp" if os.name == "nt" else "ipc",
        connection_file=os.path.join(settings, "kernel.json"),
    )
    return optional("nbclient").NotebookClient(
        notebook,
        km=manager,
        resources={"metadata": {"path": str(folder)}},
        timeout=CELL_SECONDS,
        allow_errors=False,
        record_timing=False,
        coalesce_streams=True,  # how a text is split into messages depends on time
        store_widget_state=True,
        shutdown_kernel="immediate",  # a cell that is busy when the author gives up would not hear
        iopub_timeout=30,
        raise_on_iopub_timeout=True,  # the alternative is to lose outputs without a word
    )


def _environment(settings: str) -> dict[str, str]:
    """Return the kernel's environment; `settings` is an empty folder for IPython's files."""
    # The lessons use the copy of the package that builds them, also when it is not installed.
    package = Path(__file__).resolve().parents[2]
    paths = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if package.name not in ("site-packages", "dist-packages"):
        paths.insert(0, str(package))
    # MPLBACKEND is left to the kernel, which draws into the notebook unless the user has set it.
    dropped = ("MPLBACKEND", "PYTHONSTARTUP")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {
        "IPYTHONDIR": settings,
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # silences a warning about the debugger
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(paths),
    }
