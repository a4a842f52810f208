"""Asks the program deep_list (tests/support/deep_list.cpp) whether a deep test is due, and tells it what passed."""

import subprocess

UNCHANGED = "unchanged since the deep run that tests/deep.txt records (scripts/test --deep runs it)"
NOT_DUE = 1  # deep_list's status where the subject is as the list has it


def is_due(deep_list, name):
    """Prints the reason if it is. A program that cannot tell is one, too."""
    return subprocess.run([deep_list, "due", name], check=False).returncode != NOT_DUE


def passed(deep_list, name):
    """Records it, if this is a deep run."""
    subprocess.run([deep_list, "passed", name], check=True)
