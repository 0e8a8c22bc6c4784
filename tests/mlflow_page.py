"""What a person does on MLflow's page, as a command: runs in the environment that has the browser's driver.

usage: mlflow_page.py URL USER PASSWORD_FILE SCREENSHOTS MODEL/VERSION alias NAME | tag NAME VALUE | show
Prints the time of the last click, seconds since 1970.
"""

from __future__ import annotations

import sys
from pathlib import Path

from oal_registry.ui_driver import MlflowPage

url, user, password_file, screenshots, version, action, *arguments = sys.argv[1:]
model, _, number = version.rpartition("/")
with MlflowPage(url, user, Path(password_file).read_text().strip(), Path(screenshots)) as page:
    page.open_version(model, int(number))
    if action == "alias":
        page.set_alias(*arguments)
    elif action == "tag":
        page.set_tag(*arguments)
    print(page.clicked_at)
    page.screenshot("-".join([model, number, action, *arguments]))
