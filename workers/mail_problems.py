"""What went wrong when a mail was sent, in plain words: what it means, what to do, and what the server answered."""

from __future__ import annotations

import smtplib
import socket
import ssl

from web.alerts.mail_providers import PROVIDERS, provider_of
from web.alerts.models import MailSettings
from workers.mail_text import plain_text

BLOCKED = (
    "Check the port, and whether your router or internet provider blocks it: 587 goes with STARTTLS, 465 with TLS."
)


def response_text(text: bytes | str) -> str:
    return plain_text(text.decode(errors="replace") if isinstance(text, bytes) else text)[:300]


def answer_of(code: int, text: bytes | str) -> str:
    return f"The mail server answered: {code} {response_text(text)}"


def is_unreachable(problem: Exception) -> bool:
    """Whether the server did not answer, hung or closed the connection; else it refused, or was not trusted."""
    refused = smtplib.SMTPRecipientsRefused | smtplib.SMTPResponseException | ssl.SSLCertVerificationError
    return not isinstance(problem, refused)


def explain_problem(problem: Exception, mail: MailSettings) -> str:
    """What to show for a mail that was not sent."""
    where = f"{mail.host}, port {mail.port}"
    match problem:
        case smtplib.SMTPAuthenticationError(smtp_code=code, smtp_error=text):
            return f"{explain_sign_in(response_text(text), mail)} {answer_of(code, text)}"
        case smtplib.SMTPSenderRefused(smtp_code=code, smtp_error=text):
            return f"The mail server accepts no mail from {mail.sender or mail.user}. Enter the address that belongs to the user name as the sender. {answer_of(code, text)}"
        case smtplib.SMTPResponseException(smtp_code=code, smtp_error=text):
            return answer_of(code, text)
        case smtplib.SMTPRecipientsRefused(recipients=refused):
            said = "; ".join(f"{who}: {code} {response_text(text)}" for who, (code, text) in refused.items())
            return f"The mail server accepts no mail for these addresses. {said}"
        case smtplib.SMTPNotSupportedError():
            return f"The mail server {where} does not offer this encryption or sign-in. Choose another encryption with its port: 587 goes with STARTTLS, 465 with TLS. ({problem})"
        case ssl.SSLCertVerificationError():
            return f"The mail server's certificate is not valid: {problem.verify_message}. Nothing was sent to it. Check the server's name. If the server is your own, paste its certificate under “Mail server”."
        case ssl.SSLError():
            return f"The mail server {where} did not agree on encryption. 587 goes with STARTTLS, 465 with TLS. ({problem})"
        case socket.gaierror():
            return f"The mail server {mail.host} was not found. Check its name, and whether this box can reach the internet and a name server. ({problem.strerror})"
        case ConnectionRefusedError():
            return f"Nothing accepts mail at {where}. {BLOCKED} (Connection refused)"
        case TimeoutError():
            return f"The mail server {where} did not answer in time. {BLOCKED} (timed out)"
        case _:
            return f"The mail server {where} could not be used: {problem or type(problem).__name__}."


def explain_sign_in(answer: str, mail: MailSettings) -> str:
    """Why the sign-in failed, from the server's answer and what is known of the provider."""
    provider = PROVIDERS.get(provider_of(mail.host), PROVIDERS["own"])
    low = answer.lower()
    if "basic authentication" in low or "smtpclientauthentication is disabled" in low:
        return "The mail server does not let programs sign in with a password. Use another provider."
    if provider.app_password or "application-specific" in low or "app password" in low:
        more = f" Make one at {provider.link}" if provider.link else ""
        return f"The mail server refused the user name or password. It needs an app password, not the password of the account.{more}"
    return "The mail server refused the user name or password. Type both again."
