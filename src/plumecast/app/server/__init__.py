"""The live page: an HTTP interface to the library, with the fires and models it keeps."""
