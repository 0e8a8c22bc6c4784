"""Jolokia's agent in a JVM: its figures over HTTP, for Telegraf. It asks for a password and answers on loopback."""
from pathlib import Path

from oal_local import classdata, distribution, passwords
from oal_local.paths import REPO, State, write_private
from oal_local.settings import Settings

ACCESS = REPO / "observe" / "telegraf" / "jolokia" / "access.xml"
USER = "telegraf"
SERVICES = ("kafka", "jobmanager", "taskmanager")


def url(settings: Settings, service: str) -> str:
    return f"http://127.0.0.1:{settings.ports[f'jolokia_{service}']}"


def config_file(state: State, service: str) -> Path:
    return state.run / f"jolokia-{service}.properties"


def render(state: State, settings: Settings) -> None:
    """A file for each, because a password in an agent's options would be visible in the process list."""
    password = passwords.token_file(state, "jolokia.password").read_text().strip()
    for service in SERVICES:
        values = {
            "host": "127.0.0.1", "port": settings.ports[f"jolokia_{service}"], "agentContext": "/jolokia", "user": USER,
            "password": password, "policyLocation": ACCESS.as_uri(), "discoveryEnabled": "false",
            "disableDetectors": "true", "executor": "fixed", "threadNr": 1
        }
        write_private(config_file(state, service), "".join(f"{key}={value}\n" for key, value in values.items()))


def options(state: State, service: str) -> list[str]:
    """For the JVM of a service. Class-data archives are recorded without the agent, which they would refuse."""
    if classdata.recording:
        return []
    return [f"-javaagent:{distribution.agent(classdata.DISTRIBUTION[service])}=config={config_file(state, service)}"]
