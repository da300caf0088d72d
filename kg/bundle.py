"""The files that ship inside the wheel: ontology, shapes, fixtures, chapters, and files for deployments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

_PACKAGE = Path(__file__).parent

CHAPTERS: Final = (
    "getting-started",
    "climate",
    "parliament",
    "zoning",
    "files",
    "concepts",
    "wikidata",
    "places",
    "citations",
    "explorer",
    "clients",
    "tools",
    "sparql",
    "validation",
    "cli",
    "settings",
    "errors",
    "operations",
    "access",
    "deployment",
    "scaling",
    "conformance",
    "architecture",
    "contributing",
)
"""The topics of the documentation, in reading order."""

FIGURES: Final = ("scaling.svg",)
"""The figures in the chapters."""


DEPLOYMENTS: Final[Mapping[str, tuple[str, str]]] = {
    "systemd": ("quadcite.service", "a service of systemd, confined"),
    "caddy": ("Caddyfile", "Caddy as a proxy with TLS"),
    "nginx": ("nginx.conf", "nginx as a proxy with TLS"),
    "kubernetes": ("kubernetes.yaml", "a StatefulSet with its volume, probes and network policy"),
    "grafana": ("grafana.json", "a dashboard of Grafana, to import"),
    "alerts": ("alerts.yml", "alert rules of Prometheus"),
    "cloud-run": ("cloud-run.yaml", "a read-only service on Cloud Run"),
}
"""The file and the purpose of each deployment, by name."""


def folder(name: Literal["ontology", "shapes", "fixtures"]) -> Path:
    """Return the folder `name`: inside an installed wheel, or next to the packages in a checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def chapter(topic: str) -> str:
    """Return one chapter of the documentation as Markdown. Raises KeyError for an unknown topic."""
    if topic not in CHAPTERS:
        raise KeyError(topic)
    return (_PACKAGE / "docs" / f"{topic}.md").read_text(encoding="utf-8")


def deployment(name: str) -> str:
    """Return the file of a deployment. Raises KeyError for an unknown name."""
    return (_PACKAGE / "deploy" / DEPLOYMENTS[name][0]).read_text(encoding="utf-8")


def figure(name: str) -> str:
    """Return a figure of the chapters as SVG. Raises KeyError for an unknown name."""
    if name not in FIGURES:
        raise KeyError(name)
    return (_PACKAGE / "docs" / name).read_text(encoding="utf-8")


def chapter_title(topic: str) -> str:
    """Return the title of a chapter: the text of its first line. Raises KeyError for an unknown topic."""
    return chapter(topic).partition("\n")[0].removeprefix("# ")
