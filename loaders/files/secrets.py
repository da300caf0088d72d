"""Secrets in texts: keys, tokens and passwords, found as whole spans by their own form or by the name before them.

Tokens with a prefix of their service, JWTs and private keys are secrets wherever they are. Everything else is one only
behind a name such as ``password`` or ``api_key``: hashes, UUIDs, commit ids and images in base64 look the same. Words
of documentation such as ``changeme`` or ``${TOKEN}`` are none.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from bisect import bisect, bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

PASSWORD: Final = "password"  # noqa: S105 -- the name of a kind
PRIVATE_KEY: Final = "private key"
CREDENTIALS: Final = "credentials"
KEY: Final = "key or token"

_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}\Z")
"""An encoded character of a URL, which may end right before a token."""
_RIGHT: Final = r"(?![A-Za-z0-9])"
_PEM: Final = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----|---- BEGIN SSH2 [A-Z ]*PRIVATE KEY ----"
)
_PEM_BODY: Final = re.compile(r"(?:[A-Za-z0-9+/=\s>|]|\\+[nr]|[A-Za-z-]+: [^\n]*\n){0,20000}")
_PEM_RUN: Final = re.compile(r"[A-Za-z0-9+/]{24}")
_LONGEST_PEM: Final = 65_536
_PUTTY: Final = re.compile(
    r"PuTTY-User-Key-File-\d: [^\n]{0,100}+\n(?:[^\n]{0,1000}+\n){0,200}?Private-MAC: ?[0-9a-fA-F]*"
)


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text, by its offsets, and what it is."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Form:
    """Secrets of one kind with a form of their own. A text without any of `anchors` has none.

    The secret is the group ``secret`` of the pattern, by default all of it.
    """

    kind: str
    anchors: Sequence[str]
    pattern: re.Pattern[str]
    is_random: bool = False
    """Whether its characters must also look random, since words may have the form as well."""
    is_spaced: bool = False
    """Whether there is white space in the form."""


_SHORTEST: Final = 15
"""Minimum length of a secret with a form of its own."""


def _form(kind: str, anchors: str, pattern: str, *, is_random: bool = False) -> _Form:
    return _Form(
        kind, anchors.split(), re.compile(pattern), is_random, is_spaced=r"\s" in pattern or r"[ \t]" in pattern
    )


_FORMS: Final = (
    _form("AWS access key", "AKIA", rf"AKIA[A-Z2-7]{{16}}{_RIGHT}"),
    _form("AWS access key", "ASIA", rf"ASIA(?=[A-Z]{{0,15}}[2-7])[A-Z2-7]{{16}}{_RIGHT}"),
    _form(
        "AWS secret key",
        "AKIA ASIA",
        r"A[KS]IA[A-Z2-7]{16}[\"'`|,;: \t]{1,8}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    _form("Google key", "AIza", r"AIza[0-9A-Za-z_-]{35,}"),
    _form("Google secret", "GOCSPX- ya29. 1//0", r"(?:GOCSPX-|ya29\.|1//0)[\w-]{20,}"),
    _form("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9_]{20,}"),
    _form("GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{30,}"),
    _form(
        "GitLab token",
        "glpat- glptt- gldt- glrt- glcbt- glsoat- glft- glimt- glagent- gloas-",
        r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas)-[\w-]{16,}(?:\.[\w.-]{2,})?",
    ),
    _form("Slack token", "xox xapp-", r"(?:xox[abceoprs]|xapp)(?:\.xox[a-z])?-(?=[\w-]{0,250}?\d)[\w-]{10,}"),
    _form("webhook", "hooks.slack.com", r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,}"),
    _form("webhook", "discord", r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{30,}"),
    _form("webhook", "webhook.office.com", r"https://[\w-]+\.webhook\.office\.com/webhookb2/[\w@/-]{40,}"),
    _form("Stripe key", "k_live_ k_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _form("Stripe key", "whsec_", r"whsec_[A-Za-z0-9+/=]{20,}"),
    _form("Twilio key", "SK", rf"SK[0-9a-f]{{32}}{_RIGHT}"),
    _form("SendGrid key", "SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _form("Mailgun key", "key-", rf"key-[0-9a-f]{{32}}{_RIGHT}"),
    _form("Mailchimp key", "-us", rf"[0-9a-f]{{32}}-us\d{{1,2}}{_RIGHT}"),
    _form("npm token", "npm_", r"npm_[A-Za-z0-9]{36,}"),
    _form("PyPI token", "pypi-", r"pypi-[\w-]{50,}"),
    _form("RubyGems key", "rubygems_", r"rubygems_[0-9a-f]{40,}"),
    _form("NuGet key", "oy2", rf"oy2[a-z0-9]{{43}}{_RIGHT}"),
    _form("Docker token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    _form("Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    _form("Anthropic key", "sk-ant-", r"sk-ant-[\w-]{20,}"),
    _form("OpenAI key", "sk-", r"sk-(?!ant-)[\w-]{20,}", is_random=True),
    _form("AI service key", "gsk_ xai- pplx- r8_", r"(?:gsk_|xai-|pplx-|r8_)[A-Za-z0-9]{36,}"),
    _form("Telegram token", ":AA", r"\d{8,10}:AA[\w-]{33}(?![\w-])"),
    _form("DigitalOcean token", "_v1_", r"do[opr]_v1_[0-9a-f]{40,}"),
    _form("Shopify token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}"),
    _form("Square token", "sq0", r"sq0(?:atp|csp)-[\w-]{22,}"),
    _form("Databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _form("Linear key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    _form("Notion token", "ntn_ secret_", r"(?:ntn_|secret_)[A-Za-z0-9]{40,}", is_random=True),
    _form("Atlassian token", "ATATT3 ATCTT3 ATBB", r"(?:ATATT3|ATCTT3|ATBB)[\w=-]{24,}"),
    _form("Vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{24,}"),
    _form("Terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{50,}"),
    _form("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _form("Heroku key", "HRKU-", r"HRKU-[\w-]{20,}"),
    _form("Grafana token", "glsa_ glc_", r"(?:glsa|glc)_[\w+/=]{30,}"),
    _form("New Relic key", "NRAK-", r"NRAK-[A-Z0-9]{24,}"),
    _form("Sentry token", "sntry", r"sntry[su]_[\w+/=-]{40,}"),
    _form("Postman key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _form("Supabase token", "sbp_", r"sbp_[0-9a-f]{40,}"),
    _form("Doppler token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,}"),
    _form("1Password token", "ops_eyJ", r"ops_eyJ[\w+/=-]{50,}"),
    _form("Figma token", "figd_ figo_ figu_ figr_", r"fig[dour]_[\w-]{30,}"),
    _form("Mapbox token", "sk.eyJ", r"sk\.eyJ[\w-]+\.[\w-]{15,}"),
    _form("PlanetScale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{30,}"),
    _form("Alibaba key", "LTAI", rf"LTAI[A-Za-z0-9]{{12,24}}{_RIGHT}", is_random=True),
    _form("Tencent key", "AKID", rf"AKID[A-Za-z0-9]{{32}}{_RIGHT}"),
    _form("Azure secret", "Q~", r"[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])"),
    _form("Azure key", "AccountKey= AccessKey=", r"(?:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    _form("Azure signature", "sig=", r"sig=(?P<secret>[A-Za-z0-9%+/]{40,}={0,2})"),
    _form("Netlify token", "nfp_", r"nfp_[A-Za-z0-9]{36,}"),
    _form("Tailscale key", "tskey-", r"tskey-[a-z]+-[\w-]{20,}"),
    _form("Pulumi token", "pul-", rf"pul-[0-9a-f]{{40}}{_RIGHT}"),
    _form("Fly token", "fo1_ fm1 fm2_", r"f(?:o1|m1[ar]|m2)_[\w+/=-]{40,}"),
    _form("JWT", "eyJ", r"eyJ[\w-]{8,1000}+\.eyJ[\w-]{8,}+\.[\w-]{10,}"),
    _form("JWT", "eyJ", r"eyJ[\w-]{15,1000}+\.[\w-]*+\.[\w-]{10,}+\.[\w-]{10,}+\.[\w-]{10,}"),
    _form(CREDENTIALS, "earer", r"[Bb]earer[ \t]+(?P<secret>[\w.~+/-]{16,}={0,2})", is_random=True),
    _form(PASSWORD, "curl", r"curl\b[^\n]{0,300}?\s(?:-u|--user)[ =]?[\"']?[\w.@+-]+:(?P<secret>[^\s\"'`]+)"),
    _form(
        PASSWORD,
        "mysql sshpass mariadb",
        r"(?:(?:mysql\w{0,40}|mariadb)\b[^\n]{0,200}?\s-p|sshpass\s+-p ?)[\"']?(?P<secret>[^\s\"'`-][^\s\"'`]{5,})",
    ),
)

_EXACT_FORMS: Final = tuple(form for form in _FORMS if not form.is_random and not form.is_spaced)
_DIVIDING: Final = re.compile(r"\*\*|[\u00ad\u200b-\u200d\u2060\ufeff]|(?<=[\w-])\\?\n[ \t]*(?=[\w-])")
_URL: Final = re.compile(r"://[^\s:/@\"'<>`]{0,100}:(?P<secret>[^\s/\"'<>`]{1,200})@(?=[\w\[.-])")
_PORT: Final = re.compile(r"\d{1,5}")
_BASIC: Final = re.compile(r"Basic[ \t]+(?P<secret>[A-Za-z0-9+/]{8,}={0,2})")
_SQL: Final = re.compile(r"\bidentified by\s+(?P<quote>['\"])(?P<secret>[^'\"\n]{4,200})(?P=quote)", re.IGNORECASE)
_NETRC: Final = re.compile(r"machine\s+\S+\s+login\s+\S+\s+password\s+(?P<secret>\S+)")

_PASSWORD_NAMES: Final = (
    "password", "passwort", "passwd", "passphrase", "passcode", "pwd", "_pw", "pass", "kennwort", "mot de passe",
    "contrase\u00f1a", "contrasena", "wachtwoord", "senha",
)  # fmt: skip
_KEY_NAMES: Final = ("key", "secret", "token", "credential")
"""The ends of the names of secrets. The word before `key` decides."""
_KEY_OF: Final = re.compile(
    r"(?:api|access|secret|private|signing|encryption|master|account|storage|auth|service|app|license)[ _.-]?\Z"
)
_LONGEST_NAME: Final = 40

_ASSIGNED: Final = re.compile(
    r"(?:[\"'`\]*_)]{0,4}(?:[ \t]{1,4}(?:for|of|to)[ \t][\w ./@-]{1,40}?)?[ \t]{0,20}(?:\([^()\n]{1,40}\)[ \t]{0,4})?"
    r"(?P<separator>=>|:=|===?|[:=|>]|\b(?:is|lautet)\b)[*_]{0,3}[ \t]{0,20}[*_]{0,3}"
    r"|[\"'][ \t]+value[ \t]*=[ \t]*(?=[\"'])"
    r"|(?P<blank>[ \t]{1,4})(?=[^\s|=:>]))"
    r"(?:(?P<prefix>[bfruBFRU]{0,2})(?P<quote>\\?[\"'`]{1,3})(?P<quoted>(?:(?!(?P=quote))[^\n]){1,400})(?P=quote)"
    r"|(?P<bare>[^\s\"'`<>|;{}\[\](][^\s`<|;]{3,400}))"
)
"""What follows the name of a secret: a separator and its value."""
_NEXT_LINE: Final = re.compile(
    r"[\"'`\]*_)]{0,4}(?:[ \t]{1,4}(?:for|of|to)[ \t][\w ./@-]{1,40}?)?(?:[ \t](?:is|was|lautet))?[ \t]{0,20}"
    r"(?P<separator>=>|:=|[:=])?[*_]{0,3}[ \t]{0,20}(?:[|>][+-]?[ \t]{0,20})?(?:\n[ \t]{0,40}){1,2}"
    r"(?P<fence>`{3}[^\n`]{0,20}\n[ \t]{0,40})?(?:[-*>+][ \t]{1,4})?"
    r"(?P<quote>[\"'`]{0,3})(?P<value>[^\s\"'`]{4,400})(?P=quote)[ \t]{0,20}(?=\n|\Z)"
)
"""What follows the name of a secret at the end of a line: its value, alone on the next line or behind a blank one."""
_OPTION: Final = re.compile(r"(?<!\S)--[\w-]*\Z")

_PLACEHOLDER: Final = re.compile(
    r"example|placeholder|x{4,}|\*{3,}|\.{3}|\u2026|\byour|your[_-]|change[_-]?me|redacted|dummy|<|>|\{\{|\$\{|\$\(|%\(|%[A-Z_]+%"
    r"|insert|replace[_-]|foobar|lorem",
    re.IGNORECASE,
)
_PLAIN_PASSWORDS: Final = frozenset(
    {"pass", "password", "passwd", "pwd", "pw", "secret", "user", "username", "token", "key", "test", "none", "null"}
)
_ALGORITHMS: Final = re.compile(
    r"(?:hmac-?)?(?:sha-?\d{1,3}|md5|base-?(?:16|32|58|64|85)(?:url)?|utf-?\d{1,2}|oauth-?2?|bcrypt|scrypt|argon2(?:id|i|d)?"
    r"|pbkdf2|aes-?\d{3}(?:-\w+)?|rsa-?\d{3,4}|x\.?509|[ehr]s(?:256|384|512)|ed25519|v\d{1,3}|(?:int|uint|float|char|varchar)\d{1,3})",
    re.IGNORECASE,
)
_CRYPT: Final = re.compile(r"\$(?:2[abxy]|5|6|1|y|apr1|argon2\w*)\$")
_REFERENCE: Final = re.compile(
    r"\$(?:[A-Za-z_]+\d?$|[{(])|%\w+%$|@\w+@$|&[A-Za-z_]+$|(?:~|\.{1,2})/|[A-Za-z_.]{3,}+\w*+\(|[A-Za-z_]\w*\([A-Za-z_][\w.]*\)?$|\d[\d_]*[)}\]]|[A-Za-z]:\\"
    r"|[a-z][a-z0-9+.-]*://|(?:vault|env|file|ref|arn|op|secretref|keychain|ssm):|![A-Za-z]+$|os\.environ|process\.env"
    r"|[A-Za-z_]\w*(?:\.\w+)*\[",
    re.IGNORECASE,
)
"""The start of a value that names where the secret is: a variable, a call, a path, a URL."""
_PIECE: Final = re.compile(r"[A-Za-z]+\d{0,2}|\d{1,4}|v\d+")
_PIECES: Final = re.compile(r"[._/:@+\\-]+")
_DATE_OR_NUMBER: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ][\d:.Z+-]*)?|v?[\d.,:/%x*+()-]+(?:[a-z]{1,3})?", re.IGNORECASE
)
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_CLOSING: Final = ",)]}\"'"
"""Signs behind a value that are not of it."""
_TRAILING: Final = f"{_CLOSING}.:"
_PARAMETER: Final = re.compile(r"[?&][\w.-]*\Z")
_LEAST_PASSWORD: Final = 6
_LEAST_KEY: Final = 12
_RATED: Final = 100
"""Characters of a value that are rated."""
_LEAST_ENTROPY: Final = 2.8
"""Bits for each character of a key."""
_MOST_ASCENDING: Final = 0.5

_TABLE_RULE: Final = re.compile(
    r"^[ \t>]{0,40}\|?[ \t]{0,40}:?-+:?[ \t]{0,200}(?:\|[ \t]{0,200}:?-+:?[ \t]{0,200})+\|?[ \t]{0,200}$", re.MULTILINE
)
_CELL: Final = re.compile(r"(?:\\\||[^|\n])+")
_COLUMN: Final = re.compile(r"[^\w\n]*(?:\w+[ _-]){0,3}\w+[^\w\n]*")
"""The heading of a column, of a few words."""


def find_secrets(text: str) -> list[Secret]:
    """Find the secrets in a text, in order. They do not overlap."""
    found = [*_find_blocks(text), *_find_forms(text)]
    found += _select(text, _URL, PASSWORD, lambda value: not _is_plain(value) and not _PORT.fullmatch(value))
    if "Basic" in text:
        found += _select(text, _BASIC, CREDENTIALS, _is_basic)
    folded = _fold(text)
    if names := sorted(_find_names(folded)):
        found += _find_assigned(text, names)
        found += _find_in_tables(text)
    if "machine" in text and "login" in text:
        found += _select(text, _NETRC, PASSWORD, lambda value: not _is_plain(value))
    if "identified by" in folded:
        found += _select(text, _SQL, PASSWORD, is_password)
    return _merge([*found, *_find_divided(text, found)])


def _find_divided(text: str, known: Sequence[Secret]) -> Iterator[Secret]:
    """Find secrets with a form of their own that bold, an invisible character or one end of a line divides."""
    at = length = 0
    pieces: list[str] = []
    starts: list[tuple[int, int]] = [(0, 0)]
    for mark in _DIVIDING.finditer(text):
        pieces.append(text[at : mark.start()])
        length += mark.start() - at
        at = mark.end()
        starts.append((length, at))
    if not at:
        return
    for secret in _find_forms("".join([*pieces, text[at:]]), _EXACT_FORMS):
        first, last = (starts[bisect(starts, (place, len(text))) - 1] for place in (secret.start, secret.end - 1))
        start, end = secret.start - first[0] + first[1], secret.end - last[0] + last[1]
        is_known = any(start < other.end and other.start < end for other in known)
        if end - start > secret.end - secret.start and not is_known:
            yield Secret(start, end, secret.kind)


def _fold(text: str) -> str:
    """Return a text in lower case, with the same offsets."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(low if len(low := each.lower()) == 1 else each for each in text)


