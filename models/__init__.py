"""Networks, each with a single definition for both runtimes.

    model = models.MLP(seed=1)
    logits = model(images)  # float32 `[batch, 784]` to `[batch, 10]`
    cost = models.cross_entropy(logits, labels)

`models.mlp_tf1` holds the same network as a TensorFlow 1.x function.
"""

from models.actor_critic import ActorCritic
from models.cnn import CNN
from models.losses import accuracy, cross_entropy
from models.mlp import MLP
from models.mlp_tf1 import model_fn
from models.resnet import ResNet

__all__ = ["ActorCritic", "CNN", "MLP", "ResNet", "accuracy", "cross_entropy", "model_fn"]
