"""A bounded memory of answers that never change, shared by the threads of a process."""

import threading
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """The newest ``most`` answers; the oldest make room.

    Only for pure functions of the key: two threads may compute the same answer, and either may be kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: dict[K, V] = {}
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The answer, if it is still known."""
        return self._answers.get(key)

    def put(self, key: K, answer: V) -> V:
        """Remember an answer and give it back."""
        self.update({key: answer})
        return answer

    def update(self, answers: Mapping[K, V]) -> None:
        """Remember several answers."""
        with self._lock:
            while self._answers and len(self._answers) + len(answers) > self._most:
                del self._answers[next(iter(self._answers))]
            self._answers.update(answers)

    def clear(self) -> None:
        """Forget everything: for measuring first times."""
        with self._lock:
            self._answers.clear()
