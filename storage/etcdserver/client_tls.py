"""TLS of the client port: HTTP/2 and HTTP/1.1 by ALPN, a certificate of each client, files that may change while it serves."""

from __future__ import annotations

import ssl

from storage.tls import TlsFiles, mutual


def server_context(files: TlsFiles, *, client_cert_auth: bool) -> ssl.SSLContext:
    """A context for the listener, which takes what the files hold at each handshake. With ``client_cert_auth`` a client must show a
    certificate that ``files.trusted_ca`` signed. Raises OSError, ssl.SSLError for unusable files."""
    reloaded = mutual(files, purpose="client port")

    def current() -> ssl.SSLContext:
        context = reloaded.current().server
        if context.sni_callback is None:
            context.set_alpn_protocols(["h2", "http/1.1"])
            context.verify_mode = ssl.CERT_REQUIRED if client_cert_auth else ssl.CERT_NONE
            context.sni_callback = renew
        return context

    def renew(handshake: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Called in each handshake, also by clients that name no server."""
        if (newest := current()) is not context:
            handshake.context = newest

    return current()
