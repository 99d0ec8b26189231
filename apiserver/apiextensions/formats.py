"""The string formats that schemas of custom resources may name (kube-openapi ``strfmt``): for each, whether a text has it.

Names are written with or without dashes (``date-time``, ``datetime``). A format that is not known here restricts nothing and earns the
definition a warning. All checks take time linear in the text, or look at texts of bounded length only.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import unicodedata
from collections.abc import Callable

from apiserver.machinery import timestamps

Check = Callable[[str], bool]

#: since which minor version of Kubernetes a format is known, where it is not as old as definitions are
_SINCE = {"k8sshortname": 34, "k8slongname": 34}


def normalized(name: str) -> str:
    return name.replace("-", "")


def check_of(name: str, minor: int) -> Check | None:
    """The check of a format as Kubernetes 1.``minor`` has it, None for one that it does not know."""
    name = normalized(name)
    return None if minor < _SINCE.get(name, 0) else _CHECKS.get(name)


def is_recognized(type_: str, name: str, minor: int) -> bool:
    """Whether a schema of this type may say this format; others are passed over."""
    if type_ in ("", "string"):
        return check_of(name, minor) is not None
    return name in {"integer": ("int32", "int64"), "number": ("float", "double")}.get(type_, ())


def _pattern(text: str, flags: int = 0) -> Check:
    match = re.compile(text, flags).fullmatch
    return lambda value: match(value) is not None


def _bounded(length: int, check: Check) -> Check:
    return lambda value: len(value) <= length and check(value)


# --- names -----------------------------------------------------------------------------------------------------------------------

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#: letters and symbols beyond ASCII are brought to one ASCII letter or symbol each before this is asked
_HOST_CHARACTER = r"[a-zA-Z0-9$+<=>^`|~]"
_HOST = re.compile(
    rf"{_HOST_CHARACTER}(-?{_HOST_CHARACTER}{{0,62}})?"
    rf"|({_HOST_CHARACTER}([a-zA-Z0-9$+<=>^`|~-]{{0,61}}{_HOST_CHARACTER})?\.)+[a-zA-Z]{{2,63}}"
).fullmatch
_HOST_LENGTH_MAX = 255
_HOST_LABEL_LENGTH_MAX = 63


def _hostname(value: str) -> bool:
    length = len(value.encode("utf-8", "surrogatepass"))
    if length > _HOST_LENGTH_MAX or any(len(part.encode("utf-8", "surrogatepass")) > _HOST_LABEL_LENGTH_MAX for part in value.split(".")):
        return False
    return _HOST(value if value.isascii() else "".join(map(_ascii_class, value))) is not None


def _ascii_class(character: str) -> str:
    if character.isascii():
        return character
    return {"L": "a", "S": "+"}.get(unicodedata.category(character)[0], " ")


_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]+"
_DOT_ATOM = rf"{_ATOM}(?:\.{_ATOM})*"
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x1f\x7f])*"'
_ADDRESS = rf"(?:{_DOT_ATOM}|{_QUOTED})@(?P<domain>{_DOT_ATOM}|\[[^\[\]]*\])"
#: an address by itself, or behind a name
_BARE_ADDRESS = re.compile(rf"[ \t]*{_ADDRESS}[ \t]*").fullmatch
_NAMED_ADDRESS = re.compile(rf"(?:{_ATOM[:-1]}|[. \t]|{_QUOTED})*<{_ADDRESS}>[ \t]*").fullmatch
_ADDRESS_LENGTH_MAX = 1024
#: what stands in parentheses behind an address
_COMMENT = re.compile(r"(?<=[^ \t])[ \t]*\([^()\\]*\)[ \t]*\Z").sub


def _email(value: str) -> bool:
    if len(value) > _ADDRESS_LENGTH_MAX:
        return False
    value = _COMMENT("", value)
    found = _BARE_ADDRESS(value) or (_NAMED_ADDRESS(value) if value.rstrip().endswith(">") else None)
    if found is None:
        return False
    domain = found["domain"]
    return not domain.startswith("[") or _ip(domain[1:-1].removeprefix("IPv6:")) is not None


# --- addresses -------------------------------------------------------------------------------------------------------------------

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F:.])0+(?=[0-9])|(?<=\.)0+(?=[0-9])")


def _ip(value: str, *, sloppy: bool = False) -> _Ip | None:
    """Go's ``net.ParseIP``; ``sloppy`` as it was before Go 1.17, when octets could begin with zeros."""
    if "%" in value:
        return None
    try:
        return ipaddress.ip_address(_LEADING_ZEROS.sub("", value) if sloppy and "." in value else value)
    except ValueError:
        return None


def _cidr(value: str) -> bool:
    address, slash, bits = value.partition("/")
    found = _ip(address, sloppy=True)
    if found is None or not slash or not (bits.isascii() and bits.isdigit()) or len(bits) > _HOST_LABEL_LENGTH_MAX:
        return False
    return int(bits) <= found.max_prefixlen


