"""The compiled kernel of arriving work at sites."""
