"""The congestion control of the next connection to a destination, by what a session to it was like: policy cc-select.

After Kovalyov, "Automatic adjustment of congestion control for each transport connection": a model per algorithm, since
what a session's figures say of its path depends on who sent.
"""
