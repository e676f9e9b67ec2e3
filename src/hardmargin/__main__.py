"""``python -m hardmargin`` is the command ``hardmargin``."""

import sys

from hardmargin.cli import main

if __name__ == "__main__":
    sys.exit(main())
