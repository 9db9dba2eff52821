"""What went wrong when a mail was sent, in plain words: what it means, what to do, and what the server answered."""

from __future__ import annotations

import smtplib
import socket
import ssl

from appliance.message import Message, join_messages
from web.alerts.mail_providers import PROVIDERS, provider_of
from web.alerts.models import MailSettings
from workers.alerts.mail_text import plain_text

BLOCKED = Message(
    "Check the port, and whether your router or internet provider blocks it: 587 goes with STARTTLS, 465 with TLS."
)


def response_text(text: bytes | str) -> str:
    return plain_text(text.decode(errors="replace") if isinstance(text, bytes) else text)[:300]


def answer_of(code: int, text: bytes | str) -> str:
    return Message("The mail server answered: {answer}", answer=f"{code} {response_text(text)}")


def is_unreachable(problem: Exception) -> bool:
    """Whether the server did not answer, hung or closed the connection; else it refused, or was not trusted."""
    refused = smtplib.SMTPRecipientsRefused | smtplib.SMTPResponseException | ssl.SSLCertVerificationError
    return not isinstance(problem, refused)


def explain_problem(problem: Exception, mail: MailSettings) -> str:
    """What to show for a mail that was not sent."""
    where = Message("{host}, port {port}", host=mail.host, port=mail.port)
    match problem:
        case smtplib.SMTPAuthenticationError(smtp_code=code, smtp_error=text):
            return join_messages([explain_sign_in(response_text(text), mail), answer_of(code, text)])
        case smtplib.SMTPSenderRefused(smtp_code=code, smtp_error=text):
            said = Message(
                "The mail server accepts no mail from {sender}. Enter the address that belongs to the user "
                "name as the sender.",
                sender=mail.sender or mail.user,
            )
            return join_messages([said, answer_of(code, text)])
        case smtplib.SMTPResponseException(smtp_code=code, smtp_error=text):
            return answer_of(code, text)
        case smtplib.SMTPRecipientsRefused(recipients=refused):
            answers = "; ".join(f"{who}: {code} {response_text(text)}" for who, (code, text) in refused.items())
            return Message("The mail server accepts no mail for these addresses. {answers}", answers=answers)
        case smtplib.SMTPNotSupportedError():
            return Message(
                "The mail server {where} does not offer this encryption or sign-in. Choose another "
                "encryption with its port: 587 goes with STARTTLS, 465 with TLS. ({problem})",
                where=where,
                problem=problem,
            )
    return explain_connection(problem, mail, where)


def explain_connection(problem: Exception, mail: MailSettings, where: str) -> str:
    """What to show where no mail server that is trusted could be reached."""
    match problem:
        case ssl.SSLCertVerificationError():
            return Message(
                "The mail server's certificate is not valid: {problem}. Nothing was sent to it. Check the "
                "server's name. If the server is your own, paste its certificate under “Mail server”.",
                problem=problem.verify_message,
            )
        case ssl.SSLError():
            return Message(
                "The mail server {where} did not agree on encryption. 587 goes with STARTTLS, 465 with TLS. "
                "({problem})",
                where=where,
                problem=problem,
            )
        case socket.gaierror():
            return Message(
                "The mail server {host} was not found. Check its name, and whether this box can reach the "
                "internet and a name server. ({problem})",
                host=mail.host,
                problem=problem.strerror,
            )
        case ConnectionRefusedError():
            return Message(
                "Nothing accepts mail at {where}. {blocked} (Connection refused)", where=where, blocked=BLOCKED
            )
        case TimeoutError():
            return Message(
                "The mail server {where} did not answer in time. {blocked} (timed out)", where=where, blocked=BLOCKED
            )
        case _:
            return Message(
                "The mail server {where} could not be used: {problem}.",
                where=where,
                problem=str(problem) or type(problem).__name__,
            )


def explain_sign_in(answer: str, mail: MailSettings) -> str:
    """Why the sign-in failed, from the server's answer and what is known of the provider."""
    provider = PROVIDERS.get(provider_of(mail.host), PROVIDERS["own"])
    low = answer.lower()
    if "basic authentication" in low or "smtpclientauthentication is disabled" in low:
        return Message("The mail server does not let programs sign in with a password. Use another provider.")
    if provider.app_password or "application-specific" in low or "app password" in low:
        needed = Message(
            "The mail server refused the user name or password. It needs an app password, not the password "
            "of the account."
        )
        return join_messages([needed, Message("Make one at {link}", link=provider.link) if provider.link else ""])
    return Message("The mail server refused the user name or password. Type both again.")
