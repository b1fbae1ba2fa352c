"""Benchmarks, which measure on one thread, ask no hub and send nothing."""

import os

# Set before anything imports a library that counts. A second thread on a short text only spins, and CPU time is work.
os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "TRANSFORMERS_VERBOSITY": "error"}
os.environ |= {"HAYSTACK_TELEMETRY_ENABLED": "False", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_OFFLINE": "1"}
