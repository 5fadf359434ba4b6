"""A plugin for pytest: the services of the suite of limits are there already."""

import pytest


class Services:
    def start(self, *_):
        pass

    def wait_for_service(self, *_):
        pass


@pytest.fixture(scope="session")
def docker_services():
    return Services()


class Outcomes:
    """Collects which tests passed, and why the others did not."""

    def __init__(self):
        self.passed, self.failed = set(), {}

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.passed.discard(report.nodeid)
            self.failed[report.nodeid] = str(report.longrepr).strip().splitlines()[-1]
        elif report.when == "call" and report.passed:
            self.failed.pop(report.nodeid, None)
            self.passed.add(report.nodeid)
