"""Marks of the tests."""


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: builds C or Java; `make test` runs it, `make check` does not")
