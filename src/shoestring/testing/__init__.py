"""Conformance suites and test tools for third parties."""
