"""Certificates, keys and passwords of a platform: one state folder, made by `oal-ca init`."""
