"""The Kubernetes versions that can be served: those whose published schemas come with ``kubernetes-validate``."""

KUBERNETES_VERSIONS = tuple(f"1.{minor}" for minor in range(25, 38))
