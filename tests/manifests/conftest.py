from tests.apiserver.conftest import server_config

__all__ = ["server_config"]
