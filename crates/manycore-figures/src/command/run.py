#!/usr/bin/env python3
"""Has Dask run the tasks beside this file: run.py [ADDRESS OF THE SCHEDULER]

Without an address it starts a cluster on this machine. A task that fails is run once more, and named if it fails again; to run what is
missing, run this again: a task that has done all of its piece ends at once. Needs the package `distributed`.
"""

import pathlib
import subprocess
import sys

from distributed import Client, LocalCluster, as_completed

HERE = pathlib.Path(__file__).resolve().parent


def run(task):
    done = subprocess.run(["sh", "-c", task], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()}")


def main():
    tasks = (HERE / "tasks").read_text().splitlines()
    if len(sys.argv) > 1:
        client = Client(sys.argv[1])
    else:
        # Each task is a process of its own, which uses one CPU.
        client = Client(LocalCluster(processes=False, threads_per_worker=None, dashboard_address=None))
    futures = client.map(run, tasks, pure=False, retries=1)
    number = {future.key: n for n, future in enumerate(futures, 1)}
    failed = 0
    for done, future in enumerate(as_completed(futures), 1):
        error = future.exception()
        if error is not None:
            failed += 1
            print(f"task {number[future.key]}: {error}", file=sys.stderr)
        if sys.stderr.isatty():
            print(f"\r{done} of {len(futures)}", end="", file=sys.stderr, flush=True)
    print(f"{len(futures) - failed} of {len(futures)} tasks done")
    client.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
