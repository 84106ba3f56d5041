"""With what does every notebook open? Badges, if the project has an address, and a set-up cell.

The set-up cell installs what is missing on Colab and Binder and does nothing elsewhere. It stands
behind the title, is the same in all notebooks and is written by the build alone. Badges and the
address that Colab installs from come from ``[project.urls]`` of pyproject.toml: without an address
there is no badge, and the set-up cell takes the copy of the course that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

from lgcourse.errors import InputError
from lgcourse.grading.quiz import read_toml

from .notebook import SETUP
from .percent import Cell

BRANCH = "main"  # what Colab and Binder show
NAMES = ("repository", "source", "source code", "code", "homepage")  # of project.urls, best first
CODE = """\
# On Colab and Binder this cell installs what is missing. On your own machine it does nothing.
import importlib.util
import os
import sys

if "google.colab" in sys.modules or "BINDER_SERVICE_HOST" in os.environ:
    missing = [name for name in ("lgcourse", "ipywidgets") if not importlib.util.find_spec(name)]
    if "lgcourse" in missing:
        import pathlib

        here = pathlib.Path.cwd()
        copies = [f for f in (here, *here.parents) if (f / "lgcourse" / "__init__.py").is_file()]
        # a copy of the course around this notebook, else the address of the project
        missing[0] = str(copies[0]) if copies else "@ADDRESS@"
    if "" in missing:
        print("Put this notebook into a copy of the course, and run this cell again.")
    elif missing:
        import subprocess

        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)
        importlib.invalidate_caches()"""


def opened(cells: Sequence[Cell], path: str, address: str) -> list[Cell]:
    """Return the cells of a notebook with badges before its title and the set-up cell behind it.

    Args:
        cells: what the source gives.
        path: the path of the notebook, relative to the root.
        address: of the project, or an empty text.

    >>> cells = [Cell("markdown", "# Title"), Cell("code", "1 + 1")]
    >>> [cell.kind for cell in opened(cells, "notebooks/01_a.ipynb", "")]
    ['markdown', 'code', 'code']
    """
    title = 1 if cells and cells[0].kind == "markdown" else 0
    source = f"git+{address}" if address else ""
    setup = Cell("code", CODE.replace("@ADDRESS@", source), (SETUP,), line=1)
    made = [*cells[:title], setup, *cells[title:]]
    shown = badges(path, address)
    return [Cell("markdown", shown, line=1), *made] if shown else made


def badges(path: str, address: str) -> str:
    """Return links that open a notebook on Colab and Binder, as Markdown.

    Args:
        path: the path of the notebook, relative to the root.
        address: of the project. Colab opens what lies on GitHub; Binder opens any repository.

    >>> print(badges("notebooks/01_a.ipynb", "https://github.com/me/it"))
    [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/me/it/blob/main/notebooks/01_a.ipynb)
    [![Open in Binder](https://mybinder.org/badge_logo.svg)](https://mybinder.org/v2/gh/me/it/main?labpath=notebooks%2F01_a.ipynb)
    """
    if not address:
        return ""
    parts = urlsplit(address)
    place = parts.path.strip("/").removesuffix(".git")
    file = quote(path, safe="")
    made = []
    repository = f"git/{quote(address, safe='')}"
    if parts.netloc == "github.com":
        repository = f"gh/{place}"
        target = f"https://colab.research.google.com/github/{place}/blob/{BRANCH}/{path}"
        image = "https://colab.research.google.com/assets/colab-badge.svg"
        made.append(f"[![Open in Colab]({image})]({target})")
    target = f"https://mybinder.org/v2/{repository}/{BRANCH}?labpath={file}"
    made.append(f"[![Open in Binder](https://mybinder.org/badge_logo.svg)]({target})")
    return "\n".join(made)


def project_address(root: Path) -> str:
    """Return the address of the repository that pyproject.toml states, or an empty text.

    Args:
        root: the folder that holds course/, and perhaps pyproject.toml.

    Raises:
        InputError: the file cannot be read, or the address is not one that git can clone.
    """
    file = root / "pyproject.toml"
    if not file.is_file():
        return ""
    urls = read_toml(file).get("project", {}).get("urls", {})
    stated = {str(name).strip().lower(): str(url).strip() for name, url in urls.items()}
    address = next((stated[name] for name in NAMES if stated.get(name)), "").rstrip("/")
    if address and not re.fullmatch(r"https://[\w.-]+(:\d+)?(/[\w.~-]+){2,}", address):
        raise InputError(
            "pyproject.toml: [project.urls] Repository is the address of a repository, such as "
            f"https://github.com/OWNER/NAME; got '{address}'"
        )
    return address