def _find_names(folded: str) -> Iterator[tuple[int, bool]]:
    """Yield the ends of the names of secrets in a text in lower case, and whether each is the name of a password."""
    for name in (*_PASSWORD_NAMES, *_KEY_NAMES):
        place = folded.find(name)
        while place >= 0:
            end = place + len(name)
            after = folded[end : end + 1]
            before = folded[place - 1 : place]
            known = True
            if name == "pass":
                known = not after.isalnum() and (after == "=" or before in ("_", ".", "-"))
            elif name == "_pw":
                known = not after.isalnum()
            elif name == "key":
                known = _KEY_OF.search(folded, max(0, place - _LONGEST_NAME), place) is not None
            if known:
                end += 5 if folded.startswith("_base", end) else after == "s"
                yield end, name in _PASSWORD_NAMES
            place = folded.find(name, end)


def is_password(value: str) -> bool:
    """Return whether a value that a text calls a password is one, and not a word, a name or a reference to one."""
    if _CRYPT.match(value):
        return True
    if len(value) < _LEAST_PASSWORD or _is_plain(value) or _REFERENCE.match(value) or _ALGORITHMS.fullmatch(value):
        return False
    if value.startswith("/") and "/" in value[1:]:
        return False
    letters = sum(map(str.isalpha, value))
    digits = sum(map(str.isdigit, value))
    if digits == len(value):
        return not _is_ascending(value)
    if not letters or _DATE_OR_NUMBER.fullmatch(value) or _EMAIL.fullmatch(value):
        return False
    if digits:
        pieces = _PIECES.split(value)
        return len(pieces) == 1 or not all(map(_PIECE.fullmatch, pieces))
    signs = sum(not each.isalnum() and each not in "-_./'\u2019, " for each in value[:-1])
    return (signs > 0 and " " not in value) or _mixes_case(value)


