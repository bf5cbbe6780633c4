"""Rule-based rewriting of neural networks."""
