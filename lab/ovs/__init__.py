"""The patched Open vSwitch of the lab: its build, and what its action costs."""
