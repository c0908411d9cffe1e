"""Weather, and the transport of smoke."""
