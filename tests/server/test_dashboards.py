"""The dashboard of Grafana and the alert rules of Prometheus: each metric and label that they name is in the output."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

import kg as package
from kg.access.actors import SCOPES, Actor
from kg.integrity.backup_schedule import BackupState
from kg.integrity.replication import ReplicaState
from kg.knowledge_graph import KnowledgeGraph
from kg.observability import observe_connector
from kg.server.app import create_app
from tests.accounts import SentBy
from tests.waiting import until

DEPLOY = Path(package.__file__).parent / "deploy"
ALERTS = DEPLOY / "alerts.yml"
RULES = {rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]}
DASHBOARD = json.loads((DEPLOY / "grafana.json").read_text())

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\$?[A-Za-z_:][\w:]*|\d[\w.]*|[{}()\[\],]|=~|!~|!=|[=<>+*/-]+')
KEYWORDS = {"by", "without", "on", "ignoring", "or", "and", "unless", "offset", "group_left", "group_right", "bool"}
SCRAPED = {"job", "instance", "le"}
"""The labels that Prometheus adds, and that of the buckets of a histogram."""


def selectors(query: str) -> tuple[dict[str, set[str]], set[str]]:
    """The metrics that a query of PromQL names, each with its labels, and the labels that it groups by."""
    tokens = TOKEN.findall(query.replace("$__rate_interval", "5m"))
    named: dict[str, set[str]] = {}
    grouped: set[str] = set()
    place = 0
    while place < len(tokens):
        token, after = tokens[place], tokens[place + 1] if place + 1 < len(tokens) else ""
        if token in ("by", "without", "on", "ignoring"):
            end = tokens.index(")", place)
            grouped |= {each for each in tokens[place + 2 : end] if each != ","}
            place = end
        elif token == "offset":
            place += 1
        elif token == "[":
            place = tokens.index("]", place)
        elif re.fullmatch(r"[A-Za-z_:][\w:]*", token) and after not in ("(", "by", "without") and token not in KEYWORDS:
            labels = named.setdefault(token, set())
            if after == "{":
                end = tokens.index("}", place)
                inside = tokens[place + 2 : end]
                labels |= {label for label, sign in itertools.pairwise(inside) if re.fullmatch("=~?|!=|!~", sign)}
                place = end
        place += 1
    return named, grouped


def queries() -> Iterator[tuple[str, str]]:
    """Each query with the name of its panel or alert."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            metric = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            assert metric is not None
            yield variable["name"], f"sum by ({metric[2]}) ({metric[1]})"
    for name, rule in RULES.items():
        yield name, rule["expr"]


@pytest.fixture(scope="module")
def output(kg: KnowledgeGraph) -> Mapping[str, set[str]]:
    """The names in the output of a server that has done something of each kind, with their labels."""
    confirmed = datetime.now(UTC)
    states = BackupState(Path("/x"), confirmed=confirmed), ReplicaState("http://x", 1, 1, confirmed)
    kg = replace(kg, backup_state=lambda: states[0], replica_state=lambda: states[1])
    app = create_app(kg, accounts=SentBy(actor=Actor("ann", frozenset(SCOPES))))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        client.post("/tools/search", json={"query": "solar"})
        client.get("/sparql", params={"query": "ASK {}"})
        client.post("/tools/validate", json={"turtle": "<urn:a> a <urn:b> ."})
        with kg.loads.recording("climate", [], lambda *_: None), observe_connector("wikidata", "search"):
            pass
        found: dict[str, set[str]] = defaultdict(set)

        def read() -> bool:
            for family in text_string_to_metric_families(client.get("/metrics").text):
                for sample in family.samples:
                    found[sample.name] |= set(sample.labels)
            return "quadcite_derivations_due" in found

        until(read)
    return found


@pytest.mark.parametrize(("name", "query"), list(queries()))
def test_every_metric_and_label_of_a_query_is_in_the_output(
    output: Mapping[str, set[str]], name: str, query: str
) -> None:
    named, grouped = selectors(query)
    assert named, query
    # A wait is measured only of calls that waited, of which these are none.
    known = {**output, "quadcite_call_wait_seconds_bucket": {"kind", "le"}}
    for metric, labels in named.items():
        assert metric in known, (name, metric)
        assert labels <= known[metric] | SCRAPED, (name, metric)
    assert grouped <= set().union(*(known[metric] for metric in named)) | SCRAPED, name


def test_the_extractor_reads_promql() -> None:
    query = 'topk(3, sum by (a, le) (rate(m_total{b="x{", c!~"y"}[5m]))) / on (d) n > 0.5 or o unless o offset 1h'
    assert selectors(query) == ({"m_total": {"b", "c"}, "n": set(), "o": set()}, {"a", "le", "d"})


def test_panels_have_ids_and_places_of_their_own() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


