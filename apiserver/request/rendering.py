"""An object as bytes of a media type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from apiserver.request.negotiation import PROTOBUF, YAML, Negotiated

_dumper: Any = None


def render(negotiated: Negotiated, obj: Mapping[str, Any]) -> bytes:
    """``obj``, which says its kind and apiVersion, in the negotiated media type. Raises ProtobufError for what has no such form."""
    if negotiated.media_type == PROTOBUF:
        from apiserver.schemas import protobuf  # only where a client asks for it

        return protobuf.encode(dict(obj))
    if negotiated.media_type == YAML:
        return _yaml(obj)
    if negotiated.pretty:
        return orjson.dumps(obj, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return orjson.dumps(obj)


def _yaml(obj: Mapping[str, Any]) -> bytes:
    import yaml

    text = yaml.dump(obj, Dumper=_yaml_dumper(), default_flow_style=False, allow_unicode=True, sort_keys=True, width=1 << 30)
    return text.encode() if isinstance(text, str) else bytes(text)


def _yaml_dumper() -> Any:
    """PyYAML's safe dumper, with texts of several lines as such (``|``)."""
    global _dumper
    if _dumper is None:
        import yaml

        base = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

        class Dumper(base):  # type: ignore[misc, valid-type]
            pass

        def represent(dumper: Any, text: str) -> Any:
            return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

        Dumper.ignore_aliases = lambda self, data: True  # Kubernetes' YAML has no anchors
        Dumper.add_representer(str, represent)
        _dumper = Dumper
    return _dumper
