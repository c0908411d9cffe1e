"""The addresses of the interface: each reads a request, calls the library and answers."""
