"""The window model: the sender's congestion window from what the AP sees of a flow.

`dataset` joins a capture with the sender's own account (oal-sniffer), `validation` compares regressors, `model` fits
the one that an AP runs. See training/README.md, "Window model".
"""
