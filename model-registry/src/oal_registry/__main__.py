import sys

from oal_registry.cli import main

sys.exit(main())
