"""The worked example of CONTRIBUTING.md runs as it stands."""

import re
import textwrap
from pathlib import Path

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def test_the_example_of_an_algorithm_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    exec(compile("\n".join(map(textwrap.dedent, blocks)), PAGE.name, "exec"), {})
