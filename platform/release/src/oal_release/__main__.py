import sys

from oal_release.cli import main

sys.exit(main(sys.argv[1:]))
