"""The report page of a folder of results, with its credibility section."""

from plumecast.base.errors import require

require("jinja2", "report", "a report")
