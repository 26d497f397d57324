"""The wire: stamps at the socket, the client, the prober, the host-health gate."""
