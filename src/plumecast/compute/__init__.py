"""Where arrays run: namespaces, blocks of rows, linear algebra, devices, memory, clusters."""
