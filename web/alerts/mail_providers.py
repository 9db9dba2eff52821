"""Mail providers: their servers for sending, and what each needs of its user.

Servers from Thunderbird's configuration database (github.com/thunderbird/autoconfig) and the providers' help pages.
"""

from __future__ import annotations

import msgspec

from web.translation import lazy_text


class Provider(msgspec.Struct, frozen=True):
    """``needs``: what the user has to know or do first.
    ``app_password``: whether the account's own password is refused."""

    label: str
    host: str = ""
    port: int = 587
    security: str = "starttls"
    needs: str = ""
    link: str = ""
    app_password: bool = False


PROVIDERS: dict[str, Provider] = {
    "gmail": Provider(
        lazy_text("Gmail"),
        "smtp.gmail.com",
        needs=lazy_text("Gmail needs an app password, and 2-Step Verification switched on to make one."),
        link="https://myaccount.google.com/apppasswords",
        app_password=True,
    ),
    "outlook": Provider(
        lazy_text("Outlook.com, Hotmail"),
        "smtp-mail.outlook.com",
        needs=lazy_text(
            "Microsoft refuses password sign-in by programs on most accounts, even with an app password. "
            "If the test fails, use another provider."
        ),
        link="https://account.live.com/proofs/AppPassword",
        app_password=True,
    ),
    "microsoft365": Provider(
        lazy_text("Microsoft 365"),
        "smtp.office365.com",
        needs=lazy_text(
            "Your organization must allow “Authenticated SMTP” for the mailbox. Many do not. "
            "If the test fails, use another provider."
        ),
        link="https://admin.microsoft.com/",
    ),
    "icloud": Provider(
        "iCloud",
        "smtp.mail.me.com",
        needs=lazy_text(
            "iCloud needs an app-specific password, and two-factor authentication switched on to make one."
        ),
        link="https://appleid.apple.com/",
        app_password=True,
    ),
    "gmx": Provider(
        lazy_text("GMX (gmx.net, gmx.de)"),
        "mail.gmx.net",
        needs=lazy_text(
            "Allow POP3 and IMAP in GMX’s settings first. With two-factor authentication, GMX needs an app password."
        ),
        link="https://hilfe.gmx.net/pop-imap/einschalten.html",
    ),
    "gmxcom": Provider(
        lazy_text("GMX (gmx.com)"),
        "mail.gmx.com",
        needs=lazy_text(
            "Allow POP3 and IMAP in GMX’s settings first. With two-factor authentication, GMX needs an app password."
        ),
        link="https://www.gmx.co.uk/security/2fa/",
    ),
    "fastmail": Provider(
        lazy_text("Fastmail"),
        "smtp.fastmail.com",
        465,
        "tls",
        needs=lazy_text("Fastmail needs an app password, which its Basic plan does not have."),
        link="https://www.fastmail.com/help/clients/apppassword.html",
        app_password=True,
    ),
    "proton": Provider(
        lazy_text("Proton, by Bridge"),
        "127.0.0.1",
        1025,
        needs=lazy_text(
            "Proton Mail Bridge must run on this box. Use the port, user name and password that it shows, and paste "
            "the certificate that it exports as the trusted certificate below."
        ),
        link="https://proton.me/mail/bridge",
        app_password=True,
    ),
    "own": Provider(lazy_text("Another server"), needs=lazy_text("Enter its name, port and encryption below.")),
}


def provider_of(host: str) -> str:
    """The key of the provider with that server: ``own`` for any other, empty for none."""
    if not host:
        return ""
    return next((key for key, provider in PROVIDERS.items() if provider.host == host.lower()), "own")
