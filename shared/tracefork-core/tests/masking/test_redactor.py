"""What a redactor finds, and the placeholders it writes."""

from __future__ import annotations

import base64
import json
import re

import pytest

from tracefork_core.masking.names import secrets_of
from tracefork_core.masking.redactor import Redactor, placeholder, replace

KEY = "tk-7Jq0xWmB4c9LrYv2"
HELD = b"tracefork-secret-SERVICE_API_KEY"


@pytest.fixture
def redactor() -> Redactor:
    """Return a redactor that knows a single value."""
    return Redactor({"SERVICE_API_KEY": [KEY]})


def redacted(redactor: Redactor, data: bytes) -> bytes:
    """Return `data` with placeholders for its secrets."""
    return replace(data, redactor.find(data))


def test_a_match_has_name_and_position(redactor: Redactor) -> None:
    """A scan needs both."""
    (match,) = redactor.find(b"say " + KEY.encode() + b".")
    assert (match.name, match.start, match.end) == ("SERVICE_API_KEY", 4, 4 + len(KEY))


@pytest.mark.parametrize("before", [b"", b"u", b"uu", b"user:", b"\x00\xff/"])
@pytest.mark.parametrize("after", [b"", b"w", b"ww", b" and more"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_the_placeholder_replaces_the_value_inside_base64(
    redactor: Redactor, before: bytes, after: bytes, encode: object
) -> None:
    """Whatever bytes surround it, and although its position in the groups of four changes."""
    assert callable(encode)
    said = b"Basic " + encode(before + KEY.encode() + after)
    assert redacted(redactor, said) == b"Basic " + encode(before + HELD + after)


def test_masking_twice_changes_nothing(redactor: Redactor) -> None:
    """A placeholder stays as it is, in every spelling."""
    once = redacted(redactor, json.dumps([KEY, base64.b64encode(KEY.encode()).decode()]).encode())
    assert redacted(redactor, once) == once


def test_the_first_of_two_names_for_a_value_counts() -> None:
    """In alphabetical order, not in the order of the environment."""
    redactor = Redactor({"B_KEY": [KEY], "A_KEY": [KEY]})
    assert redacted(redactor, KEY.encode()).decode() == placeholder("A_KEY")


def test_the_longer_of_two_overlapping_values_is_masked_whole() -> None:
    """No rest of it may remain where a shorter value is a part of it."""
    redactor = Redactor({"A_KEY": [KEY], "B_URL": [f"https://u:{KEY}@host/db"]})
    assert redacted(redactor, f"x https://u:{KEY}@host/db y {KEY}".encode()).decode() == (
        f"x {placeholder('B_URL')} y {placeholder('A_KEY')}"
    )


def test_a_value_that_is_part_of_a_placeholder_is_no_secret() -> None:
    """Its mask would change the placeholders themselves."""
    redactor = Redactor({"SERVICE_API_KEY": ["SERVICE_API_KEY"], "A_TOKEN": ["tracefork-secret"]})
    assert (
        redacted(redactor, b"SERVICE_API_KEY tracefork-secret")
        == b"SERVICE_API_KEY tracefork-secret"
    )


def test_patterns_are_masked_by_their_number() -> None:
    """Two values that one pattern matches get the same placeholder, so either replays."""
    redactor = Redactor({}, [re.compile(rb"ID-\d+"), re.compile(rb"x?")])
    assert redacted(redactor, b"ID-12 ID-345") == b" ".join([b"tracefork-secret-PATTERN_1"] * 2)


BASE = "abcDEF0123456789" * 4
TOKENS = {
    "openai_key": ["sk-" + BASE[:48], "sk-proj-" + BASE[:40] + "_-x"],
    "anthropic_key": ["sk-ant-api03-" + BASE[:40] + "-AA"],
    "google_key": ["AIza" + BASE[:35]],
    "github_token": ["ghp_" + BASE[:36], "github_pat_" + BASE[:22] + "_" + BASE[:59]],
    "slack_token": ["xoxb-123456789012-" + BASE[:24], "xapp-1-A0123456789-12345-" + BASE],
    "aws_key_id": ["AKIA" + "ABCDEFGH23456789"],
    "huggingface_token": ["hf_" + BASE[:34]],
    "groq_key": ["gsk_" + BASE[:52]],
    "replicate_token": ["r8_" + BASE[:37]],
    "nvidia_key": ["nvapi-" + BASE[:60]],
    "jwt": [f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{BASE[:43]}"],
    "private_key": [
        f"-----BEGIN RSA PRIVATE KEY-----\n{BASE}\n{BASE}\n-----END RSA PRIVATE KEY-----"
    ],
}


@pytest.mark.parametrize(("name", "token"), [(n, t) for n, found in TOKENS.items() for t in found])
def test_known_tokens_are_masked_in_any_text(name: str, token: str) -> None:
    """Alone, in JSON and in a sentence, without a rest of them."""
    redactor = Redactor({})
    for text in (token, json.dumps({"key": token}), f"use {token}, please"):
        spelled = json.dumps(token)[1:-1] if text.startswith("{") else token
        masked = redacted(redactor, text.encode()).decode()
        assert masked == text.replace(spelled, placeholder(name))


AZURE = BASE + "+/" + BASE[:20] + "=="


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"AccountName=a;AccountKey={AZURE};E=x", "AccountName=a;AccountKey=<azure_key>;E=x"),
        (f"SharedAccessKey={AZURE}", "SharedAccessKey=<azure_key>"),
        ("postgres://app:p4ss%2Fw0rd@db:5432/x", "postgres://app:<url_password>@db:5432/x"),
        ("redis://:hunter2@cache", "redis://:<url_password>@cache"),
        (r"amqp:\/\/app:p4ssw0rd@mq", r"amqp:\/\/app:<url_password>@mq"),
    ],
)
def test_only_the_secret_part_of_a_connection_is_masked(text: str, masked: str) -> None:
    """A reader still sees which server and which user it was."""
    masked = re.sub("<(.*)>", lambda match: placeholder(match[1]), masked)
    assert redacted(Redactor({}), text.encode()).decode() == masked


