"""The modern runtime: `ParameterServerStrategy` with `ClusterCoordinator`."""
