#!/usr/bin/env bash
# Gradescope runs this once, when it makes the image. The package is the one that the tasks were written with.
set -euo pipefail

# Ubuntu 24.04 has the one, 22.04 the other.
apt-get update
# What a submission runs is shut in by bubblewrap.
apt-get install -y bubblewrap
apt-get install -y python3.12 python3.12-venv || apt-get install -y python3.11 python3.11-venv
python=$(command -v python3.12 || command -v python3.11)

"$python" -m venv /autograder/venv
# Without torch: a task that needs it asks for dpnotes[train] here, and for time.
/autograder/venv/bin/python -m pip install --no-input --constraint /autograder/source/constraints.txt \
  "/autograder/source/package[sklearn,accounting,audit]"
