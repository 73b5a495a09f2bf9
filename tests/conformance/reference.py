"""Thirty updates of the network of 2016, written out: what TensorFlow has to compute.

A program that imports nothing of ours, so that it cannot share a mistake with it. It prints the
cost before each update, by optimizer, as one line of JSON.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

STEPS = 30
BATCH = 20
EXAMPLES = 100
LEARNING_RATES = {"sgd": 0.1, "momentum": 0.02, "adam": 0.001}


def data() -> Any:
    """Returns images uint8 `[100, 28, 28]`, a tenth of each lit, and labels int32 `[100]`."""
    random = np.random.RandomState(0)
    images = random.randint(0, 256, [EXAMPLES, 28, 28])
    images *= random.randint(0, 10, images.shape) == 0
    return images.astype(np.uint8), random.randint(0, 10, EXAMPLES).astype(np.int32)


def weights(seed: int = 1) -> dict[str, np.ndarray]:
    """Returns the first weights: N(0, 1) in float32, the hidden layer's first, and biases of 0."""
    random = np.random.RandomState(seed)
    hidden = random.standard_normal((784, 100)).astype(np.float32)
    output = random.standard_normal((100, 10)).astype(np.float32)
    return {"W1": hidden, "W2": output, "b1": np.zeros(100), "b2": np.zeros(10)}


def backprop(w: dict[str, np.ndarray], x: np.ndarray, labels: np.ndarray) -> Any:
    """Returns the cost, in nats per example, and its gradient by each weight."""
    hidden = 1 / (1 + np.exp(-(x @ w["W1"] + w["b1"])))
    logits = hidden @ w["W2"] + w["b2"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_softmax = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    cost = -log_softmax[np.arange(len(labels)), labels].mean()
    d_logits = (np.exp(log_softmax) - np.eye(10)[labels]) / len(labels)
    d_hidden = d_logits @ w["W2"].T * hidden * (1 - hidden)
    return cost, {
        "W1": x.T @ d_hidden,
        "b1": d_hidden.sum(axis=0),
        "W2": hidden.T @ d_logits,
        "b2": d_logits.sum(axis=0),
    }


def train(optimizer: str) -> list[float]:
    """Returns the cost before each update."""
    images, labels = data()
    pixels = images.reshape([-1, 784]) / 255
    w = {name: value.astype(np.float64) for name, value in weights().items()}
    rate = LEARNING_RATES[optimizer]
    m = {name: np.zeros_like(value) for name, value in w.items()}
    v = {name: np.zeros_like(value) for name, value in w.items()}
    costs = []
    for step in range(STEPS):
        batch = np.arange(step * BATCH, (step + 1) * BATCH) % EXAMPLES
        cost, gradient = backprop(w, pixels[batch], labels[batch])
        costs.append(float(cost))
        for name, g in gradient.items():
            if optimizer == "sgd":
                w[name] -= rate * g
            elif optimizer == "momentum":
                m[name] = 0.9 * m[name] + g
                w[name] -= rate * m[name]
            else:  # Kingma and Ba, Adam, 2015, the faster form at the end of section 2.
                m[name] = 0.9 * m[name] + 0.1 * g
                v[name] = 0.999 * v[name] + 0.001 * g**2
                corrected = rate * np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
                w[name] -= corrected * m[name] / (np.sqrt(v[name]) + 1e-8)
    return costs


if __name__ == "__main__":
    print(json.dumps({optimizer: train(optimizer) for optimizer in LEARNING_RATES}))
