"""Do the features still come as they did when a version was trained?"""
