"""The settings of a run: written once, read from flags, files and keywords.

@dataclass(frozen=True)
class Mine(Settings):
    hidden: int = setting(16, "Hidden units.", at_least=1)

Mine(hidden=32).params()["hidden"]  # 32
Mine(hidden=0)  # UserError: --hidden=0 is too small; give 1 or more
"""

from experiments.settings.base import Settings
from experiments.settings.files import write_settings
from experiments.settings.setting import setting

__all__ = ["Settings", "setting", "write_settings"]
