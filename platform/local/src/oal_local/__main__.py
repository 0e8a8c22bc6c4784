import sys

from oal_local.cli import main

sys.exit(main())
