"""Quantities: apimachinery ``api/resource``."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery import quantity
from apiserver.machinery.quantity import Format, Quantity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("100m", "100m"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("1024", "1024"),
        ("1000", "1k"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1025Ki", "1025Ki"),
        ("12e6", "12e6"),
        ("12E6", "12E6"),
        ("1200e3", "1200e3"),
        ("1000e3", "1e6"),
        ("100e-3", "100e-3"),
        ("1E", "1E"),
        (".5", "500m"),
        ("5.", "5."),
        ("-1", "-1"),
        ("0.1m", "100u"),
        ("0.00000000001", "1n"),
        ("-0.00000000001", "-1n"),
        ("9223372036854775808Ki", "9223372036854775807"),
        ("12345678901234567890", "12345678901234567890"),
        ("1e100", "10e99"),
        ("1e-300", "1e-9"),
    ],
)
def test_the_canonical_text(text: str, canonical: str) -> None:
    assert quantity.canonical(text) == canonical


@pytest.mark.parametrize("text", ["", "1.1.M", "1+1.0M", "0.1mi", "abc", "1 ", "--1", "Ki1", "1e", "1Kx", "5Mib", "1_000", "١"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(quantity.QuantityError, match=r"^(quantities must match|unable to parse quantity's suffix)"):
        quantity.parse(text)


def test_suffix_errors() -> None:
    with pytest.raises(quantity.QuantityError, match=r"^unable to parse quantity's suffix$"):
        quantity.parse("0.1mi")


def test_numbers_that_would_take_for_ever_are_refused() -> None:
    for text in ("1e999999999", "1e-999999999999999", "9" * 100_000):
        with pytest.raises(quantity.QuantityError, match="numeric part"):
            quantity.parse(text)


def test_values_are_rounded_away_from_zero() -> None:
    assert quantity.parse("1.1").value() == 2 and quantity.parse("-1.1").value() == -2
    assert quantity.parse("1500u").milli_value() == 2 and quantity.parse("250m").milli_value() == 250


def test_sums_keep_the_format_of_the_left_unless_that_is_zero() -> None:
    assert str(quantity.parse("1Gi") + quantity.parse("512Mi")) == "1536Mi"
    assert str(quantity.ZERO + quantity.parse("1Gi")) == "1Gi"
    assert str(quantity.parse("1") - quantity.parse("100m")) == "900m"
    assert str(quantity.parse("100m") * 3) == "300m"


def test_resource_lists_are_rounded_up_to_millis() -> None:
    rounded = {t: str(quantity.parse(t).rounded_up_to_milli()) for t in ("100m", "1.500", "1500u", "-1n", "1.1Gi", "1000n")}
    assert rounded == {"100m": "100m", "1.500": "1.500", "1500u": "2m", "-1n": "-1m", "1.1Gi": "1181116006400m", "1000n": "1m"}


def test_of_json() -> None:
    assert quantity.of_json(2) == quantity.parse("2") and quantity.of_json(0.5) == quantity.parse("500m")
    wrongs: list[object] = [True, None, [], {}]
    for wrong in wrongs:
        with pytest.raises(quantity.QuantityError):
            quantity.of_json(wrong)


def test_equal_amounts_are_equal_whatever_their_form() -> None:
    assert quantity.parse("1024Ki") == quantity.parse("1Mi") == quantity.parse("1048576")
    assert hash(quantity.parse("1k")) == hash(quantity.parse("1000"))
    assert quantity.parse("1Gi") > quantity.parse("1G") and quantity.parse("-1") < quantity.ZERO <= quantity.parse("0")
    assert quantity.parse("1") != 1 and not quantity.ZERO and str(-quantity.parse("1k")) == "-1k"
    assert [quantity.parse(t).sign for t in ("-1", "0", "5m")] == [-1, 0, 1] and float(quantity.parse("500m")) == 0.5


AMOUNTS = st.integers(-(10**21), 10**21)


@given(AMOUNTS, st.sampled_from(list(Format)))
def test_the_canonical_text_parses_to_the_same_amount(nanos: int, form: Format) -> None:
    assert quantity.parse(str(Quantity(nanos, form))).nanos == nanos


@given(st.integers(-(10**9), 10**9), st.integers(0, 6), st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "e3", "E-3"]))
def test_parsing_agrees_with_fractions(unscaled: int, places: int, suffix: str) -> None:
    digits = str(abs(unscaled)).rjust(places + 1, "0")
    text = ("-" if unscaled < 0 else "") + (digits[:-places] + "." + digits[-places:] if places else digits) + suffix
    factor: dict[str, Fraction | int] = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
    factor |= {"k": 1000, "M": 10**6, "G": 10**9}
    factor |= {"T": 10**12, "Ki": 1024, "Mi": 1024**2, "e3": 1000, "E-3": Fraction(1, 1000), "": 1}
    exact = Fraction(unscaled, 10**places) * factor[suffix] * 10**9
    rounded = -(-abs(exact).numerator // abs(exact).denominator) * (1 if exact >= 0 else -1)
    assert quantity.parse(text).nanos == rounded


@given(AMOUNTS, AMOUNTS)
def test_arithmetic_agrees_with_fractions(left: int, right: int) -> None:
    a, b = Quantity(left), Quantity(right)
    assert (a + b).as_fraction() == a.as_fraction() + b.as_fraction()
    assert (a - b).as_fraction() == a.as_fraction() - b.as_fraction()
    assert (a < b) == (a.as_fraction() < b.as_fraction()) and (a >= b) == (a.as_fraction() >= b.as_fraction())


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP x", max_size=12))
def test_any_text_is_a_quantity_or_refused_and_the_canonical_text_is_stable(text: str) -> None:
    try:
        canonical = quantity.canonical(text)
    except quantity.QuantityError:
        return
    assert quantity.parse(canonical) == quantity.parse(text)
    assert quantity.canonical(canonical) == canonical
