"""One server over the fixtures of all domains and hostile literals, and a browser, without which tests are skipped.

`open_page` opens pages of the server. After the test none of them may have violated the Content-Security-Policy, sent a
request to another host, raised an error in a script, or opened a dialog, which the hostile literals try.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.search.registry import MINILM
from kg.server.static import find_file
from kg.store.lock import find_address
from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, SKOS, mint
from tests.cli.running import served
from tests.conftest import load, load_once, opened, shipped

sync_api = pytest.importorskip("playwright.sync_api")

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AXE: Final = Path(__file__).parents[2] / "kg" / "server" / "assets" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS: Final = ("serious", "critical")
WIDTHS: Final = (320, 768, 1280)
BUILT: Final = pytest.mark.skipif(
    find_file("built/workbench.js") is None, reason="needs the scripts: `make assets` builds them"
)
DECREE: Final = "cpr://doc/fictional-decree-on-geothermal-exploration_d0a1"
SECTION: Final = "/id/section/us-ut-quarry-bend/17.20.030"
EVIL: Final = "\"'><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>javascript:alert(4)"
EVIL_DOCUMENT: Final = "cpr://doc/hostile"
EVIL_UNIT: Final = "cpr://doc/hostile#p=0"
EVIL_CONCEPT: Final = "cpr://concept/Q666"

WATCH: Final = """
document.addEventListener("securitypolicyviolation", (event) => report(
  `${event.effectiveDirective}: ${event.blockedURI} ${event.sourceFile || ""}:${event.lineNumber}`));
"""


def find_browser() -> str | None:
    """Find a browser that Playwright can drive."""
    return os.environ.get("QUADCITE_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)


# Not for the session: Playwright runs an event loop in this thread until it is stopped, and other tests run loops, too.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A headless browser; without one the test is skipped."""
    path = find_browser()
    if path is None:
        pytest.skip(f"needs a browser: none of {', '.join(BROWSERS)} is on the path and QUADCITE_BROWSER is not set")
    ran = subprocess.run([path, "--version"], capture_output=True, check=False, timeout=60)
    if ran.returncode != 0:
        pytest.skip(f"needs a browser: {path} does not start: {ran.stderr.decode(errors='replace')[:200]}")
    with sync_api.sync_playwright() as playwright:
        options = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu"]
        launched = playwright.chromium.launch(executable_path=path, args=[*options, "--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of the server: fixtures of all domains, and a source with hostile literals and IRIs."""
    folder = load_once(tmp_path_factory, "joined")
    graph, document = mint("graph", "src", "hostile"), NamedNode(EVIL_DOCUMENT)
    unit, concept = NamedNode(EVIL_UNIT), NamedNode(EVIL_CONCEPT)
    script = NamedNode("javascript:alert(5)")
    with opened(folder) as kg:
        load(kg, "members", [shipped("members")])
        kg.store.commit(
            {
                graph: [
                    Quad(document, RDF.type, KG.PolicyDocument, graph),
                    Quad(document, DCTERMS.title, Literal(EVIL), graph),
                    Quad(document, DCTERMS.source, script, graph),
                    Quad(document, KG.corpusType, script, graph),
                    Quad(unit, RDF.type, KG.Passage, graph),
                    Quad(unit, DCTERMS.isPartOf, document, graph),
                    Quad(unit, SCHEMA.position, Literal(0), graph),
                    Quad(unit, SCHEMA.text, Literal(EVIL), graph),
                    Quad(concept, RDF.type, SKOS.Concept, graph),
                    Quad(concept, SKOS.prefLabel, Literal(EVIL, language="en"), graph),
                    Quad(concept, SKOS.exactMatch, script, graph),
                ]
            }
        )
    return folder


@pytest.fixture(scope="package")
def address(data_dir: Path) -> Iterator[str]:
    """The address of a server over `data_dir` without an embedding model, for all tests of this folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUADCITE_MODELS_DIR", str(data_dir.with_name("no-models")))
        patch.setenv("QUADCITE_MODEL", MINILM)
        with served(data_dir):
            found = find_address(data_dir)
            assert found is not None
            yield found


@dataclass
class Visits:
    """Opens pages of a server, and collects what must not happen on them."""

    browser: Any
    address: str
    stack: ExitStack
    violations: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def open(self, path: str, *, width: int = 1280, height: int = 900, dark: bool = False, scripts: bool = True) -> Any:
        """Open `path` in a new context and return the Playwright page."""
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            base_url=self.address,
        )
        self.stack.callback(context.close)
        page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._dismiss)
        page.on("request", self._check)
        if scripts:
            page.expose_binding("report", lambda source, text: self.violations.append(text))
            page.add_init_script(WATCH)
        page.on("console", self._read)
        answer = page.goto(path)
        assert answer is not None
        return page

    def _check(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.foreign.append(request.url)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _read(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.violations.append(message.text)


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Open a page of the server: ``open_page(path, width=320, dark=True, scripts=False)``."""
    with ExitStack() as stack:
        visits = Visits(browser, address, stack)
        yield visits.open
    assert (visits.violations, visits.foreign, visits.errors, visits.dialogs) == ([], [], [], [])


def find_faults(page: Any, *, rules: Sequence[str] = ()) -> list[str]:
    """Find the serious violations of accessibility rules on a page, all or some, by axe-core; skips without it."""
    if not AXE.is_file():
        pytest.skip("needs axe-core: `make assets` installs it")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = page.evaluate("async (options) => (await axe.run(options)).violations", options)
    return [
        f"{each['id']}: {node['target']} {node.get('failureSummary', '')}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


def measure_overflow(page: Any) -> int:
    """Measure by how many pixels a page is wider than its window."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width
