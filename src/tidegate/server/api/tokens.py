"""Tokens, one-time codes, and pairing a phone (SRV-1, SRV-2)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from tidegate.server.api.answers import CodeAnswer, Done, NewTokenAnswer, PairAnswer, ProofAnswer, SessionAnswer, Tokens
from tidegate.server.api.auth import Role
from tidegate.server.api.codes import OPENER_SECONDS, PAIR_SECONDS
from tidegate.server.api.errors import ApiError
from tidegate.server.api.operation import ANYONE, OWNER, Call, Operation, Operations
from tidegate.server.api.requests import CodeRequest, NewToken, PairRequest, ProofRequest, Session
from tidegate.server.background import in_thread

if TYPE_CHECKING:
    from tidegate.server.api.listener import Door
    from tidegate.state.store import Token

SESSION_SECONDS: Final = 30 * 86400.0
MAX_SESSIONS: Final = 20
PROOF: Final = "tidegate proof 1"
"""What a proof is for, so that nothing else that is signed with the same key is one."""
_PORTAL: Final = "portal"


class TokenOperations(Operations):
    """The operations; see the head of the file."""

    def operations(self) -> list[Operation]:
        """Return them."""
        return [
            Operation(
                method="GET",
                path="/api/tokens",
                summary="Tokens that are good, without their secrets",
                do=self.listed,
                answer=Tokens,
                role=OWNER,
            ),
            Operation(
                method="POST",
                path="/api/tokens",
                summary="Make a token; its secret is in this answer and nowhere else",
                do=self.create,
                body=NewToken,
                answer=NewTokenAnswer,
                status=201,
                role=OWNER,
                errors=(409,),
            ),
            Operation(
                method="DELETE",
                path="/api/tokens/{id}",
                summary="Revoke a token; streams that are open with it end",
                do=self.revoke,
                answer=Done,
                role=OWNER,
                errors=(409,),
            ),
            Operation(
                method="POST",
                path="/api/codes",
                summary="A one-time code that opens the portal (over the unix socket only)",
                do=self.code,
                body=CodeRequest,
                answer=CodeAnswer,
                status=201,
                role=OWNER,
                only_unix=True,
                errors=(409,),
            ),
            Operation(
                method="POST",
                path="/api/session",
                summary="Change a one-time code into a token",
                do=self.session,
                body=Session,
                answer=SessionAnswer,
                status=201,
                role=ANYONE,
                errors=(401, 409),
            ),
            Operation(
                method="POST",
                path="/api/proof",
                summary="Have this door prove that it knows a token, without sending it",
                do=self.proof,
                body=ProofRequest,
                answer=ProofAnswer,
                role=ANYONE,
                errors=(401, 409),
            ),
            Operation(
                method="POST",
                path="/api/pair",
                summary="A QR code that gives a phone a token (where the server listens outside of loopback)",
                do=self.pair,
                body=PairRequest,
                answer=PairAnswer,
                status=201,
                role=OWNER,
                errors=(409,),
            ),
        ]

    async def listed(self, _call: Call) -> dict[str, Any]:
        """Return the tokens that are good."""
        return {"tokens": [token_shape(token) for token in self._context.auth.listed()]}

    async def create(self, call: Call) -> dict[str, Any]:
        """Make one."""
        new: NewToken = call.body
        token, secret = await self._make(new.name, Role(new.role), new.expires_at, call.caller.by)
        return {"token": token_shape(token), "secret": secret}

    async def revoke(self, call: Call) -> Done:
        """Revoke one."""
        await self._revoke(call.number("id"), call.caller.by)
        return Done()

    async def code(self, call: Call) -> CodeAnswer:
        """Make a code for a browser on this machine."""
        context = self._context
        if not context.portal_url:
            raise ApiError(409, "this server has no portal", fix="start it without --no-portal")
        code = context.codes.make(Role(call.body.role), _PORTAL, OPENER_SECONDS)
        url = f"{context.portal_url}/#code={code}"
        return CodeAnswer(code=code, url=url, expires_at=context.server.wall() + OPENER_SECONDS)

    async def session(self, call: Call) -> SessionAnswer:
        """Change a code into a token. Wrong codes count as wrong tokens do."""
        context = self._context
        offer = context.codes.take(call.body.code)
        if offer is None:
            context.auth.failures.count()
            raise ApiError(401, "this code is not known, was used or is too old", fix="tidegate portal makes another")
        expires_at = context.server.wall() + SESSION_SECONDS
        taken = {token.name for token in context.auth.listed()}
        name = next(name for number in count(1) if (name := f"{offer.name} {number}") not in taken)
        if offer.name == _PORTAL:
            await self._make_room()
        token, secret = await self._make(name, offer.role, expires_at, "a one-time code")
        return SessionAnswer(token=secret, id=token.id, role=offer.role.value, expires_at=expires_at)

    async def proof(self, call: Call) -> ProofAnswer:
        """Prove to a page that this is the server that gave it its token: another program may have its port by now.

        The origin is where this door listens, and never what the asker says: who passes the question on from elsewhere
        gets a proof that does not fit there.
        """
        door: Door = call.request.scope["state"]["door"]
        if door.is_unix:
            raise ApiError(409, "this door needs no proof", fix="its file is its owner's alone")
        text = f"{PROOF}\n{door.origin}\n{call.body.number}"
        proof = self._context.auth.prove(call.body.token, text.encode())
        if proof is None:
            raise ApiError(401, "this token is not known", fix="tidegate portal opens the portal anew")
        return ProofAnswer(proof=urlsafe_b64encode(proof).rstrip(b"=").decode())

    async def pair(self, call: Call) -> PairAnswer:
        """Make a code for a phone, drawn as a picture."""
        context = self._context
        if not context.phone_url:
            raise ApiError(
                409,
                "this server listens on this machine only, where no phone can reach it",
                fix="start it with tidegate serve --listen ADDRESS:PORT",
            )
        code = context.codes.make(Role(call.body.role), call.body.name, PAIR_SECONDS)
        url = f"{context.phone_url}/#code={code}"
        return PairAnswer(
            url=url, expires_at=context.server.wall() + PAIR_SECONDS, fingerprint=context.fingerprint, svg=draw(url)
        )

    async def _make(self, name: str, role: Role, expires_at: float | None, by: str) -> tuple[Token, str]:
        context = self._context
        token, secret = await in_thread(context.auth.create, name, role, expires_at)
        context.server.log.append("token.created", id=token.id, name=token.name, role=token.role, by=by)
        return token, secret

    async def _revoke(self, token_id: int, by: str) -> None:
        context = self._context
        try:
            token = await in_thread(context.auth.revoke, token_id)
        finally:
            context.streams.look_again()
        context.server.log.append("token.revoked", id=token.id, name=token.name, by=by)

    async def _make_room(self) -> None:
        """Let the portal's least recently used sessions go where there are too many of them."""
        sessions = [token for token in self._context.auth.listed() if token.name.startswith(f"{_PORTAL} ")]
        sessions.sort(key=lambda token: token.last_used or token.created)
        for token in sessions[: max(0, len(sessions) - MAX_SESSIONS + 1)]:
            await self._revoke(token.id, "a newer portal session")


def token_shape(token: Token) -> dict[str, Any]:
    """Return a token without what it is checked by."""
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "created_at": token.created,
        "last_used_at": token.last_used,
        "expires_at": token.expires,
    }


def draw(url: str) -> str:
    """Return a QR code as an SVG document that needs nothing else."""
    import io

    import segno

    out = io.BytesIO()
    segno.make(url, error="m", micro=False).save(out, kind="svg", scale=4, border=4, light="#fff", xmldecl=False)
    return out.getvalue().decode()
