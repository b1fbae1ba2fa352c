"""The container files are valid, and keep what docs/deploy.md promises."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from bench.speed.deployment_sizes import GIB, children_within, large_table, table

ROOT = Path(__file__).resolve().parents[2]


def read(*path):
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


COMPOSE, DOCKERFILE, EXAMPLE = read("docker-compose.yml"), read("hayhooks", "Dockerfile"), read(".env.example")
PROJECT = tomllib.loads(read("pyproject.toml"))
WITHOUT_COMMENTS = re.sub(r"(?m)^ *#.*\n", "", COMPOSE)
SERVICES = yaml.safe_load(COMPOSE)["services"]
ONE_OFF = {"init", "backups"}
WRITABLE_ROOT = {"elasticsearch"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_confined_and_has_a_health_check_if_it_stays(name):
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] > 0
    limits = service["deploy"]["resources"]["limits"]
    # More processors than a machine has are refused by Docker.
    assert limits.keys() == {"memory"}
    assert service.get("read_only", False) is (name not in WRITABLE_ROOT)
    assert "privileged" not in service
    assert name in ONE_OFF or service["healthcheck"]["test"]


def test_no_password_has_a_default_and_each_is_checked_where_it_is_used():
    used = re.findall(r"(?<!\$)\$\{(\w*(?:PASSWORD|KEY|KEYS)):-([^}]*)\}", WITHOUT_COMMENTS)
    assert {name for name, _ in used} >= {"ELASTIC_PASSWORD", "QDRANT_API_KEY"}
    assert {default for _, default in used} == {""}
    for service, name in (
        ("elasticsearch", "ELASTIC_PASSWORD"),
        ("prometheus", "METRICS_KEY"),
        ("grafana", "GF_SECURITY_ADMIN_PASSWORD"),
        ("qdrant", "QDRANT__SERVICE__API_KEY"),
    ):
        assert f"$${{{name}:?" in " ".join(SERVICES[service]["command"])


def test_ports_are_published_on_loopback_unless_said_otherwise():
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 3
    assert "ports" not in SERVICES["prometheus"]
    assert all(port.startswith("${SHIGUAN_BIND:-127.0.0.1}:") for port in ports)
    assert "ports" not in SERVICES["elasticsearch"]
    assert "ports" not in SERVICES["qdrant"]


def test_the_image_is_not_root_and_has_the_projects_torch_only_where_models_need_it():
    extras = PROJECT["project"]["optional-dependencies"]
    version = next(name.split("==")[1] for name in extras["transformers"] if name.startswith("torch=="))
    assert f"ARG TORCH_VERSION={version}\n" in DOCKERFILE
    assert "ARG EXTRAS=serve\n" in DOCKERFILE
    assert "args" not in SERVICES["api"]["build"]
    for name in ("api-scale", "init"):
        wanted = SERVICES[name]["build"]["args"]["EXTRAS"].split(",")
        assert {"serve", "elasticsearch", "qdrant", "transformers"} == set(wanted) <= set(extras)
        assert SERVICES[name]["image"] != SERVICES["api"]["image"]
    assert DOCKERFILE.count("\nFROM ") == 2
    # Without byte code a first start takes minutes.
    assert all(words in DOCKERFILE for words in ("\nUSER 10001:10001\n", "\nHEALTHCHECK ", "-m compileall "))


def test_the_image_gets_every_file_that_the_package_is_built_from():
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    wanted = {*(package.split("/")[0] for package in wheel["packages"]), *wheel["force-include"], "pyproject.toml"}
    wanted |= {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]}
    for name in wanted:
        assert re.search(rf"^COPY .*\b{re.escape(name)}\b", DOCKERFILE, re.MULTILINE), f"{name} is not copied"
        assert f"!{name}\n" in read(".dockerignore"), f"{name} is ignored"


def test_the_sizes_in_the_documentation_are_those_of_the_script():
    text = read("docs", "deploy.md")
    assert text.split("<!-- sizes -->\n")[1].split("\n<!-- end of sizes -->")[0] == table()
    text = read("bench", "speed", "README.md")
    assert text.split("<!-- large sizes -->\n")[1].split("\n<!-- end of large sizes -->")[0] == large_table()


def test_what_fits_the_limits_is_what_the_documentation_says():
    assert {SERVICES[name]["deploy"]["resources"]["limits"]["memory"] for name in ("elasticsearch", "qdrant")} == {"4G"}
    assert f"fit {children_within(4 * GIB) / 1e6:.1f} million children" in read("docs", "deploy.md")


def test_encryption_is_laid_over_services_that_there_are():
    over = yaml.safe_load(read("docker", "tls.yml"))["services"]
    assert set(over) < set(SERVICES)
    assert all(url.startswith("https://") for k, url in over["init"]["environment"].items() if k.endswith("_URL"))


def test_every_variable_of_the_compose_file_is_documented():
    for name in set(re.findall(r"(?<!\$)\$\{(\w+)", WITHOUT_COMMENTS)):
        assert re.search(rf"^# {name}=", EXAMPLE, re.MULTILINE), f"{name} is not in .env.example"


def test_the_servers_get_every_variable_that_is_documented_but_the_places_of_the_image():
    documented = set(re.findall(r"(?m)^# (\w+)=", EXAMPLE.split("# ---- docker compose only ----")[0]))
    documented |= {"SHIGUAN_ALLOWED_TYPES"}
    image = set(re.findall(r"(?m)^    (?:ENV )?(\w+)=", DOCKERFILE))
    assert {"SHIGUAN_DATA_DIR", "HF_HOME", "SHIGUAN_CACHE_DIR"} <= image
    cluster = {name for name in documented if "ELASTICSEARCH" in name or "QDRANT" in name} | {"SHIGUAN_CA_FILE"}
    expected = documented - image - {"SHIGUAN_PUBLIC_DATA"}  # which tests alone read
    assert SERVICES["api"]["environment"].keys() == expected - cluster
    for name in ("api-scale", "init"):
        assert SERVICES[name]["environment"].keys() == expected
    # A key without a value takes what .env has, and stays unset where that has none.
    assert SERVICES["api"]["environment"]["SHIGUAN_RECEIPT_DAYS"] is None
