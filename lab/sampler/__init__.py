"""The kernel module oal_sampler in a guest: what it samples beside what nl80211 says, and what happens when things go
wrong.
"""
