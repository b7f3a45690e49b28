"""Who, when and what: the three header fields of a mailbox patch, and where they come from.

Each field is taken from the options, else from what git knows, else from a neutral default.
Modules that cost time to import are imported where they are used: a plain diff needs none of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from codemods.engine.checkout import UsageError
from codemods.engine.plan import Plan

NEUTRAL_AUTHOR = "vllm-codemods <noreply@vllm-codemods.invalid>"


@dataclass(frozen=True)
class Mail:
    """The header of a mail: `author` is "Name <address>", `date` knows its time zone.

    `subject` is None for the recipe's own.
    """

    author: str
    date: datetime
    subject: str | None = None

    def header(self, default_subject: str) -> bytes:
        """`From:`, `Date:` (RFC 2822) and `Subject:`, ASCII, RFC 2047 words where needed."""
        from email.utils import format_datetime, formataddr

        name, address = _author_parts(self.author)
        try:
            sender = formataddr((name, address))
        except UnicodeEncodeError as error:
            raise UsageError(f"author {self.author!r}: an address must be ASCII") from error
        sent = format_datetime(self.date)
        subject = _encoded("Subject", " ".join((self.subject or default_subject).split()))
        return f"From: {sender}\nDate: {sent}\nSubject: {subject}\n".encode("ascii")


def mail_for(
    plan: Plan,
    *,
    author: str | None = None,
    date: str | None = None,
    subject: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Mail:
    """The mail of a plan, from the command line's options.

    Raises `UsageError` for an author that is not "Name <address>", a date that is neither
    RFC 2822 nor ISO 8601 nor seconds since 1970, an empty subject or a bad SOURCE_DATE_EPOCH.
    """
    if author is not None:
        _author_parts(author)
    if subject is not None and (not subject.strip() or not _is_text(subject)):
        raise UsageError(f"subject {subject!r}: say in a line of text what the patch does")
    return Mail(
        author=author or _git_author(plan.tree.root, environ) or NEUTRAL_AUTHOR,
        date=_date(date, environ),
        subject=subject,
    )


def _author_parts(author: str) -> tuple[str, str]:
    found = re.fullmatch(r'\s*"?([^<>"\x00-\x1f]*?)"?\s*<([^<>\s@]+@[^<>\s@]+)>\s*', author)
    if found is None or not found[1] or not _is_text(author):
        raise UsageError(f'author {author!r}: write it as "Name <name@example.org>"')
    return found[1], found[2]


def _is_text(argument: str) -> bool:
    """Whether an argument was text in the user's locale; bytes that were not come as surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in argument)


def _date(option: str | None, environ: Mapping[str, str]) -> datetime:
    if option is not None:
        return _parsed_date(option)
    epoch = environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(timezone.utc).replace(microsecond=0)
    # The reproducible-builds specification: decimal seconds since 1970, UTC.
    if not re.fullmatch(r"[0-9]+", epoch, re.ASCII):
        raise UsageError(f"SOURCE_DATE_EPOCH is {epoch!r}: it must be seconds since 1970")
    return _from_epoch(epoch)


def _parsed_date(text: str) -> datetime:
    if re.fullmatch(r"@?[0-9]+", text, re.ASCII):
        return _from_epoch(text.lstrip("@"))
    try:
        # Python 3.10 reads no "Z" at the end.
        date = datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text))
    except ValueError:
        date = _rfc_date(text)
    return date if date.tzinfo else date.replace(tzinfo=timezone.utc)


def _rfc_date(text: str) -> datetime:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text)
    # Python 3.10 raises either; a date out of range raises OverflowError.
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(
            f"date {text!r}: write it as 2026-05-20T08:00:00+00:00, as RFC 2822 or as seconds"
        ) from error


def _from_epoch(seconds: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(seconds), timezone.utc)
    except (OverflowError, OSError, ValueError) as error:
        raise UsageError(f"date {seconds}: too far from now") from error


def _git_author(root: Path, environ: Mapping[str, str]) -> str | None:
    """git's own identity for a commit in `root`; None when git is absent or has none.

    `git var` is not asked: it makes an identity up from the machine's name.
    """
    from codemods.engine.identity import setting

    name = environ.get("GIT_AUTHOR_NAME") or setting(root, "user.name", environ)
    address = environ.get("GIT_AUTHOR_EMAIL") or setting(root, "user.email", environ)
    author = f"{name} <{address}>"
    try:
        _author_parts(author)
    except UsageError:
        return None
    return author if name and address else None


def _encoded(field: str, text: str) -> str:
    """`text` as a header's value: itself when plain ASCII, else RFC 2047 words, folded."""
    if text.isascii() and text.isprintable() and "=?" not in text:
        return text
    from email.header import Header

    return Header(text, "utf-8", header_name=field).encode()
