"""How long hypothesis searches; ``HYPOTHESIS_PROFILE=long`` in the environment is much longer."""

import os

from hypothesis import settings

settings.register_profile("long", max_examples=2_000)
if "HYPOTHESIS_PROFILE" in os.environ:
    settings.load_profile(os.environ["HYPOTHESIS_PROFILE"])
