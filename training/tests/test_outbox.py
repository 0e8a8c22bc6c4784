"""What the outbox does with a broker's answers."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException
from oal_training.online.outbox import REFUSED_S, Fenced, Outbox


class Answers:
    """In the place of producers: each new one gives the next answer to init_transactions."""

    def __init__(self, *answers: KafkaError | None):
        self.answers, self.made = list(answers), 0

    def __call__(self, _options: dict) -> Answers:
        self.made += 1
        return self

    def init_transactions(self, _timeout_s: float) -> None:
        if answer := self.answers.pop(0):
            raise KafkaException(answer)


def refused() -> KafkaError:
    return KafkaError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "no right", fatal=True)


def test_a_start_waits_for_the_right_that_an_install_grants_meanwhile():
    broker, paused, said = Answers(refused(), refused(), None), [], []
    assert Outbox({}, "trainer-0", lambda: True, said.append, broker, paused.append).open()
    assert broker.made == 3, "a producer that had a fatal error is of no more use"
    assert paused == [REFUSED_S, REFUSED_S] and len(said) == 2


def test_a_start_that_waits_for_its_right_can_be_stopped():
    broker = Answers(refused())
    assert not Outbox({}, "trainer-0", lambda: False, print, broker, lambda _: None).open()
    assert broker.made == 1


def test_a_fenced_producer_ends():
    broker = Answers(KafkaError(KafkaError._FENCED, "another has it", fatal=True))
    with pytest.raises(Fenced):
        Outbox({}, "trainer-0", lambda: True, print, broker, lambda _: None).open()
