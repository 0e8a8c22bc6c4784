"""Two centres of what a sender sees of its path, by K-means: models of the kind `centroids`, for the policy loss-cause.
"""
