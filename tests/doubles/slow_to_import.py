"""A component whose import takes longer than a check may, as that of a large package does without byte code."""

import time

from haystack import component

end = time.process_time() + 1.0
while time.process_time() < end:
    pass


@component
class Passes:
    @component.output_types(text=str)
    def run(self, text: str):
        return {"text": text}
