"""Who is signed in, read together with what they have chosen: every page is in their language."""

from __future__ import annotations

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User


class UserBackend(ModelBackend):
    """Django's, with the preferences in the query that reads the user."""

    def get_user(self, user_id: int) -> User | None:
        user = User.objects.select_related("preferences").filter(pk=user_id).first()
        return user if user and self.user_can_authenticate(user) else None
