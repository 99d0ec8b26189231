"""``python -m controllers``: the second process of ``sampan up``."""

import sys

from controllers.main import main

sys.exit(main())
