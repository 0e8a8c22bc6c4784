"""Training of what runs on an AP: the online trainer, batch experiments, the window model. See ../../README.md."""