FIRING: Mapping[str, Mapping[str, str]] = {
    "QuadciteNotReady": {'quadcite_ready{instance="a"}': "0x60"},
    "QuadciteStoreRefusesWrites": {'quadcite_store_writable{instance="a"}': "0x60"},
    "QuadciteDiskFull": {
        'quadcite_disk_free_bytes{instance="a"}': "9e9x60",
        'quadcite_store_bytes{instance="a"}': "9e10x60",
    },
    "QuadciteBackupFailed": {'quadcite_backup_failures{instance="a"}': "2x70"},
    "QuadciteReplicaBehind": {'quadcite_replica_lag_seconds{instance="a"}': "0+60x60"},
    "QuadciteIndexDown": {'quadcite_index_up{instance="a"}': "0x60"},
    "QuadciteIndexBehind": {'quadcite_index_behind{instance="a"}': "1x60"},
    "QuadciteNoEmbeddings": {'quadcite_embedder_up{instance="a"}': "0x60"},
    "QuadciteVectorsPending": {'quadcite_vectors_pending{instance="a"}': "7x90"},
    "QuadciteDerivationsDue": {'quadcite_derivations_due{instance="a",derivation="mentions"}': "2x500"},
    "QuadciteErrors": {
        'quadcite_http_requests_total{instance="a",status="200"}': "0+10x60",
        'quadcite_http_requests_total{instance="a",status="503"}': "0+1x60",
    },
    "QuadciteInternalErrors": {'quadcite_tool_calls_total{instance="a",tool="t",outcome="internal"}': "_x55 1x5"},
    "QuadciteQueueLong": {
        'quadcite_query_wait_seconds_bucket{instance="a",le="5.0"}': "0x60",
        'quadcite_query_wait_seconds_bucket{instance="a",le="10.0"}': "0+5x60",
        'quadcite_query_wait_seconds_bucket{instance="a",le="+Inf"}': "0+5x60",
    },
    "QuadciteQueriesKilled": {'quadcite_query_stops_total{instance="a",reason="memory"}': "0+10x60"},
    "QuadciteOverdue": {'quadcite_held{instance="a",resource="overdue"}': "1x60"},
    "QuadciteAuthenticationFailures": {'quadcite_auth_failures_total{instance="a"}': "0+90x60"},
    "QuadciteAuditLost": {'quadcite_audit_entries_total{instance="a",written="false"}': "0x55 1x5"},
    "QuadciteLoadFailed": {
        'quadcite_loads_total{instance="a",source="climate",outcome="source_unreadable"}': "_x55 1x5"
    },
}
MINUTES = {"QuadciteBackupFailed": 65, "QuadciteDerivationsDue": 400, "QuadciteVectorsPending": 80}
"""When alerts that wait longer than an hour have to fire."""
QUIET = {
    "quadcite_ready": "1", "quadcite_store_writable": "1", "quadcite_disk_free_bytes": "9e10",
    "quadcite_store_bytes": "9e9",
    "quadcite_backup_failures": "0", "quadcite_replica_lag_seconds": "30",
    "quadcite_index_up": "1", "quadcite_index_behind": "0", "quadcite_embedder_up": "1",
    "quadcite_vectors_pending": "0",
    'quadcite_derivations_due{derivation="mentions"}': "0", 'quadcite_http_requests_total{status="503"}': "9",
    'quadcite_tool_calls_total{tool="t",outcome="internal"}': "9", 'quadcite_query_stops_total{reason="memory"}': "9",
    'quadcite_held{resource="overdue"}': "0", "quadcite_auth_failures_total": "9",
    'quadcite_audit_entries_total{written="false"}': "9",
    'quadcite_loads_total{source="climate",outcome="internal"}': "9",
}  # fmt: skip


def test_every_alert_has_a_case() -> None:
    assert set(FIRING) == set(RULES)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is a part of Prometheus (Debian: prometheus)")
def test_alerts_fire_when_they_should_and_not_at_rest(tmp_path: Path) -> None:
    tests = []
    for name, series in FIRING.items():
        at = f"{MINUTES.get(name, 58)}m"
        # The rules add labels and texts to an alert: only whether it fires is compared.
        fires = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
        tests.append(
            build_case(series, {"expr": fires, "eval_time": at, "exp_samples": [{"labels": "{}", "value": 1}]})
        )
    quiet = {name: f"{value}x600" for name, value in QUIET.items()}
    tests.append(build_case(quiet, {"expr": "ALERTS", "eval_time": "590m", "exp_samples": []}))
    file = tmp_path / "cases.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)  # noqa: S607
    assert done.returncode == 0, done.stdout + done.stderr


def build_case(series: Mapping[str, str], expected: Mapping[str, object]) -> dict[str, object]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": given, "promql_expr_test": [expected]}