def is_key(value: str) -> bool:
    """Return whether a value that a text calls a key or token is one: random characters, not a name."""
    rated = value[:_RATED]
    if len(value) < _LEAST_KEY or " " in value or not (any(map(str.isdigit, rated)) or _mixes_case(rated)):
        return False
    if _is_plain(rated) or _REFERENCE.match(value) or _DATE_OR_NUMBER.fullmatch(value) or _EMAIL.fullmatch(value):
        return False
    return not _ALGORITHMS.fullmatch(value) and _is_random(rated)


def _is_random(value: str) -> bool:
    """Return whether the characters look random: letters among digits, or changing case, in no sequence."""
    if _is_ascending(value) or measure_entropy(value) < _LEAST_ENTROPY:
        return False
    if all(map(_PIECE.fullmatch, filter(None, _PIECES.split(value)))) and not _mixes_case(value):
        return False
    letters = sum(each.isalpha() for each in value)
    return (letters > 1 and sum(map(str.isdigit, value)) > 1) or _mixes_case(value)


def measure_entropy(value: str) -> float:
    """Measure Shannon's entropy of the characters of a value, in bits for each."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


def _is_plain(value: str) -> bool:
    """Return whether a value is a word of documentation in place of a secret."""
    if value.lower() in _PLAIN_PASSWORDS or _PLACEHOLDER.search(value) or value.startswith("{"):
        return True
    return len(set(value.lower())) < max(2, min(4, len(value) // 3))


def _is_ascending(value: str) -> bool:
    """Return whether most characters follow the one before, as in ``1234567890abcdef``."""
    plain = value.lower()
    steps = sum(
        ord(after) - ord(before) in (0, 1)
        or (before, after) in (("9", "0"), ("9", "a"), ("0", "a"), ("f", "0"), ("f", "1"))
        for before, after in pairwise(plain)
    )
    return steps > _MOST_ASCENDING * (len(value) - 1)


def _mixes_case(value: str) -> bool:
    """Return whether letters change their case more often than in names such as ``clientSecretName``."""
    letters = [each for each in value if each.isalpha()]
    if len(letters) < 10:
        return False
    changes = sum(one.islower() != other.islower() for one, other in pairwise(letters))
    return changes * 5 > len(letters) * 2


def _find_blocks(text: str) -> Iterator[Secret]:
    """Find private keys from their first line to their last; one without a last line, to the end of its characters."""
    if "PRIVATE KEY" in text:
        end = 0
        for begin in _PEM.finditer(text):
            if begin.start() < end:
                continue
            last = f"-----END {begin['label']}-----" if begin["label"] else "---- END SSH2"
            place = text.find(last, begin.end(), begin.end() + _LONGEST_PEM)
            following = _PEM.search(text, begin.end(), begin.end() + _LONGEST_PEM)
            if place >= 0 and (following is None or place < following.start()):
                end = place + len(last)
            else:
                body = _PEM_BODY.match(text, begin.end(), following.start() if following else len(text))
                end = body.end() if body is not None else begin.end()
                end = begin.end() + len(text[begin.end() : end].rstrip())
            if _PEM_RUN.search(text, begin.end(), end):  # a mention of the format has no key
                yield Secret(begin.start(), end, PRIVATE_KEY)
    if "PuTTY-User-Key-File" in text:
        for match in _PUTTY.finditer(text):
            yield Secret(*match.span(), PRIVATE_KEY)


def _find_forms(text: str, forms: Sequence[_Form] | None = None) -> Iterator[Secret]:
    # Few words are long enough, so that it is quick to search them for all anchors.
    words = "\n".join(word for word in text.split() if len(word) >= _SHORTEST)
    for form in _FORMS if forms is None else forms:
        if any(anchor in (text if form.is_spaced else words) for anchor in form.anchors):
            for secret in _select(text, form.pattern, form.kind, _is_random_token if form.is_random else _is_token):
                before = text[max(0, secret.start - 3) : secret.start]
                if "secret" in form.pattern.groupindex or not before[-1:].isalnum() or _ENCODED.search(before):
                    yield secret


def _is_token(value: str) -> bool:
    return not _is_plain(value) and not _is_ascending(value)


def _is_random_token(value: str) -> bool:
    return _is_token(value) and _is_random(value)


def _is_basic(value: str) -> bool:
    """Return whether a value is a name and a password in base64."""
    try:
        name, colon, password = b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return False
    return bool(colon and name and password) and not _is_plain(password)


def _find_assigned(text: str, names: Iterable[tuple[int, bool]]) -> Iterator[Secret]:
    """Find the values of names such as ``password`` and ``api_key`` in configurations, code and sentences."""
    end = 0
    for name_end, is_named_password in names:
        match = _ASSIGNED.match(text, name_end) if name_end > end else None
        if match is None:
            below = _NEXT_LINE.match(text, name_end) if name_end > end else None
            if below is not None and _is_value_below(below, is_named_password):
                end = below.end("value")
                yield Secret(below.start("value"), end, PASSWORD if is_named_password else KEY)
            continue
        quoted = match["quoted"] is not None
        # A name and a value with a blank between them are SQL, or an option of a command.
        if (
            match["blank"]
            and not (quoted and is_named_password)
            and not _OPTION.search(text, max(0, name_end - _LONGEST_NAME), name_end)
        ):
            continue
        spoken = match["separator"] in ("is", "lautet")
        if spoken and not is_named_password:
            continue
        value = match["quoted"] if quoted else match["bare"]
        if not quoted:
            if match["separator"] == "=" and _PARAMETER.search(text, max(0, name_end - _LONGEST_NAME), name_end):
                value = value.partition("&")[0]
            value = value.partition("\\n")[0].rstrip(_TRAILING if spoken else _CLOSING)
            if text[match.start("bare") - 1] in "*_":  # bold
                value = value.rstrip("*_")
        elif "{" in value and "f" in match["prefix"].lower():
            continue
        # A sentence may end with the value. Its full stop does not count, but is in the span unless it is spoken.
        if (is_password if is_named_password else is_key)(value.rstrip(_TRAILING)):
            start = match.start("quoted" if quoted else "bare")
            end = start + len(value)
            yield Secret(start, end, PASSWORD if is_named_password else KEY)


def _is_value_below(found: re.Match[str], is_named_password: bool) -> bool:
    """Return whether the line below the name of a secret is its value: behind a separator, or marked as code."""
    value = found["value"]
    if not (found["separator"] or found["quote"] or found["fence"]) or value.endswith((":", ",", "{", "[")):
        return False
    return (is_password if is_named_password else is_key)(value.rstrip(_TRAILING))


def _find_in_tables(text: str) -> Iterator[Secret]:
    """Find the values below the headings of tables that name passwords or keys."""
    for rule in _TABLE_RULE.finditer(text):
        above = text.rfind("\n", 0, max(0, rule.start() - 1)) + 1
        heads = list(_CELL.finditer(text, above, rule.start()))
        named = {place: _is_password_column(each[0]) for place, each in enumerate(heads)}
        columns = {place: kind for place, kind in named.items() if kind is not None}
        start = rule.end() + 1
        while columns and start < len(text):
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            if "|" not in text[start:end]:
                break
            for place, cell in enumerate(_CELL.finditer(text, start, end)):
                if place in columns:
                    value = cell[0].strip(" \t`*")
                    at = cell.start() + cell[0].find(value)
                    if (is_password if columns[place] else is_key)(value):
                        yield Secret(at, at + len(value), PASSWORD if columns[place] else KEY)
            start = end + 1


def _is_password_column(heading: str) -> bool | None:
    """Return whether the heading of a column names passwords; None if it names neither passwords nor keys."""
    if _COLUMN.fullmatch(heading) is None:
        return None
    folded = _fold(heading)
    end = len(re.sub(r"(?<!\W)\W++\Z", "", folded))
    return next((kind for name_end, kind in _find_names(folded) if name_end == end), None)


def _select(text: str, pattern: re.Pattern[str], kind: str, is_kept: Callable[[str], bool]) -> Iterator[Secret]:
    group = "secret" if "secret" in pattern.groupindex else 0
    for match in pattern.finditer(text):
        if is_kept(match[group]):
            yield Secret(*match.span(group), kind)


def _merge(found: Sequence[Secret]) -> list[Secret]:
    """Join secrets that overlap. The kind is that of the one found first, which has the most exact form."""
    ranked = sorted(enumerate(found), key=lambda item: (item[1].start, item[1].end))
    merged: list[tuple[int, Secret]] = []
    for rank, secret in ranked:
        if merged and secret.start < merged[-1][1].end:
            before, last = merged[-1]
            kind = last.kind if before < rank else secret.kind
            merged[-1] = min(before, rank), Secret(last.start, max(last.end, secret.end), kind)
        else:
            merged.append((rank, secret))
    return [secret for _, secret in merged]


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets: each is replaced by its kind in brackets. `kinds` counts them."""

    text: str
    kinds: Counter[str]
    _before: Sequence[int] = ()
    """The offsets at which the secrets began and ended."""
    _after: Sequence[int] = ()
    """The same offsets in the new text."""

    def translate(self, offset: int) -> int:
        """Return the offset in the new text. One within a secret is that of the end of its replacement."""
        place = bisect_left(self._before, offset)
        if place < len(self._before) and (place % 2 or self._before[place] == offset):
            return self._after[place]
        return offset if not place else self._after[place - 1] + offset - self._before[place - 1]


def redact(text: str, *, keeps_lines: bool = False) -> Redacted:
    """Replace the secrets of a text by their kinds: ``[redacted GitHub token]``.

    With `keeps_lines`, the replacement of a secret of several lines is followed by as many ends of lines.
    """
    secrets = find_secrets(text)
    pieces: list[str] = []
    before: list[int] = []
    after: list[int] = []
    end = length = 0
    for secret in secrets:
        shown = f"[redacted {secret.kind}]"
        if keeps_lines:
            shown += "\n" * text.count("\n", secret.start, secret.end)
        start = length + secret.start - end
        length = start + len(shown)
        pieces += [text[end : secret.start], shown]
        before += [secret.start, secret.end]
        after += [start, length]
        end = secret.end
    return Redacted("".join([*pieces, text[end:]]), Counter(secret.kind for secret in secrets), before, after)
