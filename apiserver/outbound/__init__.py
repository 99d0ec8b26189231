"""Calls from the API server to servers that it was told to ask: review webhooks and OpenID issuers; and where a Service is
(``service_endpoints``), for admission webhooks, conversions and extension servers.

Promised: every call has a deadline, every answer a bound on its bytes, no redirect is followed, the environment's proxies are not used, and
neither credentials nor bodies reach a log. ``aiohttp`` is loaded with the first call. The caller closes what it opened.
"""
