"""The report page of a folder of results, with its credibility section."""
