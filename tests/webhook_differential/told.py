"""Answers and reviews in one form: what differs from run to run is replaced by a word."""

from __future__ import annotations

import re
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_PORT = re.compile(r"127\.0\.0\.1:\d+")
_TIMEOUT = re.compile(r"\?timeout=\d+s")
_VERSION = re.compile(r"resourceVersion=\d\d*|resourceVersion: \d+")
_SOCKET = re.compile(r"read tcp \S+->\S+")


def told(value: Any) -> Any:
    """``value`` without uids, times, versions and addresses."""
    if isinstance(value, dict):
        return {key: _said(key, below) for key, below in value.items() if below is not None}
    if isinstance(value, list):
        return [told(one) for one in value]
    if isinstance(value, str):
        return _text(value)
    return value


def _said(key: str, value: Any) -> Any:
    if key == "resourceVersion" and isinstance(value, str):
        return "<version>"
    if key == "managedFields" and isinstance(value, list):
        ordered = sorted(value, key=lambda one: (one.get("operation", ""), one.get("manager", ""), one.get("apiVersion", "")))
        return [told(one) for one in ordered]
    return told(value)


def _text(text: str) -> str:
    text = _UID.sub("<uid>", text)
    text = _TIME.sub("<time>", text)
    text = _PORT.sub("<webhook>", text)
    text = _VERSION.sub("resourceVersion=<version>", text)
    text = _SOCKET.sub("read tcp <sockets>", text)
    return _TIMEOUT.sub("", text)
