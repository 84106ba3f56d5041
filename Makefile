# Everything a learner or a developer starts, each from nothing: `make` lists it.
# Needed: git, make, Python 3.10 to 3.13 and a package index (pip's own settings say which).

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed

# The folders of built notebooks that exist; all of them run as tests.
NOTEBOOKS = $(wildcard notebooks exercises solutions)

.DEFAULT_GOAL := help
.PHONY: help demo lab test notebooks site clean

# The stamp holds the folder that the environment was made in and is written last. So an interrupted
# installation has none, and one that was moved, copied or lost its Python loses it here.
$(shell test "$$(cat $(STAMP) 2>/dev/null)" = "$$(pwd -P)" && $(PY) -c '' 2>/dev/null || rm -f $(STAMP))

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s%s\n", $$1, $$2 }'
	@echo 'The first call makes $(VENV) and installs into it; choose its Python with PYTHON=python3.12.'

demo: $(STAMP) ## the idea in a few minutes, on the command line
	$(PY) -m lgcourse demo

lab: $(STAMP) ## open the first lesson in JupyterLab
	$(PY) -m lgcourse lab

# One thread per process: two workers that each start as many threads as there are cores wait for one another.
test: export OMP_NUM_THREADS = 1
test: $(STAMP) ## lint, type check, all tests and all notebooks
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	$(PY) -m pytest --numprocesses 2 --dist loadfile --doctest-modules \
		--nbval-lax --nbval-current-env --nbval-cell-timeout 120 --durations 10 tests lgcourse $(NOTEBOOKS)

notebooks: $(STAMP) ## build notebooks/, exercises/ and solutions/ from course/ and run them
	$(PY) -m lgcourse build --execute

site: $(STAMP) ## build all lessons and exercises as a site that works offline, in build/site
	$(PY) -m lgcourse site

clean: ## remove the environment and everything else that make or the tests made
	rm -rf $(VENV) build dist lgcourse.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment with a stamp is brought up to date; one without is made anew.
$(STAMP): pyproject.toml constraints.txt
	@test -f $@ || { $(check_python); }
	@test -f $@ || $(PYTHON) -m venv --clear $(VENV) || { $(say_no_venv); }
	@rm -f $@
	$(PY) -m pip install --disable-pip-version-check -c constraints.txt -e '.[course,sweep,dev]'
	@pwd -P > $@

define check_python
$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	echo "'$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo 'not there'); this course needs Python 3.10, 3.11, 3.12 or 3.13." >&2; \
	echo "Name one, for instance: make $(or $(MAKECMDGOALS),demo) PYTHON=python3.12" >&2; \
	exit 1; }
endef

define say_no_venv
echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu the package python3-venv has what it needs." >&2; \
	exit 1
endef
