"""How a step updates variables: optimizers, and which of them updates what."""
