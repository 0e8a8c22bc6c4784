import sys

from oal_pki.cli import main

sys.exit(main())
