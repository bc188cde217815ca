"""How thorough a run is: ``HYPOTHESIS_PROFILE=nightly`` tries what the ordinary run leaves out."""

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
NIGHTLY = PROFILE == "nightly"
