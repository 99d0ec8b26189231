"""Headers between servers: what stays here, what is added, and what no header can hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.aggregation import headers
from apiserver.aggregation.headers import BadHeaderError
from apiserver.authentication.user import UserInfo

JANE = UserInfo(name="jane", uid="7", groups=("a", "b"), extra={"example.com/scopes": ("view", "edit")})


def test_a_user_is_told_by_headers_with_escaped_keys() -> None:
    assert headers.of_user(JANE) == [
        ("X-Remote-User", "jane"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Group", "a"),
        ("X-Remote-Group", "b"),
        ("X-Remote-Extra-example.com%2Fscopes", "view"),
        ("X-Remote-Extra-example.com%2Fscopes", "edit"),
    ]


def test_a_name_that_would_end_its_line_is_refused() -> None:
    with pytest.raises(BadHeaderError, match='invalid header field value for "X-Remote-User"'):
        headers.of_user(UserInfo(name="jane\r\nX-Remote-Group: system:masters"))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    b"X-Remote-User",
                    b"x-remote-GROUP",
                    b"X-REMOTE-EXTRA-a",
                    b"x-remote-uid",
                    b"Authorization",
                    b"Impersonate-User",
                    b"Te",
                    b"A",
                ]
            ),
            st.sampled_from([b"root", b"system:masters", b"x"]),
        )
    )
)
def test_no_client_gets_a_claim_through(raw: list[tuple[bytes, bytes]]) -> None:
    found = headers.forwarded(raw, JANE, "10.0.0.1", "id")
    claims = [(name, value) for name, value in found if name.lower().startswith("x-remote-")]
    assert claims == headers.of_user(JANE)
    others = {name.lower() for name, _ in found} - {name.lower() for name, _ in claims}
    assert others <= {"a", "x-forwarded-for", "audit-id"}


def test_what_concerns_one_connection_stays_on_it() -> None:
    raw = [(b"Connection", b"close, X-Hop"), (b"X-Hop", b"1"), (b"Transfer-Encoding", b"chunked"), (b"Kept", b"1"), (b"Date", b"now")]
    assert headers.answered(raw) == [(b"kept", b"1")]
    assert ("x-hop", "1") not in headers.forwarded(raw, JANE, "", "id")


def test_what_is_no_header_is_not_passed_back() -> None:
    assert headers.answered([(b"a b", b"1"), (b"", b"1"), (b"c", b"1\x00"), (b"d", b"1")]) == [(b"d", b"1")]


def test_addresses_of_all_servers_on_the_way_are_kept() -> None:
    raw = [(b"X-Forwarded-For", b"10.0.0.1")]
    assert ("X-Forwarded-For", "10.0.0.1, 10.0.0.2") in headers.forwarded(raw, JANE, "10.0.0.2", "id")
