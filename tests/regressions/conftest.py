from tests.apiserver.conftest import api, server_config

__all__ = ["api", "server_config"]