_MAC = _pattern(
    "|".join(
        f"[0-9a-fA-F]{{{digits}}}(?:{separator}[0-9a-fA-F]{{{digits}}}){{{octets * 2 // digits - 1}}}"
        for octets in (6, 8, 20)
        for digits, separator in ((2, ":"), (2, "-"), (4, r"\."))
    )
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:").match
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})").search
_CONTROL = re.compile("[\x00-\x1f\x7f]").search
_USER_INFO = _pattern(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_HOST_NAME = _pattern(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"\u0080-\U0010ffff]|%25|%[89A-Fa-f][0-9A-Fa-f])*")
_PORT = _pattern("(?::[0-9]*)?")


def _uri(value: str) -> bool:
    """Go's ``url.ParseRequestURI``."""
    if not value or _CONTROL(value) is not None or value[0] == ":":
        return False
    if value == "*":
        return True
    scheme = _SCHEME(value)
    rest = value[scheme.end() :] if scheme is not None else value
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        return scheme is not None
    if scheme is not None and rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
        return _authority(authority) and _BAD_ESCAPE(path) is None
    return _BAD_ESCAPE(rest) is None


def _authority(value: str) -> bool:
    user, at, host = value.rpartition("@")
    if at and (not _USER_INFO(user) or _BAD_ESCAPE(user) is not None):
        return False
    if host.startswith("["):
        inside, bracket, port = host.rpartition("]")
        return bool(bracket) and _PORT(port) and _HOST_NAME(inside.partition("%25")[0])
    colon = host.rfind(":")
    return (colon < 0 or _PORT(host[colon:])) and _HOST_NAME(host)


# --- times -----------------------------------------------------------------------------------------------------------------------

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})").fullmatch
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))").fullmatch
_AMOUNT = re.compile(r"([0-9]+)[ \t\n\f\r]*([A-Za-zµ]+)").findall
_UNITS = frozenset(
    ("ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "hour", "d", "day", "w", "wk", "week")
)
_UNIT_STARTS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_INT64_MAX = 2**63 - 1


def _date(value: str) -> bool:
    found = _DATE(value)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    try:
        # a year 0 is one for Go; it was a leap year, as 2000 was
        datetime.date(year or 2000, month, day)
    except ValueError:
        return False
    return True


def _datetime(value: str) -> bool:
    parts = value.lower().split("t")
    if len(parts) < 2 or not _date(parts[0]):
        return False
    found = _CLOCK(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _duration(value: str) -> bool:
    """What Go's ``time.ParseDuration`` reads, or amounts with units written out (``3 days``)."""
    try:
        timestamps.parse_duration(value)
        return True
    except timestamps.TimestampError:
        pass
    known = False
    for amount, unit in _AMOUNT(value):
        if len(amount) > 20 or int(amount) > _INT64_MAX:
            return False
        unit = unit.lower()
        known = known or unit in _UNITS or unit.startswith(_UNIT_STARTS)
    return known


# --- numbers in texts ------------------------------------------------------------------------------------------------------------

_NOT_DIGITS = re.compile("[^0-9]+")
_SPACES_AND_DASHES = re.compile(r"[ \t\n\f\r-]+")
_CARD = _pattern(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
    r"|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_ISBN10 = _pattern("[0-9]{9}[0-9X]")
_ISBN13 = _pattern("[0-9]{13}")
_COLOR_PART = "(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"
_SPACE = r"[ \t\n\f\r]*"


def _credit_card(value: str) -> bool:
    digits = _NOT_DIGITS.sub("", value)
    if not _CARD(digits):
        return False
    # Luhn: every second digit from the right counts double, as the sum of its digits
    return sum(sum(divmod(int(digit) * (1 + position % 2), 10)) for position, digit in enumerate(reversed(digits))) % 10 == 0


def _isbn10(value: str) -> bool:
    digits = _SPACES_AND_DASHES.sub("", value)
    if not _ISBN10(digits):
        return False
    return sum((position + 1) * (10 if digit == "X" else int(digit)) for position, digit in enumerate(digits)) % 11 == 0


def _isbn13(value: str) -> bool:
    digits = _SPACES_AND_DASHES.sub("", value)
    if not _ISBN13(digits):
        return False
    return sum(int(digit) * (1 + 2 * (position % 2)) for position, digit in enumerate(digits)) % 10 == 0


def _uuid(third: str = "[0-9a-f]", fourth: str = "[0-9a-f]") -> Check:
    return _pattern(f"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}[0-9a-f]{{3}}-?{fourth}[0-9a-f]{{3}}-?[0-9a-f]{{12}}", re.ASCII | re.IGNORECASE)


_CHECKS: dict[str, Check] = {
    "bsonobjectid": _pattern("[0-9a-fA-F]{24}"),
    "byte": _pattern("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _cidr,
    "creditcard": _credit_card,
    "date": _date,
    "datetime": _datetime,
    "duration": _duration,
    "email": _email,
    "hexcolor": _pattern("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _hostname,
    "ipv4": lambda value: "." in value and _ip(value, sloppy=True) is not None,
    "ipv6": lambda value: ":" in value and _ip(value) is not None,
    "isbn": lambda value: _isbn10(value) or _isbn13(value),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8slongname": _bounded(253, _pattern(rf"{_LABEL}(\.{_LABEL})*")),
    "k8sshortname": _bounded(63, _pattern(_LABEL)),
    "mac": _MAC,
    "password": lambda _: True,
    "rgbcolor": _pattern(rf"rgb\({_SPACE}{_COLOR_PART}{_SPACE},{_SPACE}{_COLOR_PART}{_SPACE},{_SPACE}{_COLOR_PART}{_SPACE}\)"),
    "ssn": _bounded(11, _pattern("[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}")),
    "uri": _uri,
    "uuid": _uuid(),
    "uuid3": _uuid(third="3"),
    "uuid4": _uuid(third="4", fourth="[89ab]"),
    "uuid5": _uuid(third="5", fourth="[89ab]"),
}
