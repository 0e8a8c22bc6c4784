"""What ends Kafka's transactions that hang: platform/kafka/transactions.py."""
import time

from oal_local import kafka, pki
from oal_local.paths import KAFKA, State, python
from oal_local.settings import Settings

NAME = "transactions"
STALE_S = 120  # several rounds


def _alive(state: State):
    return state.run / "transactions.alive"


def prepare(state: State, settings: Settings) -> None:
    _alive(state).unlink(missing_ok=True)


def command(state: State, settings: Settings) -> list[str]:
    return [python(), str(KAFKA / "transactions.py"), kafka.bootstrap(settings), str(state.pki), "--alive",
            str(_alive(state))]


def files(state: State, settings: Settings) -> list:
    return [KAFKA / "transactions.py", KAFKA / "transaction_requests.py", KAFKA / "broker_requests.py",
            *pki.files(state, NAME)]


def ready(state: State, settings: Settings) -> bool:
    """A round was made not long ago."""
    try:
        return time.time() - _alive(state).stat().st_mtime < STALE_S
    except OSError:
        return False
