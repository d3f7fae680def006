"""Training a user's own module over several processes, and what comes of it."""
