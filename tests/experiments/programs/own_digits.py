"""MNIST with an output of a user's own, and what only `data` knows; trained as a file."""

from __future__ import annotations

from typing import Any

from experiments import run
from experiments.mnist import MNIST


class OwnDigits(MNIST):
    def data(self) -> Any:
        print("reading data")
        found = super().data()
        self.classes = int(found.train["labels"].max()) + 1
        return found

    def predict(self, batch: Any) -> Any:
        found = super().predict(batch)["class"]
        return {"digit": found, "from_the_end": self.classes - 1 - found}


if __name__ == "__main__":
    run(OwnDigits)
