# `make book` builds the site, `make test` runs its tests; `make help` lists the rest.
# PY=python3 uses that interpreter as it is and installs nothing.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help book test notebooks lint refresh lab full mutants browser pdf zip links assignments hashes FORCE

ifdef PY
PYTHON := $(PY)
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))
else
PYTHON := .venv/bin/python
READY := .venv/.ready
endif

# Each worker has a core to itself, and so has a kernel: more threads than cores would wait for each other.
export OMP_NUM_THREADS ?= 1
JUPYTER_BOOK = $(PYTHON) -c 'from jupyter_book.cli.main import main; main()'
# An interpreter of your own may lack some tools: these are the options that it understands.
has = $(shell $(PYTHON) -c 'import $(1)' 2>/dev/null && echo yes)
PYTEST = $(PYTHON) -m pytest -ra $(if $(call has,xdist),-n auto --maxprocesses 4 --dist loadfile)
NBVAL = $(if $(call has,nbval$(comma)ipykernel),--nbval --nbval-cell-timeout=600)
comma := ,

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

book: $(READY) ## build the site into _build/html; a warning is an error
	@$(PYTHON) book/_tools/lint.py --stale
	@$(PYTHON) book/_tools/try/engine.py
	@rm -rf _build/html _build/.doctrees _build/.jupyter_cache
	@$(JUPYTER_BOOK) build . --path-output . -W -n --keep-going
	@echo "The book is in _build/html/index.html."

test: $(READY) ## run the unit tests, the doctests, and the chapters' notebooks against what they print
	$(PYTEST) $(NBVAL) $(if $(NBVAL),book/*.ipynb) tests dpnotes

notebooks: $(READY) ## run all notebooks against what they print
	$(PYTEST) --nbval --nbval-cell-timeout=600 book

lint: $(READY) ## check code, notebooks, prose, workflows and the citation file
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(PYTHON) -m check_jsonschema --builtin-schema vendor.github-actions .github/actions/*/action.yml
	$(PYTHON) -m check_jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(PYTHON) -m check_jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(PYTHON) book/_tools/lint.py

refresh: $(READY) ## run stale notebooks and store what they print (FAILED=1: those that print something else by now; FORCE=1: all)
	$(PYTHON) book/_tools/refresh.py $(NAME) $(if $(FAILED),--failed) $(if $(FORCE),--force)

lab: $(READY) ## open the notebooks in JupyterLab
	$(PYTHON) -m jupyterlab --ServerApp.root_dir=book $(if $(filter 0,$(shell id -u)),--allow-root)

full: .venv-teach/.ready ## what .ci/run does, with the long tests, all planted bugs, and all that these commands build
	@.ci/run --full
	@$(MAKE) mutants pdf zip assignments

mutants: $(READY) ## plant each bug of tests/mutants (NAME=pate: of one list; PART=3/10: a tenth), and see that a test notices it
	@$(PYTHON) tests/mutants/run.py $(NAME) $(if $(PART),--part $(PART))

browser: $(READY) ## install the browsers and what their tests need, and bubblewrap (Debian; needs root)
	@{ command -v chromium && command -v bwrap; } >/dev/null || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y chromium bubblewrap; }
	@command -v firefox-esr firefox >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y firefox-esr \
		|| echo "Firefox could not be installed: its tests will be skipped."
	$(PYTHON) -m pip install --editable '.[browser]' --constraint constraints.txt

pdf: book ## print the site into _build/pdf (NAME=pate: one page of it); needs Chromium
	@$(PYTHON) book/_tools/pdf.py $(NAME)

zip: book ## pack the site, to be read without a server or a network
	@cd _build && $(abspath $(PYTHON)) -m zipfile -c dpnotes.zip html

links: $(READY) ## ask every link to another site whether it still answers (needs the network)
	$(JUPYTER_BOOK) build . --path-output _build/links --builder linkcheck

assignments: $(READY) ## build what students, nbgrader and Gradescope get of each assignment (NAME=randomized_response: of one)
	@$(PYTHON) book/_tools/assignments.py $(NAME)

# torch, triton and CUDA are other files on each index: their versions are pinned, and no hash is.
hashes: ## write .ci/hashes.txt anew after a change of the pins (needs uv and the network)
	@{ grep -Ev '^(torch==|-e)' requirements.txt; printf '%s\n' filelock networkx sympy; } | UV_CUSTOM_COMPILE_COMMAND="make hashes" uv pip compile --quiet --no-config - \
		--constraint constraints.txt --universal --python-version 3.11 --generate-hashes --no-annotate --output-file .ci/hashes.txt

# An environment made in another folder, or by an interpreter that has gone, is made anew.
unfit = $(shell [ -x $(1)/bin/python ] && [ "$$(cat $(1)/.ready 2>&1)" = "$(CURDIR)" ] || echo FORCE)

.venv/.ready: requirements.txt constraints.txt .ci/hashes.txt pyproject.toml $(call unfit,.venv)
	@.ci/venv .venv requirements.txt constraints.txt .ci/hashes.txt

.venv-teach/.ready: requirements-teach.txt constraints.txt pyproject.toml $(call unfit,.venv-teach)
	@.ci/venv .venv-teach requirements-teach.txt constraints.txt
