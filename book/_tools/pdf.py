"""Print the built pages with Chromium, each into a PDF of its own below ``_build/pdf``.

``python book/_tools/pdf.py`` prints all pages, ``python book/_tools/pdf.py pate`` a chapter's.
What paper looks like is in the style sheet, under ``@media print``.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urljoin

import yaml

ROOT = Path(__file__).resolve().parents[2]
SITE, PDF = ROOT / "_build" / "html", ROOT / "_build" / "pdf"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
# Chromium has no sandbox for root. Virtual time is spent once scripts, mathematics above all, rest.
OPTIONS = ["--headless", "--no-pdf-header-footer", "--virtual-time-budget=60000"]
OPTIONS += ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
LINK = re.compile(r'(<a\b[^>]*? href=")(?!#)([^"]*)')


def print_page(page, into, address):
    """Print a built page; its links lead to the published site, because paper has no folder."""
    text = page.read_text(encoding="utf-8")
    copy = page.with_suffix(".print.html")
    copy.write_text(LINK.sub(lambda link: link[1] + urljoin(address, link[2]), text), "utf-8")
    into.parent.mkdir(parents=True, exist_ok=True)
    try:
        command = [CHROMIUM, *OPTIONS, f"--print-to-pdf={into}", copy.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    finally:
        copy.unlink()


def main(names):
    """Print the pages of the chapters that are named, or all."""
    if CHROMIUM is None:
        sys.exit("To print, Chromium or Chrome must be installed.")
    home = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
    pages = sorted(SITE.glob("book/**/*.html"))
    pages = [page for page in pages if not names or page.stem in names]
    if not pages:
        sys.exit(f"No built page is called {' or '.join(names) or 'anything'}: see `make book`.")
    for page in pages:
        name = page.relative_to(SITE)
        into = PDF / name.relative_to("book").with_suffix(".pdf")
        print_page(page, into, urljoin(home, name.as_posix()))
        print(f"{into.relative_to(ROOT).as_posix()}: {into.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
