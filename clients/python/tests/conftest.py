"""Configures Django, before tests import what needs that."""

import djangoproject  # noqa: F401
