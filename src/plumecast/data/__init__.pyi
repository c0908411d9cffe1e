"""The public names of `plumecast.data` and their homes."""

from .schema import apply_smoke_floor as apply_smoke_floor
from .schema import drop_small_fires as drop_small_fires
from .schema import final_snapshots as final_snapshots
from .schema import select_drought as select_drought
from .schema import validate_snapshots as validate_snapshots
from .split import Split as Split
from .store import append_fire as append_fire
from .store import stored_fires as stored_fires
