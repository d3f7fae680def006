"""Learned policies of arriving work at sites: networks, training, learned prices."""
