"""The contract between AP and platform: tables, batch coding, feature programs, and the generator that writes them down
for every language.
"""
