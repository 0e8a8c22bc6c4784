"""A person at MLflow's web page, by headless Chromium: logs in, sets and removes aliases, sets tags, looks.

    with MlflowPage("http://127.0.0.1:5000", "owner", password, Path("build/screenshots")) as page:
        page.open_version("congestion", 3)
        page.set_alias("champion")
        page.set_tag("retrain", "requested")
        page.wait_for_tag("retrain.state", "done")

Needs Debian's chromium and chromium-driver. Every step waits for what it needs on the page; `PageError` says what was
not there and which screenshot shows it.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
# Background networking off: on a machine without the Internet, Chromium otherwise looks for its maker's hosts all the
# time.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1500,1000",
)
PATIENCE_S = 30
LOOK_S, RELOAD_S = 0.1, 1.0  # between two looks at the page; before it is loaded anew
NOT_YET = (
    NoSuchElementException,
    StaleElementReferenceException,
    ElementClickInterceptedException,
    ElementNotInteractableException,
    IndexError,
)
DIALOG = "div[role=dialog]"
TAGS = "[data-testid='tags-section']"


class PageError(AssertionError):
    """Something was not on the page in time; the message names it and a screenshot."""


class MlflowPage:
    """One browser. `screenshots`: folder for PNG files, named by the caller."""

    def __init__(self, url: str, user: str, password: str, screenshots: Path):
        self.url, self.user, self._password, self._screenshots = url.rstrip("/"), user, password, screenshots
        self._driver = self._profile = None
        self.clicked_at = 0.0  # of the last click, seconds since 1970

    def __enter__(self) -> MlflowPage:
        for program in (CHROMIUM, DRIVER):
            if not shutil.which(program):
                raise PageError(f"{program} is not there; run platform/setup/apt chromium chromium-driver")
        self._screenshots.mkdir(parents=True, exist_ok=True)
        self._profile = tempfile.TemporaryDirectory(prefix="oal-chromium-", ignore_cleanup_errors=True)
        options = Options()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={self._profile.name}"):
            options.add_argument(flag)
        self._driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            self._log_in()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self._driver.quit()
        self._profile.cleanup()

    def _log_in(self) -> None:
        scheme, _, rest = self.url.partition("://")
        self._driver.get(f"{scheme}://{quote(self.user, safe='')}:{quote(self._password, safe='')}@{rest}/version")
        # A page whose own address holds a password cannot ask the server anything; the browser remembers the login for
        # the plain one.
        self._driver.get(f"{self.url}/")
        self._wait(lambda: self._one(f"[aria-label='Account menu for {self.user}']"), f"logged in as {self.user}")

    # --- a version's page

    def open_version(self, model: str, version: int) -> None:
        """Go to the page of a version."""
        self._driver.get(f"{self.url}/#/models/{quote(model)}/versions/{version}")
        self._driver.refresh()
        self._wait(
            lambda: self._one("h2", f"Version {version}") and self._aliases_button(), f"page of {model}/{version}"
        )
        if self._find("[aria-label='Close'][data-component-id='mlflow.assistant.chat_panel.close']"):
            self._click(
                lambda: self._one("[data-component-id='mlflow.assistant.chat_panel.close']"),
                "close the assistant's panel",
            )

    def aliases(self) -> set[str]:
        """Aliases that the open page shows."""
        shown = self._wait(lambda: self._aliases_item().text, "aliases")
        return set(re.findall(r"@\s*([\w.-]+)", shown))

    def set_alias(self, alias: str) -> None:
        """By the dialog `Add/Edit alias`."""
        self._click(self._aliases_button, "Aliases: Add")
        box = self._wait(lambda: self._one(f"{DIALOG} input[role=combobox]"), "alias dialog")
        box.send_keys(alias)
        box.send_keys(Keys.ENTER)
        self._wait(lambda: alias in self._one(DIALOG).text, f"alias {alias} entered")
        self.screenshot(f"alias-dialog-{alias}")
        self._click(lambda: self._one(f"{DIALOG} button", "Save aliases"), "Save aliases")
        self._wait(lambda: alias in self.aliases(), f"alias {alias} shown")

    def remove_alias(self, alias: str) -> None:
        """By the cross beside it in the same dialog."""
        self._click(self._aliases_button, "Aliases: edit")
        self._click(lambda: self._one(f"{DIALOG} [title='{alias}'] button"), f"cross of {alias}")
        self._wait(lambda: not self._find(f"{DIALOG} [title='{alias}']"), f"alias {alias} taken out")
        self._click(lambda: self._one(f"{DIALOG} button", "Save aliases"), "Save aliases")
        self._wait(lambda: alias not in self.aliases(), f"alias {alias} gone")

    def set_tag(self, name: str, value: str) -> None:
        """By the form below the version's table of tags, or, for a tag that is there, by its row."""
        self._open_tags()
        if name in self.tags():
            self._change_tag(name, value)
            return
        field = f"{TAGS} [data-testid='tags-form-input-name']"
        self._type(field, name)
        self._type(f"{TAGS} [data-testid='tags-form-input-value']", value)
        self._click(lambda: self._one(f"{TAGS} [data-testid='add-tag-button']"), "Add tag")
        # The page empties its form when the server has the tag. Whoever acts on it may have taken it away before the
        # page shows it (`retrain`).
        self._wait(lambda: name in self.tags() or not self._one(field).get_attribute("value"), f"tag {name} taken")

    def tags(self) -> dict[str, str]:
        """Tags that the open page shows."""
        self._open_tags()
        found = {}
        for row in self._tag_rows():
            try:
                cells = [cell.text.strip() for cell in row.find_elements(By.CSS_SELECTOR, "td")]
            except StaleElementReferenceException:
                return {}  # drawn anew in this moment
            if len(cells) == 3:
                found[cells[0]] = cells[1]
        return found

    def wait_for_tag(self, name: str, value: str, seconds: float = 60) -> None:
        """Until the page, loaded anew, shows the tag so."""
        self.wait_until(lambda: self.tags().get(name) == value, f"tag {name} = {value}", seconds)

    def wait_until(self, shows: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Until the page, loaded anew again and again, meets a condition.

        Loading costs the browser and the server a second of computing: what somebody else does, wait for elsewhere.
        """

        def looks():
            self._driver.refresh()
            self._wait(self._aliases_button, "page")
            return shows()

        self._wait(looks, what, seconds, RELOAD_S)

    def screenshot(self, name: str) -> Path:
        """Save what the page shows as NAME.png; its path."""
        path = self._screenshots / f"{name}.png"
        self._driver.save_screenshot(str(path))
        return path

    # --- parts of the page

    def _aliases_item(self):
        return next(item for item in self._find("[data-testid='descriptions-item']") if item.text.startswith("Aliases"))

    def _aliases_button(self):
        try:
            return self._aliases_item().find_element(By.CSS_SELECTOR, "button")
        except StopIteration:
            return None

    def _open_tags(self) -> None:
        self._wait(lambda: self._one(f"{TAGS} [role=button]"), "Tags")
        if self._one(f"{TAGS} [role=button]").get_attribute("aria-expanded") != "true":
            self._click(lambda: self._one(f"{TAGS} [role=button]"), "Tags")
        self._wait(lambda: self._one(f"{TAGS} [data-testid='add-tag-button']"), "table of tags")

    def _tag_rows(self) -> list:
        return self._find(f"{TAGS} tbody tr:not([aria-hidden])")

    def _change_tag(self, name: str, value: str) -> None:
        row = f"{TAGS} tr[data-row-key='{name}']"
        self._click(lambda: self._one(f"{row} [data-testid='editable-table-button-edit']"), f"edit tag {name}")
        box = self._wait(lambda: self._one(f"{row} input, {row} textarea"), f"value of tag {name}")
        box.send_keys(Keys.CONTROL, "a")
        box.send_keys(value)
        self._click(lambda: self._one(f"{row} [data-testid='editable-table-button-save']"), f"save tag {name}")
        self._wait(lambda: self.tags().get(name) == value, f"tag {name} = {value} shown")

    # --- waiting

    def _find(self, selector: str) -> list:
        return self._driver.find_elements(By.CSS_SELECTOR, selector)

    def _one(self, selector: str, text: str = ""):
        """The first visible element that holds the text."""
        for element in self._find(selector):
            if element.is_displayed() and text in element.text:
                return element
        return None

    def _click(self, find: Callable, what: str) -> None:
        def click():
            element = find()
            if element is None or not element.is_enabled():
                return False
            self.clicked_at = time.time()
            element.click()
            return True

        self._wait(click, what)

    def _type(self, selector: str, text: str) -> None:
        box = self._wait(lambda: self._one(selector), f"field {selector}")
        box.send_keys(text)
        self._wait(lambda: box.get_attribute("value") == text, f"{text} typed")

    def _wait(self, condition: Callable, what: str, seconds: float = PATIENCE_S, pause_s: float = LOOK_S):
        deadline = time.monotonic() + seconds
        while True:
            try:
                if value := condition():
                    return value
            except NOT_YET:
                pass
            if time.monotonic() > deadline:
                shot = self.screenshot("error")
                raise PageError(f"MLflow's page: {what}: not within {seconds:g} s; see {shot}")
            time.sleep(pause_s)
