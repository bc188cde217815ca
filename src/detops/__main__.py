"""``python -m detops``: the command ``detops``."""

import sys

from detops.cli import main

sys.exit(main())
