import sys

from oal_training.cli import main

sys.exit(main())
