import sys

from oal_backup.cli import main

sys.exit(main())
