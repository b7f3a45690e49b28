"""The header of a mail, and where its fields come from."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from codemods.engine.checkout import UsageError
from codemods.engine.plan import Plan, Tree
from codemods.output.mail import NEUTRAL_AUTHOR, Mail, mail_for
from tests.plans import plan_of

DATE = datetime(2026, 5, 20, 8, 0, tzinfo=timezone.utc)
SUBJECT = "The recipe's own words"


def at(root: Path) -> Plan:
    return plan_of(tree=Tree(root, "vllm"))


MAIL = Mail("Ada Example <ada@example.org>", DATE, "Warm up the kernel")


def test_a_plain_subject_is_written_as_it_is() -> None:
    assert b"Subject: Warm up the kernel\n" in MAIL.header(SUBJECT)


def test_without_a_subject_it_is_the_recipes_own() -> None:
    header = Mail("Ada Example <ada@example.org>", DATE).header(SUBJECT)
    assert header.endswith(b"\nSubject: The recipe's own words\n")


def test_other_letters_in_author_and_subject_become_rfc_2047_words() -> None:
    header = Mail("J\u00f6rg M\u00fcller <j@example.org>", DATE, "W\u00e4rme" * 20).header(SUBJECT)
    assert header.isascii()
    assert b"From: =?utf-8?" in header
    assert all(len(line) < 79 for line in header.splitlines())


def test_a_subject_cannot_smuggle_a_header_in() -> None:
    header = Mail("A <a@example.org>", DATE, "x\nBcc: b@example.org\r\n\r\ny").header(SUBJECT)
    assert header.count(b"\n") == 3


@pytest.fixture
def no_git_settings(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(tmp_path.parent),
    }


def test_the_options_come_first(tmp_path: Path, no_git_settings: dict[str, str]) -> None:
    mail = mail_for(
        at(tmp_path),
        author="Ada <ada@example.org>",
        date="2026-05-20T08:00:00Z",
        subject="Fix it",
        environ=no_git_settings | {"SOURCE_DATE_EPOCH": "1", "GIT_AUTHOR_NAME": "Bob"},
    )
    assert mail == Mail("Ada <ada@example.org>", DATE, "Fix it")


def test_then_git_is_asked_and_source_date_epoch_used(
    tmp_path: Path, no_git_settings: dict[str, str]
) -> None:
    config = tmp_path / "config"
    config.write_text("[user]\n\tname = Bob\n\temail = bob@example.org\n")
    environ = no_git_settings | {"SOURCE_DATE_EPOCH": "0", "GIT_CONFIG_GLOBAL": str(config)}
    mail = mail_for(at(tmp_path), environ=environ)
    expected = "Bob <bob@example.org>" if shutil.which("git") else NEUTRAL_AUTHOR
    assert mail == Mail(expected, datetime(1970, 1, 1, tzinfo=timezone.utc))


@pytest.mark.parametrize("path", ["", "/nonexistent"])
def test_without_git_the_author_is_neutral(tmp_path: Path, path: str) -> None:
    mail = mail_for(at(tmp_path), environ={"PATH": path, "SOURCE_DATE_EPOCH": "0"})
    assert mail.author == NEUTRAL_AUTHOR


def test_half_an_identity_is_none(tmp_path: Path, no_git_settings: dict[str, str]) -> None:
    environ = no_git_settings | {"GIT_AUTHOR_NAME": "Bob"}
    assert mail_for(at(tmp_path), environ=environ).author == NEUTRAL_AUTHOR


def test_a_tree_that_is_gone_gives_the_neutral_author(no_git_settings: dict[str, str]) -> None:
    assert mail_for(at(Path("/nonexistent")), environ=no_git_settings).author == NEUTRAL_AUTHOR


@pytest.mark.parametrize(
    "date",
    ["2026-05-20T10:00:00+02:00", "Wed, 20 May 2026 08:00:00 +0000", "1779264000", "@1779264000"],
)
def test_a_date_is_read_in_the_forms_that_git_reads(tmp_path: Path, date: str) -> None:
    assert mail_for(at(tmp_path), date=date, environ={}).date == DATE


def test_a_date_keeps_its_zone(tmp_path: Path) -> None:
    mail = mail_for(at(tmp_path), date="2026-05-20T10:00:00+02:00", environ={})
    assert mail.date.utcoffset() == timedelta(hours=2)
    assert b"Date: Wed, 20 May 2026 10:00:00 +0200\n" in mail.header(SUBJECT)


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        ({"author": "nobody"}, {}),
        ({"author": "<a@b>"}, {}),
        ({"author": "A <a at b>"}, {}),
        ({"author": "A\nBcc: x <a@b>"}, {}),
        ({"author": "A\udce4 <a@b>"}, {}),
        ({"subject": "W\udce4rme"}, {}),
        ({"date": "yesterday"}, {}),
        ({"date": ""}, {}),
        ({"date": "9" * 30}, {}),
        ({"subject": " \n "}, {}),
        ({}, {"SOURCE_DATE_EPOCH": "-1"}),
        ({}, {"SOURCE_DATE_EPOCH": "1e9"}),
        ({}, {"SOURCE_DATE_EPOCH": ""}),
    ],
)
def test_a_bad_field_is_refused_in_one_line(
    tmp_path: Path, options: dict[str, str], environ: dict[str, str]
) -> None:
    with pytest.raises(UsageError) as caught:
        mail_for(at(tmp_path), **options, environ=environ)
    assert "\n" not in str(caught.value)


def test_an_address_that_is_not_ascii_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Mail("A <a@ex\u00e4mple.org>", DATE, "x").header(SUBJECT)
