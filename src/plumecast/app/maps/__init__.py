"""Maps of a source: what it shows, and the writers of HTML, PNG and KMZ."""
