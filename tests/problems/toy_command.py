"""The command ``hardmargin`` with toys in place of the papers' parts, which take seconds to import.

``python -m problems.toy_command FOLDER number,endless reproduce all ...``
"""

import sys
from types import ModuleType

from problems import reproduction_tasks
from problems.reproduction_tasks import part

from hardmargin.cli import main

if __name__ == "__main__":
    folder, functions, *arguments = sys.argv[1:]
    toy = part(folder, [getattr(reproduction_tasks, name) for name in functions.split(",")])
    registry = ModuleType("hardmargin.reproduction.registry")
    registry.PARTS = {toy.name: toy}
    sys.modules[registry.__name__] = registry
    sys.exit(main(arguments))
