"""What all rooms stand on: errors, names, random numbers, losses, metrics, activations."""
