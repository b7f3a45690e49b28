"""Judges a tree by running it: what does its warm-up compile, and what is left to requests?

Nothing here knows the tool under test. The programs `forks.py` and `releases.py` take trees and
print what each did; `verdict.py` compares a tree before and after.
"""
