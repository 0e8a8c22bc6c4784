"""Experiments on stored items: fit, evaluate, compare, register. See ../../../README.md, chapter "Batch"."""
