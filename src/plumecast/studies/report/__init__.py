"""What a person looks at: figures and pages."""

from plumecast.base.extras import require

require("jinja2", "report", "a report")
