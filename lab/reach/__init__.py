"""What was asked of the exporter on an access point, and what it is: measured and printed line by line."""
