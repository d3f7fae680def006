"""What a plug-in is, how it is found, and the packages that hold them."""
