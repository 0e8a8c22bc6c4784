"""What a station will carry in the next tenths of a second, forecast by a model and by cheap rules: `oal-train
capacity`."""
