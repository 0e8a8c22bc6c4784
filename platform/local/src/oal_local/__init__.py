"""The OAL platform as plain processes on one machine."""
