"""What a person does on MLflow's page, as a command: runs in the environment that has the browser's driver.

usage: mlflow_page.py URL USER PASSWORD_FILE SCREENSHOTS
Each line that it reads is MODEL/VERSION alias NAME | MODEL/VERSION tag NAME VALUE; it answers with the time of the
click, seconds since 1970. One browser for all: its start costs more than what is done with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from oal_registry.ui_driver import MlflowPage

url, user, password_file, screenshots = sys.argv[1:]
with MlflowPage(url, user, Path(password_file).read_text().strip(), Path(screenshots)) as page:
    for line in sys.stdin:
        version, action, *arguments = line.split()
        model, _, number = version.rpartition("/")
        page.open_version(model, int(number))
        {"alias": page.set_alias, "tag": page.set_tag}[action](*arguments)
        print(page.clicked_at, flush=True)
        page.screenshot("-".join([model, number, action, *arguments]))
