"""What runs inside the User-Mode-Linux guest: network, Wi-Fi, flows, scenario steps, counters. Standard library only.
"""
