"""What is said of what was found in a store."""

from __future__ import annotations

from apiserver.cli import census
from apiserver.objectstore.interface import Unreadable, UnreadableObjectError
from apiserver.objectstore.object_store import Census, PrefixCount


def locked(number: int) -> UnreadableObjectError:
    return UnreadableObjectError(f"/registry/secrets/ns/s{number}", f"ns/s{number}", number, Unreadable.ENCRYPTED, "locked")


def test_nothing_is_said_of_a_store_as_it_should_be() -> None:
    found = Census(prefixes=(PrefixCount(prefix="pods", read=3, unreadable=()),), elsewhere={"ranges": 2, "masterleases": 1})
    assert census.of(found, each_kind=False) == ""
    assert census.of(found, each_kind=True) == (
        "3 objects were read:\n  pods 3\n3 keys are the old servers' own (addresses given, who lives): left alone\n"
        "nothing is encrypted, unknown or damaged\n\n"
    )


def test_what_cannot_be_read_is_said_always_but_not_without_end() -> None:
    errors = tuple(locked(number) for number in range(census.EXAMPLES_MAX + 2))
    found = Census(prefixes=(PrefixCount(prefix="secrets", read=1000, unreadable=errors),), elsewhere={"things.example.com/things": 4})
    said = census.of(found, each_kind=False)
    assert f"{len(errors)} objects are encrypted and left alone (secrets {len(errors)}):\n" in said
    assert said.count("unable to transform key") == census.EXAMPLES_MAX
    assert "  … and 2 more\n" in said
    assert "4 keys of resources that are not served here are left alone:\n  things.example.com/things 4\n" in said


def test_a_store_with_other_keys() -> None:
    said = census.of(Census(prefixes=(), elsewhere={}), each_kind=True, prefix="/elsewhere")
    assert "nothing is stored under /elsewhere" in said and "--etcd-prefix" in said


def test_long_lists_are_wrapped() -> None:
    found = Census(prefixes=tuple(PrefixCount(prefix=f"resources{n}", read=n, unreadable=()) for n in range(1, 30)), elsewhere={})
    lines = census.of(found, each_kind=True).splitlines()
    assert max(map(len, lines)) < 120
    assert "".join(lines).count("resources") == 29
