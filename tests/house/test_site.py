"""The site of `make docs`, built strictly: `pytest -m site`."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.browser import CHROMIUM, Browser

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="no mkdocs-material"),
]


PAGES = {
    "commands": "isoform view",
    "ops": "graph.conv",
    "passes": "fold-batch-norm",
    "schemas": "levels",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, which was built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder


def test_the_site_holds_every_page(site: Path) -> None:
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    docs = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert {str(path.with_suffix(".html")) for path in docs} - pages == {"README.html"}


@pytest.mark.parametrize("name", PAGES)
def test_reference_pages_are_made_from_the_code(name: str, site: Path) -> None:
    assert PAGES[name] in (site / "reference" / f"{name}.html").read_text()


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pattern = re.compile(r'<(?:script|img|link rel="stylesheet")[^>]*"(https?:[^"]*)"')
    for page in site.rglob("*.html"):
        assert pattern.findall(page.read_text()) == [], page


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian: chromium)")
def test_the_search_works_without_a_server_or_a_network(site: Path, tmp_path: Path) -> None:
    with Browser(tmp_path) as browser:
        browser.open(site / "start.html", ready="typeof __md_get === 'function'")
        browser.run(
            "document.querySelector('[data-md-toggle=search]').click(),"
            "field = document.querySelector('[data-md-component=search-query]'),"
            "field.focus(), field.value = 'saturation',"
            "field.dispatchEvent(new Event('input', { bubbles: true })),"
            "field.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true })), 0"
        )
        found = "document.querySelectorAll('.md-search-result__link[href*=saturation]').length"
        browser.wait(f"{found} > 0")
