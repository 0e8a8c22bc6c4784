"""What goes with congestion loss: rank correlation and information gain of every metric, beside the paper's."""
