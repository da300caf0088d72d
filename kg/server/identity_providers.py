"""Identity providers: FastMCP's classes for OAuth and OpenID Connect, from ``FASTMCP_SERVER_AUTH`` and its variables.

FastMCP 2 read these variables itself, and FastMCP 4 does not. ``FASTMCP_SERVER_AUTH`` is a name of `PROVIDERS` or the
path of a class; ``FASTMCP_SERVER_AUTH_NAME_OPTION`` is an argument of the class. An unknown, missing or invalid value
is an error: a server must never start open because of a typing error. ``QUADCITE_JWT_*`` accepts JWTs as well.

All mounts are resources of one server. Their metadata (RFC 9728) name one authorization server, and a token for one of
them (RFC 8707) is accepted by all: `ManyResources` widens FastMCP's proxy, which knows one resource.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from fastmcp.server.auth import AuthProvider, MultiAuth, OAuthProxy, RemoteAuthProvider
from fastmcp.server.auth.jwt_issuer import derive_jwt_key
from fastmcp.server.auth.providers.introspection import IntrospectionTokenVerifier
from fastmcp.server.auth.providers.jwt import JWTVerifier
from joserfc import jwk
from joserfc.errors import JoseError
from mcp.server.auth.provider import AuthorizationParams
from mcp.server.auth.routes import create_protected_resource_routes
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyHttpUrl, TypeAdapter, ValidationError
from starlette.routing import Route

from kg.data_directory import DataDirectory
from kg.errors import InvalidInputError
from kg.server.auth import parse_host
from kg.server.authentication import Accounts
from kg.server.jwt_tokens import JwtVerifier, fetch_keys
from kg.settings import Settings
from kg.text import quoted
from kg.tools.mounts import MOUNTS

VARIABLE: Final = "FASTMCP_SERVER_AUTH"
CALLBACK: Final = "/login/callback"
"""Where a browser returns that signs in on a page (`kg.server.pages.oauth_sign_in`)."""
_CLASSES: Final = "fastmcp.server.auth.providers"
PROVIDERS: Final = {
    "AUTH0": f"{_CLASSES}.auth0.Auth0Provider",
    "AUTHKITPROVIDER": f"{_CLASSES}.workos.AuthKitProvider",
    "AWS_COGNITO": f"{_CLASSES}.aws.AWSCognitoProvider",
    "AZURE": f"{_CLASSES}.azure.AzureProvider",
    "CLERK": f"{_CLASSES}.clerk.ClerkProvider",
    "DESCOPEPROVIDER": f"{_CLASSES}.descope.DescopeProvider",
    "DISCORD": f"{_CLASSES}.discord.DiscordProvider",
    "GITHUB": f"{_CLASSES}.github.GitHubProvider",
    "GOOGLE": f"{_CLASSES}.google.GoogleProvider",
    "INTROSPECTION": f"{_CLASSES}.introspection.IntrospectionTokenVerifier",
    "JWT": f"{_CLASSES}.jwt.JWTVerifier",
    "KEYCLOAK": f"{_CLASSES}.keycloak.KeycloakAuthProvider",
    "OAUTH": "fastmcp.server.auth.OAuthProxy",
    "OCI": f"{_CLASSES}.oci.OCIProvider",
    "OIDC": "fastmcp.server.auth.oidc_proxy.OIDCProxy",
    "PROPELAUTH": f"{_CLASSES}.propelauth.PropelAuthProvider",
    "SCALEKITPROVIDER": f"{_CLASSES}.scalekit.ScalekitProvider",
    "SUPABASE": f"{_CLASSES}.supabase.SupabaseProvider",
    "WORKOS": f"{_CLASSES}.workos.WorkOSProvider",
}
"""The classes by the names that FastMCP 2 had for their variables, and by those of the two general ones."""
_JWT_OPTIONS: Final = ("JWKS_URI", "ISSUER", "AUDIENCE", "ALGORITHM", "REQUIRED_SCOPES", "PUBLIC_KEY", "BASE_URL")
_OPTIONS: Final = frozenset({"str", "int", "bool", "float", "AnyHttpUrl", "list", "dict"})
"""The types of arguments that can be the text of a variable."""


class ManyResources(OAuthProxy):
    """A proxy whose clients may ask for a token for any of several resources of the server."""

    resources: frozenset[str] = frozenset()

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Begin an authorization for one of the resources. FastMCP refuses any other."""
        if params.resource is not None and params.resource.rstrip("/") in self.resources:
            params = params.model_copy(update={"resource": str(self._resource_url)})
        return await super().authorize(client, params)


