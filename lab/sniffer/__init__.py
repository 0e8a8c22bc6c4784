"""The sender's side of TCP: what the kernel of a server knows of its connections (inet_diag), with the clock's offset
to the AP.

`diag` reads the kernel, `clock` compares clocks, `rows` shapes a sample, `sinks` writes it, `service` is the loop.
Standard library
only (Kafka needs confluent-kafka), so that it runs on any Linux server with Python 3.11.
"""
