"""What will be asked: the items, the prompt, the requests, the answers that are known, and the cost of the rest."""
