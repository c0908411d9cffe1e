"""HTTP as such: checked requests, answers, server-sent events, safety, the interface's document."""
