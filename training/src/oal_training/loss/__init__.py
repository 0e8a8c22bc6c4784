"""A sender's model of its losses: clusters of congestion window and round trip, compiled to integers."""
