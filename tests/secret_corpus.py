"""A corpus of notes with secrets, made when it is read: random values in lines as teams write them, and lines without.

All names and values are invented. No value is in this file, so that nobody has to ask whether it is one.
"""

from __future__ import annotations

import base64
import hashlib
import random
import re
import string
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_ALNUM: Final = string.ascii_letters + string.digits
_HEX: Final = "0123456789abcdef"
_BASE32: Final = string.ascii_uppercase + "234567"
_BASE64: Final = f"{_ALNUM}+/"
_URL64: Final = f"{_ALNUM}-_"
_SIGNS: Final = "!#%*+=?^"


@dataclass(frozen=True, slots=True)
class Case:
    """A text and the spans of its secrets."""

    text: str
    secrets: list[tuple[int, int]]


def _build_values(chance: random.Random) -> dict[str, Callable[[], str]]:
    def draw(letters: str, size: int) -> str:
        return "".join(chance.choice(letters) for _ in range(size))

    def encode(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def word(size: int = 6) -> str:
        return "".join(
            chance.choice(("b", "d", "f", "k", "l", "m", "n", "r", "t")) + chance.choice("aeiou")
            for _ in range(size // 2)
        )

    def password() -> str:
        """Return a password as people make them."""
        return chance.choice(
            (
                lambda: f"{word().title()}{chance.randint(10, 99)}{chance.choice(_SIGNS)}",
                lambda: f"{word(4)}-{word(4)}{chance.choice(_SIGNS)}{chance.randint(100, 999)}{word(4).upper()}",
                lambda: draw(f"{_ALNUM}{_SIGNS}", 14) + str(chance.randint(0, 9)),
                lambda: f"{word()}{chance.randint(1, 99):02}",
            )
        )()

    def block(label: str) -> str:
        body = "\n".join(draw(_BASE64, 64) for _ in range(12))
        return f"-----BEGIN {label}-----\n{body}\n{draw(_BASE64, 42)}==\n-----END {label}-----"

    def jwt() -> str:
        claims = f'{{"sub":"{draw(string.digits, 10)}","iat":{draw(string.digits, 9)}}}'
        head = '{"alg":"HS256","typ":"JWT"}'
        return f"{encode(head)}.{encode(claims)}.{draw(_URL64, 43)}"

    return {
        "aws": lambda: f"AKIA{draw(_BASE32, 16)}",
        "aws_secret": lambda: draw(_BASE64, 40),
        "github": lambda: f"ghp_{draw(_ALNUM, 36)}",
        "github_pat": lambda: f"github_pat_{draw(_ALNUM, 22)}_{draw(_ALNUM, 59)}",
        "gitlab": lambda: f"glpat-{draw(_URL64, 20)}",
        "slack": lambda: f"xoxb-{draw(string.digits, 12)}-{draw(string.digits, 13)}-{draw(_ALNUM, 24)}",
        "slack_hook": lambda: (
            f"https://hooks.slack.com/services/T{draw(_BASE32, 8)}/B{draw(_BASE32, 8)}/{draw(_ALNUM, 24)}"
        ),
        "stripe": lambda: f"sk_live_{draw(_ALNUM, 24)}",
        "google": lambda: f"AIza{draw(_URL64, 35)}",
        "sendgrid": lambda: f"SG.{draw(_URL64, 22)}.{draw(_URL64, 43)}",
        "npm": lambda: f"npm_{draw(_ALNUM, 36)}",
        "pypi": lambda: f"pypi-AgEIcHlwaS5vcmc{draw(_URL64, 150)}",
        "openai": lambda: f"sk-proj-{draw(_ALNUM, 48)}",
        "anthropic": lambda: f"sk-ant-api03-{draw(_URL64, 93)}AA",
        "hugging": lambda: f"hf_{draw(string.ascii_letters, 34)}",
        "telegram": lambda: f"{draw('123456789', 10)}:AA{draw(_URL64, 33)}",
        "twilio": lambda: f"SK{draw(_HEX, 32)}",
        "vault": lambda: f"hvs.{draw(_URL64, 90)}",
        "digitalocean": lambda: f"dop_v1_{draw(_HEX, 64)}",
        "jwt": jwt,
        "rsa": lambda: block("RSA PRIVATE KEY"),
        "openssh": lambda: block("OPENSSH PRIVATE KEY"),
        "pgp": lambda: block("PGP PRIVATE KEY BLOCK"),
        "hex": lambda: draw(_HEX, 32),
        "uuid": lambda: str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        "random": lambda: draw(_ALNUM, chance.choice((20, 24, 32, 40))) + str(chance.randint(0, 9)),
        "azure": lambda: base64.b64encode(chance.randbytes(64)).decode(),
        "password": password,
        "basic": lambda: base64.b64encode(f"svc:{password()}".encode()).decode(),
    }


WITH_SECRETS: Final = (
    # configuration
    "[default]\naws_access_key_id = {aws}\naws_secret_access_key = {aws_secret}\nregion = eu-north-1\n",
    "AWS_ACCESS_KEY_ID={aws}\nAWS_SECRET_ACCESS_KEY={aws_secret}\n",
    'AccessKeyId: "{aws}"\nSecretAccessKey: "{aws_secret}"\n',
    "User name,Access key ID,Secret access key\nharbour-bot,{aws},{aws_secret}\n",
    "GITHUB_TOKEN={github}\n",
    "    env:\n      GH_TOKEN: {github_pat}\n",
    'machine github.com\n  login harbour-bot\n  password {github}\n',
    "//registry.npmjs.org/:_authToken={npm}\n",
    "[pypi]\nusername = __token__\npassword = {pypi}\n",
    "db:\n  host: db.ferrowick.test\n  user: tides\n  password: {password}\n",
    'database.password="{password}"\n',
    "spring.datasource.password={password}\n",
    "DATABASE_URL=postgres://tides:{password}@db.ferrowick.test:5432/tides\n",
    "mongodb+srv://pump:{password}@cluster0.ferrowick.test/tides?retryWrites=true\n",
    "amqp://pump:{password}@queue.ferrowick.test/\n",
    "redis://:{password}@cache.ferrowick.test:6379/0\n",
    "Server=tcp:sql.ferrowick.test,1433;Database=tides;User ID=pump;Password={password};Encrypt=True;\n",
    "jdbc:mysql://db.ferrowick.test/tides?user=pump&password={password}&useSSL=true\n",
    "DefaultEndpointsProtocol=https;AccountName=ferrowick;AccountKey={azure};EndpointSuffix=core.windows.net\n",
    '{{"client_id": "tide-web", "client_secret": "{random}"}}\n',
    '{{"user": "anna", "password": "{password}"}}\n',
    "api_key: {hex}\n",
    "apikey = '{uuid}'\n",
    "X-Api-Key: {random}\n",
    "<configuration><password>{password}</password></configuration>\n",
    '<add key="PumpApiKey" value="{random}" />\n',
    "secret_key_base: {hex}{hex}\n",
    "JWT_SECRET={random}\n",
    "ENCRYPTION_KEY={azure}\n",
    "TELEGRAM_BOT={telegram}\n",
    "SLACK_WEBHOOK={slack_hook}\n",
    # code
    'client = Client(api_key="{openai}")\n',
    'client = Client("{anthropic}")\n',
    'const token = "{slack}";\n',
    'stripe.api_key = "{stripe}"\n',
    'private static final String PASSWORD = "{password}";\n',
    'connect(host="db", user="tides", password="{password}")\n',
    'login("anna", token="{hugging}")\n',
    "CREATE USER pump IDENTIFIED BY '{password}';\n",
    "ALTER ROLE pump WITH PASSWORD '{password}';\n",
    'headers = {{"Authorization": "Bearer {random}"}}\n',
    'headers = {{"Authorization": "Bearer {jwt}"}}\n',
    "Authorization: Basic {basic}\n",
    # commands
    "curl -u pump:{password} https://pumps.ferrowick.test/state\n",
    "curl -H 'Authorization: Bearer {random}' https://pumps.ferrowick.test/state\n",
    "curl https://pumps.ferrowick.test/state?api_key={random}&pump=4\n",
    "mysql -u pump -p{password} tides\n",
    "sshpass -p {password} ssh pump@lock.ferrowick.test\n",
    "export SENDGRID={sendgrid}\n",
    "docker login -u harbour -p {github} ghcr.io\n",
    "tool --token {random} --verbose\n",
    "vault login {vault}\n",
    "doctl auth init -t {digitalocean}\n",
    "git clone https://{github}@github.com/ferrowick/tides.git\n",
    "git clone https://harbour:{gitlab}@git.ferrowick.test/tides.git\n",
    # notes
    "The password of the pump house is {password}.\n",
    "Wi-Fi in the loft: network `ferrowick`, password `{password}`.\n",
    "- Login: anna\n- Password: {password}\n",
    "**Password:** `{password}`\n",
    "Passwort: {password}\n",
    "Use the key {google} for the map.\n",
    "Ask for access, or use {twilio} until Friday.\n",
    "password:\n  {password}\n",
    "db:\n  password: |\n    {password}\n",
    "Password:\n\n{password}\n\nPlease change it.\n",
    "**Password**\n`{password}`\n",
    "The password of the loft is:\n\n```\n{password}\n```\n",
    "API key:\n{random}\n",
    "| account | password |\n|---|---|\n| anna | {password} |\n| bert | {password} |\n",
    "| service | API key | owner |\n| --- | --- | --- |\n| maps | {random} | anna |\n",
    "The old token (now revoked?) was {github}.\n",
    "{rsa}\n",
    "The key of the lock:\n\n```\n{openssh}\n```\n",
    "{pgp}\n",
    '"key": "-----BEGIN PRIVATE KEY-----\\n{aws_secret}{aws_secret}\\n{aws_secret}\\n-----END PRIVATE KEY-----\\n"\n',
    "Session cookie for the tests: {jwt}\n",
)  # fmt: skip
"""Texts whose fields are secrets, each of them."""

MISSED: Final = (
    "Log in as anna / {password}, then open the drain.\n",
    "pump house wifi ferrowick {password}\n",
    "Keep this: {random}\n",
)
"""Texts whose secrets nothing marks. They are in the corpus, and are expected to be missed."""

WITHOUT_SECRETS: Final = (
    "commit {sha1}\nAuthor: Anna <anna@ferrowick.test>\n",
    "sha256: {sha256}\n",
    "The checksum of the release is {sha256}.\n",
    "Fixed in {sha1} and {short}.\n",
    "id: {uuid}\n",
    "https://pumps.ferrowick.test/runs/{uuid}/log\n",
    "![gauge](data:image/png;base64,{image})\n",
    "integrity sha512-{image64}==\n",
    '  "resolved": "https://registry.ferrowick.test/tide-1.2.3.tgz#{sha1}",\n',
    "ETag: \"{hex}\"\nContent-MD5: {image24}==\n",
    "password: ${{DB_PASSWORD}}\n",
    "password: <your password>\n",
    "password:\n  min_length: 12\n  rotation: 90d\n",
    "password:\n  valueFrom:\n    secretKeyRef:\n      name: db-password-2\n",
    "## Password\n\nRotation2026\n",
    "Password:\n\nAsk Anna for it.\n",
    "passwords:\n  - length\n  - rotation\n",
    "token:\n{sha1}0 files\n",
    "The token:\n\n- step-1\n- step-2\n",
    "password = os.environ['DB_PASSWORD']\n",
    "password: {{{{ vault.db_password }}}}\n",
    "PASSWORD=changeme\n",
    "password: example\n",
    "password: ********\n",
    "API_KEY=your-api-key-here\n",
    "api_key: xxxxxxxxxxxxxxxxxxxxxxxx\n",
    "token: YOUR_TOKEN_1234\n",
    "GITHUB_TOKEN: ${{{{ secrets.GITHUB_TOKEN }}}}\n",
    "export AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\n",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
    "https://user:password@host/path is the form of the address.\n",
    "postgres://user:pass@localhost/db\n",
    "Passwords must have at least 12 characters, 2 digits and a sign.\n",
    "The password is case-sensitive.\n",
    "Password: 8-64 characters\n",
    "The token is valid for 3600 seconds; max_tokens=4096.\n",
    "next_page_token: page-2-of-10\n",
    "password_hash = hash(password, rounds=12)\n",
    "if password != confirmation: raise Error\n",
    "secretName: tide-db-credentials-v2\n",
    "existingSecret: tide-db-credentials\n",
    "token = tokens[index + 1]\n",
    "secret = get_secret('tides/db')\n",
    "password = getpass('Password: ')\n",
    "type Token struct {{ Kind TokenKind; Start int }}\n",
    "password_file: /run/secrets/db_password\n",
    "PGPASSFILE=~/.pgpass\n",
    '{{"password": {{"type": "string", "minLength": 8}}}}\n',
    '"password": "Enter the password of the pump house"\n',
    "-----BEGIN CERTIFICATE-----\n{image64}\n{image64}\n-----END CERTIFICATE-----\n",
    "-----BEGIN PUBLIC KEY-----\n{image64}\n-----END PUBLIC KEY-----\n",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{image43} anna@ferrowick\n",
    "A key file begins with -----BEGIN RSA PRIVATE KEY----- and ends with -----END RSA PRIVATE KEY-----.\n",
    "The primary key: user_id, tide_id. The foreign key: pump_4.\n",
    "Access key: ask the harbour master (room 12b).\n",
    "| field | type |\n|---|---|\n| password | string |\n| token | uuid4 |\n",
    "| key | value |\n|---|---|\n| colour | blue4 |\n",
    "Signing algorithm of the token: RS256\n",
    "password_encoding: utf-8, api_key_header: X-Api-Key\n",
    "Basic authentication is described in chapter 4. Basic pumps are in chapter 5.\n",
    "Bearer tokens are explained in chapter 4.\n",
    "sk-learn-pipeline-for-tide-tables and task-sk-tables-of-the-harbour\n",
    "key-value store, public_key: {image43}\n",
    "version: 2026.11.23-rc1, build {short}\n",
    "The reading at 04:12 was 6.41 m; at 16:37 it was 6.52 m (gauge 0x7f3a).\n",
    "pass: 212/214 tests, skipped: 2\n",
    "arn:aws:iam::123456789012:role/tide-reader\n",
    "ISBN 978-3-16-148410-0, IBAN DE89 3704 0044 0532 0130 00\n",
    "secrets: [db-password, api-key]\n",
    "Where is the secret? It is in the vault (tides/db, field 3).\n",
    "Authorization: Bearer <token>\n",
    "curl -u user:password https://host\n",
    "docker run -p 8080:80 tides && mysql -u pump -p tides\n",
    "token_endpoint: https://login.ferrowick.test/oauth2/v2.0/token\n",
    "Tokens: 1,204 in, 388 out (model tide-7b-v2)\n",
    "const tokenTypes = ['keyword', 'string'];\n",
    "password reset: https://ferrowick.test/reset?step=2\n",
)  # fmt: skip

_FIELD: Final = re.compile(r"\{(\w+)\}|\{\{|\}\}")


def build_corpus(seed: int = 18, rounds: int = 3) -> list[Case]:
    """Build the cases with secrets, `rounds` values for each, those expected to be missed, and those without."""
    chance = random.Random(seed)
    values = _build_values(chance)
    plain = {
        "sha1": lambda: hashlib.sha1(chance.randbytes(8), usedforsecurity=False).hexdigest(),
        "sha256": lambda: hashlib.sha256(chance.randbytes(8)).hexdigest(),
        "short": lambda: f"{chance.getrandbits(28):07x}",
        "hex": values["hex"],
        "uuid": values["uuid"],
        "image": lambda: base64.b64encode(chance.randbytes(600)).decode(),
        "image64": lambda: base64.b64encode(chance.randbytes(48)).decode(),
        "image43": lambda: base64.b64encode(chance.randbytes(32)).decode()[:43],
        "image24": lambda: base64.b64encode(chance.randbytes(16)).decode()[:22],
    }
    cases = [_fill(text, values, secret=True) for _ in range(rounds) for text in (*WITH_SECRETS, *MISSED)]
    return cases + [_fill(text, plain, secret=False) for _ in range(rounds) for text in WITHOUT_SECRETS]


def _fill(text: str, values: dict[str, Callable[[], str]], *, secret: bool) -> Case:
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    length = end = 0
    for match in _FIELD.finditer(text):
        said = values[match[1]]() if match[1] else match[0][0]
        pieces += [text[end : match.start()], said]
        length += match.start() - end
        if match[1] and secret:
            spans.append((length, length + len(said)))
        length += len(said)
        end = match.end()
    return Case("".join([*pieces, text[end:]]), spans)
