"""Secrets in entries stay out of sight."""

from tests.rows import rows
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.secrets import shown_url, shown_words, unfilled, without_secrets
from wave_agent.mcp.values import Server, ServerEntry, ServerTransport


@rows(
    ("words", "shown"),
    [
        (["--token", "abc", "dir"], ["--token", "[hidden]", "dir"]),
        (["--api-key=abc", "--verbose"], ["--api-key=[hidden]", "--verbose"]),
        (["API_TOKEN=abc", "node", "x.js"], ["API_TOKEN=[hidden]", "node", "x.js"]),
        (["--token", "--other"], ["--token", "--other"]),
        (["--dir=/a", "b=c"], ["--dir=/a", "b=c"]),
    ],
)
def test_values_of_options_that_hold_secrets_are_hidden(words: list[str], shown: list[str]) -> None:
    assert shown_words(words) == shown


@rows(
    ("url", "shown"),
    [
        ("https://a.example/x", "https://a.example/x"),
        ("https://me:pw@a.example/x?key=1&b", "https://a.example/x?key=[hidden]&b=[hidden]"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_a_variable_is_shown_as_it_was_written() -> None:
    server = Server(
        name="x",
        entry=ServerEntry(transport=ServerTransport.STDIO, command="x"),
        layer=Layer.USER,
        source="s",
        variables=("HOME", "MY_TOKEN", "SHORT_KEY"),
    )
    environment = {"HOME": "/home/ada", "MY_TOKEN": "s3cret-99", "SHORT_KEY": "a"}
    assert unfilled("/home/ada --with=s3cret-99 a", server, environment) == "/home/ada --with=${MY_TOKEN} a"


def test_what_a_server_says_has_none_of_the_secrets_that_it_was_given() -> None:
    entry = ServerEntry(
        transport=ServerTransport.HTTP,
        url="https://me:password@a.example/x?key=of-the-query",
        headers={"Authorization": "Bearer of-the-header"},
        env={"MY_TOKEN": "of-the-environment", "LANG": "en_US.UTF-8"},
        args=("--token", "of-the-words", "--api-key=of-a-word", "README.md"),
    )
    said = "of-the-header, of-the-query, of-the-environment, of-the-words, of-a-word, password in en_US.UTF-8 README.md"
    assert without_secrets(said, entry) == f"{', '.join(['[hidden]'] * 5)}, [hidden] in en_US.UTF-8 README.md"
