"""Many short runs of the lab to learn from: drawn from a seed, recorded once, turned into training items."""
