"""Hold lines and branches to a floor each: the fail_under of coverage only knows their mixture."""

import json
import sys
from pathlib import Path


def main(report: str, floor: str) -> int:
    """Print both percentages with the modules below 100 %, and say whether both reach the floor."""
    measured = json.loads(Path(report).read_text())
    for name, module in measured["files"].items():
        lines, arrows = module["missing_lines"], module["missing_branches"]
        if lines or arrows:
            print(f"{name}: lines not run {lines}, branches not taken {arrows}")
    totals = measured["totals"]
    line = 100 * totals["covered_lines"] / totals["num_statements"]
    branch = 100 * totals["covered_branches"] / totals["num_branches"]
    print(f"Coverage: {line:.1f} % of lines, {branch:.1f} % of branches; floor {floor} % each.")
    return min(line, branch) < float(floor)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
