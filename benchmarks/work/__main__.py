"""Work done with a small real model: steersman beside other harnesses, on the same tasks and weights.

Run it as `make bench-work`, after `steersman models fetch qwen2.5-coder-1.5b`. It takes hours: each
attempt may take 180 seconds. Results are kept as JSON lines, and a run goes on where the last one
stopped; the report is made of what is there. `ARGS=--write` also keeps it for docs/performance.md.
"""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # for what all benchmarks share

from bench import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], (__doc__ or "").split("\n")[0]))
