"""How a step updates variables: learning rate, gradients, optimizers and their variables."""
