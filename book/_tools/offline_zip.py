"""Pack the built site into one file to carry along: ``_build/dpnotes-offline.zip``.

Unpacked anywhere, ``dpnotes/index.html`` opens in a browser without a server or a network. The same
site makes the same file: the names are in order, and every time is that of the last change.
"""

import re
import sys
import time
import zipfile
from pathlib import Path

import pdf

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
ZIP = ROOT / "_build" / "dpnotes-offline.zip"
FOLDER = "dpnotes"
# What is left out: Python for the page, which no browser starts from a file, the cards of links to
# the site, MathJax for pages other than these, and what only Sphinx reads.
LEFT_OUT = re.compile(
    r"_static/try/engine/|_images/social_previews/|_static/mathjax/(?!tex-chtml\.js)[\w-]+\.js$"
    r"|\.buildinfo|.*\.map$"
)
# Pictures are packed already.
PACKED = {".png", ".woff", ".woff2", ".gz", ".zip"}


def listed(site):
    """Return the files of the site that are packed, in order, with their names in the zip."""
    files = (
        (path.relative_to(site).as_posix(), path) for path in site.rglob("*") if path.is_file()
    )
    return [(f"{FOLDER}/{name}", path) for name, path in sorted(files) if not LEFT_OUT.match(name)]


def pack(site, to, when):
    """Pack a site; ``when`` is a time in seconds. Return the number of files."""
    # A zip knows no time before 1980.
    date = max(time.gmtime(when)[:6], (1980, 1, 1, 0, 0, 0))
    files = listed(site)
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name, path in files:
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = 0o644 << 16
            kind = zipfile.ZIP_STORED if path.suffix in PACKED else zipfile.ZIP_DEFLATED
            made.writestr(entry, path.read_bytes(), kind)
    return len(files)


def main():
    """Pack the site that ``make book`` built."""
    if not (SITE / "index.html").is_file():
        sys.exit("There is no site to pack: make book")
    count = pack(SITE, ZIP, int(pdf.date_of_change()))
    size = ZIP.stat().st_size / 1e6
    print(f"{ZIP.relative_to(ROOT).as_posix()}: {count} files, {size:.1f} MB")


if __name__ == "__main__":
    main()
