"""Questions and the hosts that their answers had remembered (ASK-2, ASK-8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.model.question import NO_TERMS, Answer, Terms
from tidegate.questions.errors import AlreadyAnsweredError, NoSuchQuestionError
from tidegate.server.api.answers import Done, QuestionAnswer, Questions, Rules
from tidegate.server.api.errors import ApiError
from tidegate.server.api.operation import ANYONE, OWNER, Call, Operation, Operations
from tidegate.server.api.requests import Reply, RulesQuery, WebhookReply
from tidegate.server.background import in_thread
from tidegate.server.shapes import question_shape, rule_shape

if TYPE_CHECKING:
    from tidegate.model.question import Question


class QuestionOperations(Operations):
    """The operations; see the head of the file."""

    def operations(self) -> list[Operation]:
        """Return them."""
        return [
            Operation(
                method="GET",
                path="/api/questions",
                summary="All questions, open ones first",
                do=self.listed,
                answer=Questions,
            ),
            Operation(
                method="GET",
                path="/api/questions/{id}",
                summary="One question",
                do=self.one,
                answer=QuestionAnswer,
            ),
            Operation(
                method="POST",
                path="/api/questions/{id}/answer",
                summary="Answer a question; who comes second gets 409 and the question as it was answered",
                do=self.answer,
                body=Reply,
                answer=QuestionAnswer,
                role=OWNER,
                errors=(409,),
            ),
            Operation(
                method="POST",
                path="/api/webhook/answer",
                summary="Answer a question by a one-time token that the webhook was sent (docs/webhook.md)",
                do=self.answer_by_webhook,
                body=WebhookReply,
                answer=QuestionAnswer,
                role=ANYONE,
                errors=(401, 409),
            ),
            Operation(
                method="GET",
                path="/api/rules",
                summary="Remembered hosts, by folder",
                do=self.rules,
                query=RulesQuery,
                answer=Rules,
            ),
            Operation(
                method="DELETE",
                path="/api/rules/{id}",
                summary="Forget a remembered host: it is asked about again",
                do=self.forget,
                answer=Done,
                role=OWNER,
                errors=(409,),
            ),
        ]

    async def listed(self, call: Call) -> dict[str, Any]:
        """Return all questions that the desk still knows."""
        server = self._context.server
        if call.caller.is_owner:
            server.presence.seen()
        names = {task.id: task.name for task in server.registry.living()}
        shapes = [question_shape(question, names.get(question.task, "")) for question in server.desk.questions()]
        return {"questions": shapes}

    async def one(self, call: Call) -> dict[str, Any]:
        """Return one question."""
        number = call.number("id")
        try:
            return self._shape(self._context.server.desk.question(number))
        except NoSuchQuestionError as error:
            raise _not_found(error) from None

    async def answer(self, call: Call) -> dict[str, Any]:
        """Answer one: it is on the disk, and those who wait are on their way, before this returns."""
        reply: Reply = call.body
        terms = Terms(reply.until, reply.connections, reply.bytes)
        return await self._answered(call.number("id"), Answer(reply.answer), terms, call.caller.by)

    async def answer_by_webhook(self, call: Call) -> dict[str, Any]:
        """Answer one by its token. A wrong one counts as a wrong bearer token does."""
        ways = self._context.server.ways
        webhook = ways.webhook if ways is not None else None
        found = webhook.redeem(call.body.token) if webhook is not None else None
        if found is None:
            self._context.auth.failures.count()
            raise ApiError(401, "this token is not known, was used, or its question is over")
        return await self._answered(*found, NO_TERMS, "webhook")

    async def _answered(self, number: int, answer: Answer, terms: Terms, by: str) -> dict[str, Any]:
        try:
            question = await self._context.server.answer(number, answer, terms, by)
        except NoSuchQuestionError as error:
            raise _not_found(error) from None
        except AlreadyAnsweredError as error:
            raise ApiError(409, error.what, code=error.code, question=self._shape(error.question)) from None
        return self._shape(question)

    async def rules(self, call: Call) -> dict[str, Any]:
        """Return the remembered hosts of a folder (by its real path), or all."""
        folder = call.query.folder
        found = await in_thread(self._context.server.store.rules)
        return {"rules": [rule_shape(rule) for rule in found if folder is None or rule.folder.path == folder]}

    async def forget(self, call: Call) -> Done:
        """Forget one, here and in living tasks that had it from the same answer."""
        number = call.number("id")
        if await self._context.server.forget(number, call.caller.by) is None:
            raise ApiError(404, f"there is no remembered host {number}", fix="tidegate rules lists them")
        return Done()

    def _shape(self, question: Question) -> dict[str, Any]:
        task = self._context.server.registry.find(question.task)
        return question_shape(question, task.name if task is not None else "")


def _not_found(error: NoSuchQuestionError) -> ApiError:
    return ApiError(404, error.what, fix=error.fix, code=error.code)
