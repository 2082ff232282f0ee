"""Property tests draw the same examples every time, so that a run that fails fails again, here and elsewhere.

To look for new ones: pytest --hypothesis-profile=wild
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("wild", deadline=None)
settings.load_profile("steady")