def add_provider(
    accounts: Accounts, settings: Settings, variables: Mapping[str, str], directory: DataDirectory
) -> Accounts:
    """Build the identity provider of the settings, if there is one, and return the accounts with it and its routes.

    Raises InvalidInputError, which names the variable, for values that are missing or wrong.
    """
    provider, settings = _build(settings, variables, directory)
    if provider is None:
        return replace(accounts, settings=settings)
    origin = str(settings.public_url).rstrip("/") if settings.public_url is not None else ""
    routes = _build_routes(provider, origin) if origin else []
    return replace(accounts, settings=settings, provider=provider, routes=tuple(routes))


def find_authorization_server(provider: AuthProvider | None) -> OAuthProxy | None:
    """Find the proxy with which a browser can sign in on a page."""
    server = provider.server if isinstance(provider, MultiAuth) else provider
    return server if isinstance(server, OAuthProxy) else None


def _build(
    settings: Settings, variables: Mapping[str, str], directory: DataDirectory
) -> tuple[AuthProvider | None, Settings]:
    given = {name: value for name, value in variables.items() if name.startswith(VARIABLE)}
    wanted = given.pop(VARIABLE, "").strip()
    if not wanted:
        if given:
            raise InvalidInputError(f"{min(given)} is set, but {VARIABLE} is not. Valid: {', '.join(PROVIDERS)}.")
        verifier = _build_verifier(settings)
        return (None if verifier is None else _advertise(verifier, settings)), settings
    name = next((name for name, path in PROVIDERS.items() if wanted in (name, name.lower(), path)), None)
    path = PROVIDERS[name] if name is not None else wanted
    prefix = f"{VARIABLE}_{name or path.split('.')[-2 if '.' in path else 0].upper()}_"
    options = {each.removeprefix(prefix): value for each, value in given.items() if each.startswith(prefix)}
    if strays := sorted(each for each in given if not each.startswith(prefix)):
        raise InvalidInputError(f"{strays[0]} is not for {VARIABLE}={wanted}, whose variables begin with {prefix}")
    if name == "JWT":
        settings = _read_jwt_options(settings, options, prefix)
        verifier = _build_verifier(settings, options)
        return (None if verifier is None else _advertise(verifier, settings)), settings
    built, settings = _construct(_import_class(path), options, prefix, settings, directory)
    verifier = _build_verifier(settings)
    if verifier is None or _takes_verifier(type(built)):
        return built, settings
    return MultiAuth(server=built, verifiers={"jwt": verifier}), settings


def _import_class(path: str) -> type[AuthProvider]:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, ValueError, AttributeError):
        found = None
    if not (inspect.isclass(found) and issubclass(found, AuthProvider)):
        raise InvalidInputError(
            f"{VARIABLE}={quoted(path)} is not an authentication provider. Valid: {', '.join(PROVIDERS)}, or the path "
            "of a class that FastMCP has for it."
        )
    return found


def _construct(
    cls: type[AuthProvider], options: Mapping[str, str], prefix: str, settings: Settings, directory: DataDirectory
) -> tuple[AuthProvider, Settings]:
    """Call the class with its options, and with what it needs of this server."""
    every = inspect.signature(cls).parameters
    parameters = {name: each for name, each in every.items() if _list_kinds(each.annotation) & _OPTIONS}
    valid = {name.upper(): name for name in parameters}
    if unknown := sorted(set(options) - set(valid)):
        raise _report_unknown(prefix, unknown[0], valid)
    values = {
        valid[name]: _convert(text, parameters[valid[name]].annotation, prefix + name) for name, text in options.items()
    }
    if "base_url" in parameters and settings.public_url is not None:
        values.setdefault("base_url", str(settings.public_url))
    needed = [name for name, each in parameters.items() if each.default is each.empty]
    if "client_secret" in parameters and "jwt_signing_key" not in values:
        needed.append("client_secret")
    if cls is IntrospectionTokenVerifier:
        needed.append("audience")  # else tokens for any other server of the issuer would count
    if missing := list(dict.fromkeys(name for name in needed if not values.get(name))):
        names = [prefix + name.upper() for name in missing]
        more = " (or QUADCITE_PUBLIC_URL)" if "base_url" in missing else ""
        raise InvalidInputError(f"{VARIABLE} is set, but not {', '.join(names)}{more}.")
    if "base_url" in values:
        settings = settings.model_copy(update={"public_url": AnyHttpUrl(_parse_origin(values["base_url"], prefix))})
    if issubclass(cls, OAuthProxy):
        secrets = (values.get(name) for name in ("jwt_signing_key", "client_secret", "upstream_client_secret"))
        secret = next((each for each in secrets if each), "")
        values["client_storage"] = _open_storage(directory, secret)
        if values.get("allowed_client_redirect_uris") is not None:
            values["allowed_client_redirect_uris"].append(f"{settings.public_url}".rstrip("/") + CALLBACK)
        cls = type(cls.__name__, (ManyResources, cls), {"resources": frozenset(_list_resources(settings))})
    if _takes_verifier(cls):
        verifier = _build_verifier(settings)
        if verifier is None and "token_verifier" in _find_needed(cls):
            raise InvalidInputError(f"{VARIABLE}={cls.__name__} needs QUADCITE_JWT_ISSUER and _JWKS_URL, for tokens.")
        values |= {} if verifier is None else {"token_verifier": verifier}
    try:
        return cls(**values), settings
    except Exception as error:  # any: FastMCP checks the values itself, and OIDC reads its configuration
        raise InvalidInputError(f"{VARIABLE}: {cls.__name__} refuses the variables {prefix}*: {error}") from error


