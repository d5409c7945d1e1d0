"""Estimates from many threads at once: shared memories neither fail nor change an answer."""

from concurrent.futures import ThreadPoolExecutor

from app.estimates.remembered import Remembered
from app.foundation.canonical import canonical_bytes
from tests.estimates.conftest import Answer, body, training


def test_the_same_request_gives_the_same_bytes_from_every_thread(answer: Answer) -> None:
    supply = {"accelerators": ["h100-sxm5-80"]}
    bodies = [body(training(1e10 + n % 3), supply=supply) for n in range(9)]
    with ThreadPoolExecutor(max_workers=4) as threads:
        answers = [canonical_bytes(e.content) for e in threads.map(answer, bodies)]
    for n, content in enumerate(answers):
        assert content == answers[n % 3]


def test_a_memory_keeps_the_newest_and_forgets_the_oldest() -> None:
    memory: Remembered[int, str] = Remembered(3)
    for n in range(5):
        assert memory.put(n, str(n)) == str(n)
    assert [memory.get(n) for n in range(5)] == [None, None, "2", "3", "4"]


def test_a_memory_survives_many_writers() -> None:
    memory: Remembered[int, int] = Remembered(50)
    with ThreadPoolExecutor(max_workers=8) as threads:
        list(threads.map(lambda n: memory.put(n, n), range(5_000)))
    assert sum(memory.get(n) == n for n in range(5_000)) == 50
