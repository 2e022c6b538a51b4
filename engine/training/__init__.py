"""Training: the loop, semi-supervised rounds, devices, several processes, and what a training will need."""
