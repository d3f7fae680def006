"""The offline bound of a co-location trace: an LP over all epochs, proved in whole numbers."""
