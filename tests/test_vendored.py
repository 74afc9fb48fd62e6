"""What others wrote and the site serves is what they published."""

import hashlib
import re
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "book" / "_static" / "interactive" / "vendor"
ROW = re.compile(r"^\| (\S+) \| .* \| `([0-9a-f]{64})` \|$", re.M)
CHECKSUMS = dict(ROW.findall((VENDOR / "README.md").read_text(encoding="utf-8")))


def test_every_vendored_script_is_listed_and_unchanged():
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.glob("*.js")
    }
    assert found == CHECKSUMS


def test_every_vendored_script_comes_with_its_licence():
    licences = (VENDOR / "LICENSES.txt").read_text(encoding="utf-8")
    assert all(f"({name})" in licences for name in CHECKSUMS)


def test_the_libraries_stay_light():
    assert sum(path.stat().st_size for path in VENDOR.glob("*.js")) < 600_000
