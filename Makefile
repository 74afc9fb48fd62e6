# One command builds the book, one runs its tests; `make help` lists the rest.
# PY=python3 uses that interpreter as it is and installs nothing.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help book test full mutants mutations lint lab refresh bench browser pdf epub zip links field translations \
	assignments nbgrader clean FORCE

ifdef PY
PYTHON := $(PY)
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))
else
PYTHON := .venv/bin/python
READY := .venv/.ready
endif

JUPYTER_BOOK := $(PYTHON) -c 'from jupyter_book.cli.main import main; main()'

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

book: $(READY) ## build the site into _build/html; a warning is an error
	@$(PYTHON) book/_tools/lint.py --stale
	@$(PYTHON) book/_tools/engine.py
	@.ci/book $(PYTHON)

test: $(READY) ## run the tests, the doctests and every notebook, and hold coverage to 95 %
	@.ci/test $(PYTHON)

full: ## every check as CI does it, the long tests that CI leaves out, and the planted bugs
	@$(MAKE) nbgrader
	@.ci/run --full
	@$(MAKE) mutants

mutants: $(READY) ## plant each bug of tests/mutants (NAME=pate: of one list; PART=3/10: a tenth), and see that a test notices it
	@$(PYTHON) tests/mutants/run.py $(NAME) $(if $(PART),--part $(PART))

mutations: $(READY) ## change the code at 300 places drawn by lot, and list what no test notices (an hour; needs the network once)
	@$(PYTHON) tests/mutants/sample.py

lint: $(READY) ## check code, notebooks, prose, workflows and the citation file
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(PYTHON) -m check_jsonschema --builtin-schema vendor.github-actions .github/actions/*/action.yml
	$(PYTHON) -m check_jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(PYTHON) -m check_jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(PYTHON) book/_tools/lint.py

lab: $(READY) ## open the notebooks in JupyterLab
	$(PYTHON) -m jupyterlab --ServerApp.root_dir=book $(if $(filter 0,$(shell id -u)),--allow-root)

refresh: $(READY) ## run the notebooks that are stale (FAILED=1: that print something else by now; FORCE=1: all) and store their outputs
	$(PYTHON) book/_tools/refresh.py $(NAME) $(if $(FAILED),--failed) $(if $(FORCE),--force)

bench: .venv-bench/.ready ## measure dpnotes beside its peers, in an environment of their own
	.venv-bench/bin/python -m pytest tests/benchmarks -q -p no:cacheprovider --benchmark-quiet

browser: $(READY) ## install chromium, firefox and what the browser tests need (Debian; needs root)
	@command -v chromium >/dev/null || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y chromium; }
	@command -v firefox-esr firefox >/dev/null || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y firefox-esr; } \
		|| echo "Firefox could not be installed: its tests will be skipped."
	$(PYTHON) -m pip install --editable '.[browser]' --constraint constraints.txt

pdf: $(READY) ## print the book into _build/pdf (NAME=pate: one chapter; NAME=--chapters: each); needs LaTeX, and says which
	@$(PYTHON) book/_tools/pdf.py $(NAME)

epub: $(READY) ## write the book for readers of books into _build/dpnotes.epub; needs latex2mathml, and says so
	@$(PYTHON) book/_tools/epub.py

zip: book ## pack the site, to be read without a server or a network, into _build/dpnotes-offline.zip
	@$(PYTHON) book/_tools/offline_zip.py

links: $(READY) ## ask every link to another site whether it still answers (needs the network)
	$(JUPYTER_BOOK) build . --path-output _build/links --builder linkcheck

field: $(READY) ## audit published packages (NAME=opendp: one of them), each in an environment of its own; needs the network
	@$(PYTHON) tests/field/run.py $(NAME)
	@$(PYTHON) book/_tools/field.py

translations: $(READY) ## say which translations are behind, and write catalogues of all messages into _build/gettext (TO=zh_CN: build with those in locales)
	@$(PYTHON) book/_tools/translations.py
	@$(PYTHON) book/_tools/messages.py $(TO)

assignments: $(READY) ## build what students, nbgrader and Gradescope get of each assignment (NAME=randomized_response: of one) into _build/assignments
	@$(PYTHON) book/_tools/assignments.py $(NAME)

nbgrader: .venv-teach/.ready ## install nbgrader beside the package, in .venv-teach; needs the network, once

clean: ## remove everything built; the environments .venv, .venv-bench and .venv-teach stay
	rm -rf _build build dist *.egg-info .coverage* .pytest_cache .ruff_cache .hypothesis .benchmarks

# An environment made in another folder, or by an interpreter that has gone, is made anew.
unfit = $(shell [ -x $(1)/bin/python ] && [ "$$(cat $(1)/.ready 2>&1)" = "$(CURDIR)" ] || echo FORCE)

.venv/.ready: requirements.txt constraints.txt pyproject.toml $(call unfit,.venv)
	@.ci/venv .venv requirements.txt constraints.txt

.venv-bench/.ready: requirements-bench.txt pyproject.toml $(call unfit,.venv-bench)
	@.ci/venv .venv-bench requirements-bench.txt
	@.venv-bench/bin/python -m pip install --quiet --no-input --disable-pip-version-check --no-deps libauc==2.0.1

.venv-teach/.ready: requirements-teach.txt pyproject.toml $(call unfit,.venv-teach)
	@.ci/venv .venv-teach requirements-teach.txt
