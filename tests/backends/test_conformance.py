"""The backends we ship satisfy the laws of backends."""

from shoestring.backends.inline.place import InlinePlace
from shoestring.testing.backend_rig import Rig
from shoestring.testing.backend_suite import BackendSuite
from tests.backends.backends_at_work import local, processes_of


class TestLocal(BackendSuite):
    def make(self, rig: Rig):
        return local(rig)

    def running(self, rig: Rig):
        return processes_of(rig.run_dir)


class TestInline(BackendSuite):
    runs_beside = False
    runs_gangs = False

    def make(self, rig: Rig):
        return InlinePlace().open(None, rig.site, rig.provider)
