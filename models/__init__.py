"""Networks, each with a single definition for both runtimes.

    model = models.MLP(seed=1)
    logits = model(images)  # float32 `[batch, 784]` to `[batch, 10]`
    cost = models.cross_entropy(logits, labels)

`models.mlp_tf1` holds the same network as a TensorFlow 1.x function, as `wide_deep` and `dlrm` are;
`models.embeddings` has the tables that these two look up.
"""

from typing import Any

from models.actor_critic import ActorCritic
from models.cnn import CNN
from models.dlrm import dlrm
from models.losses import accuracy, cross_entropy
from models.mlp import MLP
from models.mlp_tf1 import model_fn
from models.perceptron import perceptron
from models.resnet import ResNet
from models.wide_deep import wide_deep

__all__ = [
    "ActorCritic",
    "CNN",
    "MLP",
    "ResNet",
    "accuracy",
    "cross_entropy",
    "dlrm",
    "image_classifier",
    "model_fn",
    "perceptron",
    "wide_deep",
]


def image_classifier(name: str, seed: int, initial: str = "scaled") -> Any:
    """Returns the network "mlp", "cnn" or "resnet"; `initial` is of the first alone."""
    if name == "mlp":
        return MLP(seed, initial)
    return CNN(seed) if name == "cnn" else ResNet(seed)