def test_a_bearer_token_is_masked_but_not_the_word_bearer() -> None:
    """A reader still sees that a prompt quoted such a header."""
    masked = redacted(Redactor({}), f"curl -H 'Authorization: Bearer {BASE}'".encode()).decode()
    assert masked == "curl -H 'Authorization: Bearer tracefork-secret-bearer_token'"


@pytest.mark.parametrize(
    "text",
    [
        "the task-oriented sk-learn-compatible-estimator-interface",
        "class sk-estimator-doc-link, risk-adjusted returns, sk-1234",
        "xoxo, hf_hub_download(repo_id), gsk_, r8_, AKIAB, AIza, eyJ",
        "Bearer authentication is described in the documentation",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOC\n-----END PUBLIC KEY-----",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "call_4tKx0Jm2b9LrYv2QwErTyUiO msg_01XFDUDYJgAACzvnptvVoYEL resp_68a1b2c3",
        "Bearer tracefork-secret-SERVICE_API_KEY2 and Bearer $SERVICE_API_KEY",
    ],
)
def test_text_that_only_looks_like_a_token_is_left_alone(text: str) -> None:
    """Prose, hashes, message ids and public values."""
    assert redacted(Redactor({}), text.encode()).decode() == text


SECRET = [
    ("OPENAI_API_KEY", KEY, [KEY]),
    ("GITHUB_PAT", f"  {KEY}\n", [KEY]),
    ("db_password", "correct horse battery", ["correct horse battery"]),
    ("NPM_CONFIG_AUTHTOKEN", KEY, [KEY]),
    ("AZURE_CONNECTION_STRING", "Server=a;Password=p4ss-w0rd;", ["p4ss-w0rd"]),
    ("DATABASE_URL", "postgres://app:p4ss%2Fw0rd@db/x", ["p4ss%2Fw0rd", "p4ss/w0rd"]),
    ("FLASK_SESSION", KEY, [KEY]),
    ("LOGIN_COOKIE", KEY, [KEY]),
    ("SLACK_WEBHOOK_URL", f"https://hooks.example/T1/B2/{BASE}", []),
]
"""Name, value, and what is masked beside the value as a whole."""

NO_SECRET = [
    ("KEYBOARD", KEY),
    ("MONKEY", KEY),
    ("PATH", "/usr/local/bin:/usr/bin"),
    ("PWD", "/home/somebody/work"),
    ("SSH_AUTH_SOCK", "/tmp/ssh-abc123/agent.99"),
    ("GOOGLE_CREDENTIALS", "/home/somebody/keys/account.json"),
    ("AUTH_URL", "https://login.example.com/oauth2/v2.0/authorize"),
    ("USE_TOKEN", "true"),
    ("SECRET_STAGE", "production"),
    ("MAX_TOKENS", "1000000000"),
    ("TOKENIZERS_PARALLELISM", "false-12345"),
    ("SECRET_NAME", "prod/db/password1"),
    ("STRIPE_PUBLIC_KEY", "pk_live_0123456789"),
    ("DATABASE_URL", "postgres://localhost:5432/app"),
    ("API_KEY", "short"),
    ("DESKTOP_SESSION", "plasma-wayland"),
    ("XDG_SESSION_ID", "0123456789-abc"),
    ("SESSION_MANAGER", "local/host:@/tmp/.ICE-unix/1234"),
    ("SESSION_TIMEOUT_LIMIT", "1800-seconds"),
]


@pytest.mark.parametrize(("name", "value", "parts"), SECRET)
def test_secret_variables_are_recognised(name: str, value: str, parts: list[str]) -> None:
    """By their names, or by the password in their values."""
    found = [value for _, value in secrets_of({name: value})]
    assert value.strip() in found
    assert set(parts) <= set(found)


@pytest.mark.parametrize(("name", "value"), NO_SECRET)
def test_other_variables_with_similar_names_are_left_alone(name: str, value: str) -> None:
    """Paths, addresses, words, numbers, and names that contain such a word inside another."""
    assert list(secrets_of({name: value})) == []


def test_a_pattern_leaves_placeholders_alone() -> None:
    """A greedy pattern must not change what is masked already."""
    redactor = Redactor({"API_KEY": ["a-secret-value"]}, [re.compile(rb"[\w-]{8,}")])
    once = redacted(redactor, b"key a-secret-value and some-other-text")
    assert once == b"key tracefork-secret-API_KEY and tracefork-secret-PATTERN_1"
    assert redacted(redactor, once) == once
