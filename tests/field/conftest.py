"""What is audited has environments of its own, and is not collected here."""

collect_ignore_glob = ["audited.py", "run.py", "packages/*"]
