"""Today's terms of responsiveness in the lab: RPM of the IETF's draft, flent's rrul_be and rtt_fair."""
