"""Where the YAML pipelines and the prompts are: inside a wheel, or beside `components/` in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """
    Find a folder of files that ship with Shiguan.

    A wheel carries it inside the package as `<name>_data`; an editable install finds the checkout's own folder, so
    that an edited YAML or prompt counts at once.
    """
    candidates = [_PACKAGE / f"{name}_data", _PACKAGE.parents[1] / name]
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"The folder `{name}` of Shiguan is missing: looked in {', '.join(str(c) for c in candidates)}. "
        'Install the package again with `pip install --force-reinstall "shiguan"`.'
    )
