"""What control is worth: methods played on scenarios in virtual time, measured packet by packet, compared with their
spread.
"""
