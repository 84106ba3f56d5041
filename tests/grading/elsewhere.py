"""Grade as if Python's folders had other rights: ``elsewhere.py FOLDER PLAN JOBS MODE``.

Run as root, in a mount namespace of its own: every folder above Python that not everybody may pass
(MODE 755), or the one that holds its library (MODE 700), is exchanged for one of that mode with the
same content. Nothing outside this process changes. Prints the rows and what was said, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import torch

from lgcourse.grading import Settings, grade
from lgcourse.grading.sandbox import linux


def folders_above(file):
    """The folders above a file, outer ones first."""
    parts = os.path.realpath(file).split(os.sep)[1:-1]
    return [os.sep + os.path.join(*parts[: n + 1]) for n in range(len(parts))]


def exchange(folder, mode):
    """Put a folder of a mode over one, with all that is in it."""
    aside = tempfile.mkdtemp()
    linux.mount(folder, aside, "", linux._BIND | linux._RECURSIVE)
    linux.mount("tmpfs", folder, "tmpfs", 0, "mode=755")
    for name in os.listdir(aside):
        old, new = os.path.join(aside, name), os.path.join(folder, name)
        if os.path.islink(old):
            os.symlink(os.readlink(old), new)
            continue
        os.mkdir(new) if os.path.isdir(old) else open(new, "w").close()
        linux.mount(old, new, "", linux._BIND | linux._RECURSIVE)
    os.chmod(folder, int(mode, 8))


def main(place, plan, jobs, mode):
    if os.geteuid() == 0:
        try:
            linux.unshare(linux.NEW_FILES)
            linux.mount("none", "/", "", linux._RECURSIVE | linux._PRIVATE)
            if mode == "700":
                exchange(os.path.dirname(os.__file__), mode)
            else:
                for file in (os.__file__, torch.__file__, sys.executable):
                    for folder in folders_above(file):
                        if not os.stat(folder).st_mode & 1:
                            exchange(folder, mode)
        except OSError as error:
            print(json.dumps([None, [str(error)]]))
            return
    said = []
    rows = grade([place], Settings(3, plan=plan), jobs=int(jobs), say=said.append)
    print(json.dumps([rows, said]))


if __name__ == "__main__":
    main(*sys.argv[1:])
