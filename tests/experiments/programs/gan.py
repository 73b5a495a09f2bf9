"""A generative adversarial network on a ring of points: two losses, each with its own variables."""

import json
from dataclasses import dataclass

import numpy as np

from compat import tf, tf1
from experiments import Experiment, Settings, Update, run, setting


class Gan(Experiment):
    """Learns a ring around (2, 1), and counts its updates in the moments of the optimizers."""

    monitor, mode = "validation/distance", "min"

    @dataclass(frozen=True)
    class Settings(Settings):
        """Settings of this experiment."""

        critic_steps: int = setting(5, "Updates of the critic for one of the generator.")
        names: str = setting("both", "What optimizer() returns.")
        learning_rate: float = 0.002
        epochs: int = 10

    def data(self):
        random = np.random.RandomState(0)
        angle = random.rand(6000) * 2 * np.pi
        ring = np.stack([2 + np.cos(angle), 1 + np.sin(angle)], 1).astype("float32")
        return {"train": {"x": ring[:5000]}, "validation": {"x": ring[5000:]}}

    def build(self):
        layers, dense = tf.keras.layers, tf.keras.layers.Dense
        self.generator = tf.keras.Sequential([layers.Input([4]), dense(16, "relu"), dense(2)])
        self.critic = tf.keras.Sequential([layers.Input([2]), dense(16, "relu"), dense(1)])

    def loss(self, batch, training):
        real, entropy = batch["x"], tf.nn.sigmoid_cross_entropy_with_logits
        fake = self.generator(tf1.random_normal([tf.shape(real)[0], 4]))
        on_real, on_fake = self.critic(real), self.critic(fake)
        caught = entropy(labels=tf.ones_like(on_real), logits=on_real)
        caught += entropy(labels=tf.zeros_like(on_fake), logits=on_fake)
        fooled = entropy(labels=tf.ones_like(on_fake), logits=on_fake)
        distance = tf.norm(tf.reduce_mean(fake, 0) - tf.reduce_mean(real, 0))
        losses = {"generator": tf.reduce_mean(fooled), "critic": tf.reduce_mean(caught)}
        return losses, {"distance": distance}

    def optimizer(self, step):
        adam, every = tf1.train.AdamOptimizer, self.settings.critic_steps
        self.adams = [adam(self.learning_rate(step), beta1=0.5) for _ in range(2)]
        if self.settings.names == "one":
            return self.adams[0]
        if self.settings.names == "twice":
            return {
                "generator": (self.adams[0], self.critic),
                "critic": (self.adams[1], self.critic),
            }
        return {
            "generator": Update(self.adams[0], self.generator, every=every),
            "critic": Update(self.adams[1], self.critic),
        }

    def on_end(self, run, result):
        # Powers of 0.999, one for each of its updates.
        powers = [adam._get_beta_accumulators()[1] for adam in self.adams]
        found = run.session.read(dict(zip(["generator", "critic"], powers)))
        counts = {name: round(float(np.log(v) / np.log(0.999))) - 1 for name, v in found.items()}
        distance = result.metrics["validation/distance"]
        print(json.dumps({"step": result.step, "distance": distance, **counts}))


if __name__ == "__main__":
    run(Gan)