def _find_needed(cls: type) -> set[str]:
    """Return the names of the arguments without which a class cannot be called."""
    return {name for name, each in inspect.signature(cls).parameters.items() if each.default is each.empty}


def _takes_verifier(cls: type) -> bool:
    return "token_verifier" in inspect.signature(cls).parameters


def _list_kinds(annotation: Any) -> set[str]:
    """List the types of an argument by name, without their parameters: not all modules import them."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    plain, depth = "", 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if not depth and character != "]":
            plain += character
    return {part.strip().rpartition(".")[2] for part in plain.split("|")}


def _convert(text: str, annotation: Any, variable: str) -> Any:
    """Convert the text of a variable to a value of the type of an argument. Lists are JSON, or separated by commas."""
    kinds = _list_kinds(annotation)
    try:
        if "list" in kinds:
            return json.loads(text) if text.lstrip().startswith("[") else _split(text)
        if "dict" in kinds:
            return TypeAdapter(dict[str, str]).validate_json(text)
        if "bool" in kinds and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kinds & {"str", "AnyHttpUrl", "Literal"}:
            return text
        return TypeAdapter(int if "int" in kinds else float if "float" in kinds else bool).validate_python(text)
    except (ValueError, ValidationError):
        raise InvalidInputError(f"Invalid value of {variable}. Valid: {' or '.join(sorted(kinds))}.") from None


def _split(text: str) -> list[str]:
    return [part for part in re.split(r"[,\s]+", text) if part]


def _report_unknown(prefix: str, name: str, valid: Iterable[str]) -> InvalidInputError:
    return InvalidInputError(f"Unknown variable {prefix}{name}. Valid: {', '.join(prefix + each for each in valid)}.")


def _parse_origin(url: str, prefix: str) -> str:
    scheme, _, rest = url.rstrip("/").partition("://")
    if scheme not in ("http", "https") or parse_host(rest) is None:
        raise InvalidInputError(
            f"Invalid {prefix}BASE_URL {quoted(url)}. Valid: scheme, host and port, without a path."
        )
    return url


def _read_jwt_options(settings: Settings, options: Mapping[str, str], prefix: str) -> Settings:
    """Read the variables of FastMCP 2 for JWTs, as settings of this server."""
    if unknown := sorted(set(options) - set(_JWT_OPTIONS)):
        raise _report_unknown(prefix, unknown[0], _JWT_OPTIONS)
    values: dict[str, Any] = {}
    if "ISSUER" not in options:
        raise InvalidInputError(f"{VARIABLE}=JWT, but {prefix}ISSUER is not set: any issuer would be accepted.")
    if ("JWKS_URI" in options) == ("PUBLIC_KEY" in options):
        raise InvalidInputError(f"{VARIABLE}=JWT needs one of {prefix}JWKS_URI and {prefix}PUBLIC_KEY.")
    values["jwt_issuer"] = options["ISSUER"]
    values["jwt_jwks_url"] = options.get("JWKS_URI") or options["ISSUER"]
    if "AUDIENCE" in options:
        values["jwt_audience"] = _convert(options["AUDIENCE"], "list", f"{prefix}AUDIENCE")
    if "ALGORITHM" in options:
        values["jwt_algorithms"] = (options["ALGORITHM"],)
    if "BASE_URL" in options:
        values["public_url"] = _parse_origin(options["BASE_URL"], prefix)
    try:
        return Settings.model_validate(settings.model_dump() | values)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise InvalidInputError(f"Invalid variables {prefix}*: {problems}.") from None


def _build_verifier(settings: Settings, options: Mapping[str, str] | None = None) -> JwtVerifier | None:
    if settings.jwt_issuer is None or settings.jwt_jwks_url is None:
        return None
    fetch = partial(fetch_keys, str(settings.jwt_jwks_url))
    algorithms = settings.jwt_algorithms
    if options and (text := options.get("PUBLIC_KEY")):
        try:
            key = jwk.import_key(text.replace("\\n", "\n"), "RSA" if algorithms[0][0] in "RP" else "EC")
        except (JoseError, ValueError) as error:
            raise InvalidInputError(f"{VARIABLE}_JWT_PUBLIC_KEY is not a PEM for {algorithms[0]}: {error}") from None
        fetch = partial(dict[str, Any], {"keys": [key.as_dict(private=False)]})
    return JwtVerifier(
        settings.jwt_issuer,
        fetch,
        settings.jwt_audience or [*_list_resources(settings), f"{settings.public_url}"],
        algorithms,
        settings.jwt_clock_skew_s,
        required_scopes=_split((options or {}).get("REQUIRED_SCOPES", "")),
    )


def _advertise(verifier: JwtVerifier, settings: Settings) -> AuthProvider:
    """Name the issuer to clients as the authorization server, if the address of the server is known."""
    try:
        issuer = AnyHttpUrl(verifier.issuer)
    except ValidationError:
        return verifier
    if settings.public_url is None:
        return verifier
    return RemoteAuthProvider(verifier, [issuer], str(settings.public_url), scopes_supported=[])


def _list_resources(settings: Settings) -> list[str]:
    """List the addresses of the server and of its mounts, without slashes at their ends."""
    return _list_addresses(str(settings.public_url).rstrip("/"))


def _list_addresses(origin: str) -> list[str]:
    return [origin, *(f"{origin}{path}" for path in MOUNTS)]


def _open_storage(directory: DataDirectory, secret: str) -> Any:
    """Open the storage of OAuth clients and of the tokens of their users, with a key derived from `secret`."""
    from cryptography.fernet import Fernet
    from key_value.aio.stores.filetree import (
        FileTreeStore,
        FileTreeV1CollectionSanitizationStrategy,
        FileTreeV1KeySanitizationStrategy,
    )
    from key_value.aio.wrappers.encryption import FernetEncryptionWrapper

    folder = directory.oauth
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    store = FileTreeStore(
        data_directory=folder,
        key_sanitization_strategy=FileTreeV1KeySanitizationStrategy(folder),
        collection_sanitization_strategy=FileTreeV1CollectionSanitizationStrategy(folder),
    )
    key = derive_jwt_key(high_entropy_material=secret, salt="quadcite-oauth-storage")
    return FernetEncryptionWrapper(key_value=store, fernet=Fernet(key=key), raise_on_decryption_error=False)


def _build_routes(provider: AuthProvider, origin: str) -> list[Route]:
    """Build the routes of the provider, and the metadata of each mount (RFC 9728)."""
    routes = {route.path: route for route in provider.get_routes()}
    _bind_audience(provider, origin)
    for route in provider.get_well_known_routes():
        routes.setdefault(route.path, route)
    servers = _list_servers(provider)
    for url in _list_addresses(origin) if servers else ():
        for route in create_protected_resource_routes(AnyHttpUrl(url), servers, [], "Quadcite"):
            routes[route.path.rstrip("/")] = route
    return list(routes.values())


def _bind_audience(provider: AuthProvider, origin: str) -> None:
    """Have a verifier of FastMCP without an audience, or with the address of the server, accept those of all mounts."""
    verifier = getattr(provider.server if isinstance(provider, MultiAuth) else provider, "token_verifier", None)
    if isinstance(verifier, JWTVerifier) and verifier.audience in (None, origin, f"{origin}/"):
        verifier.audience = [f"{origin}/", *_list_addresses(origin)]


def _list_servers(provider: AuthProvider) -> list[AnyHttpUrl]:
    inner = provider.server if isinstance(provider, MultiAuth) else provider
    if isinstance(inner, RemoteAuthProvider):
        return inner.authorization_servers
    if isinstance(inner, OAuthProxy) and inner.issuer_url is not None:
        return [inner.issuer_url]
    return []
