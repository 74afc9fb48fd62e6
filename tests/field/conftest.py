"""Nothing here is collected: what is audited has environments of its own."""

collect_ignore_glob = ["*.py", "packages/*"]
