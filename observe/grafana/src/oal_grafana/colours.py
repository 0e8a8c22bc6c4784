"""Colours that say the same to eyes that do not tell red from green, on dark and on light (Paul Tol's "vibrant")."""

GOOD, ACCEPTABLE, POOR, BAD = CLASSES = ("#0077BB", "#33BBEE", "#EE7733", "#CC3311")
CLASS_NAMES = ("Good", "Acceptable", "Poor", "Bad")  # settings class_names

OK, WARN, ALARM = GOOD, POOR, BAD
PLAIN = "#888888"  # says neither good nor bad
MAGENTA, TEAL = "#EE3377", "#009988"  # further series with a fixed meaning
