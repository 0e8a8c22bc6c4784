"""The online trainer: a fresh congestion tree per AP every second, shipped only when it is better."""
