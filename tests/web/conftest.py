"""A headless browser; tests are skipped where there is none, or no Playwright to drive it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: make test-web installs it")
    own = os.environ.get("NNREWRITE_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_api.sync_playwright() as playwright:
        if own is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no browser: install Chromium, or name one in NNREWRITE_BROWSER")
        found = playwright.chromium.launch(executable_path=own, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def load(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open pages; the test fails for whatever a page logs, raises or asks the network for."""
    told: list[str] = []
    contexts: list[Any] = []

    def open_page(path: Path, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: told.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: told.append(f"{error}"))
        page.on("dialog", lambda dialog: told.append(f"dialog {dialog.message}") or dialog.dismiss())
        page.on("request", lambda sent: None if sent.url.startswith("file:") else told.append(f"request {sent.url}"))
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("body[data-ready]", timeout=20_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not told
