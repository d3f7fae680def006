"""From a cluster's own log to the certified saving potential and the policy to take."""
