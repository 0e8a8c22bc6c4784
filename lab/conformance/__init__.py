"""The conformance suite of the window rewrite: one list of cases, both backends, a real kernel, judged by captures at
sender and client.
"""
