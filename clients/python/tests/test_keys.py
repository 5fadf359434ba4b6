"""Keys that a client does not choose, and the warning about a header that is not believed."""

from __future__ import annotations

import logging
import random

import pytest

from cellserver_client import ConfigurationError, KeyFault, combine, header, ip, keys


def request(forwarded: list[bytes], peer: str | None = "203.0.113.9") -> dict[str, object]:
    return {
        "type": "http",
        "client": (peer, 4711) if peer else None,
        "headers": [(b"x-forwarded-for", line) for line in forwarded],
    }


def test_forged_headers_do_not_choose_the_key() -> None:
    chosen = random.Random(33)
    pieces = [b"6.6.6.6", b"::1", b"[::1]:80", b",", b" ", b"\t", b"unknown", b"\xff", b"%eth0", b"1.2.3.4:99999", b'"', b""]
    by_hops, by_networks = ip(trusted_hops=1), ip(trusted_networks=["203.0.113.0/24"])
    for _ in range(100_000):
        forged = b"".join(chosen.choices(pieces, k=chosen.randrange(8)))
        # The proxy appends to the line of the client, or adds a line.
        lines = [forged + b", 198.51.100.7"] if chosen.random() < 0.5 else [forged, b"198.51.100.7"]
        asked = request(lines)
        assert by_hops(asked) == "198.51.100.7"
        assert by_networks(asked) == "198.51.100.7"


def test_a_header_that_is_not_believed_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keys, "_warned", False)
    with caplog.at_level(logging.WARNING, "cellserver_client"):
        assert [ip()(request([b"6.6.6.6"])) for _ in range(3)] == ["203.0.113.9"] * 3
    assert len(caplog.records) == 1


def test_a_unix_socket_needs_hops() -> None:
    with pytest.raises(KeyFault):
        ip()(request([], peer=None))
    assert ip(trusted_hops=1)(request([b"198.51.100.7"], peer=None)) == "198.51.100.7"


def test_wrong_options_of_addresses_are_errors() -> None:
    for options in (
        {"trusted_hops": -1},
        {"v6_prefix": 65},
        {"trusted_networks": ["x"]},
        {"trusted_hops": 1, "trusted_networks": ["10.0.0.0/8"]},
    ):
        with pytest.raises(ConfigurationError):
            ip(**options)


def test_a_token_is_in_no_key() -> None:
    asked = {**request([]), "headers": [(b"authorization", b"Bearer s3cret")]}
    key = combine(header("Authorization"), ip())(asked)
    assert key is not None
    assert "s3cret" not in key
    assert header("x-other")(asked) is None


def test_texts_that_utf_8_does_not_have_are_hashed() -> None:
    texts = ["\ud800", "\udc80", "\udced\udca0\udc80", "a\ud800", "\ud83d"]
    made = [keys.bounded(text) for text in texts]
    assert len(set(made)) == len(texts)
    assert {len(key) for key in made} == {32}
    assert [keys.encodable(text) for text in texts] == made
    assert keys.bounded("\U0001f600") == "\U0001f600"


@pytest.mark.parametrize("secret", [True, False])
def test_further_lines_of_a_header_make_no_new_key(secret: bool) -> None:
    key = header("X-API-Key", secret=secret)
    once = {**request([]), "headers": [(b"x-api-key", b"token")]}
    more = {**request([]), "headers": [(b"x-api-key", b"token"), (b"x-api-key", b"other")]}
    assert key(more) == key(once)
