"""rooted.py SECONDS: start -> outer -> inner, which burns some milliseconds and sleeps for two in turn."""

import sys
import time


def inner(end):
    x = 1
    while time.monotonic() < end:
        for i in range(60000):
            x = (x * 31 + i) & 0xFFFFFFFF
        time.sleep(0.002)
    return x


def outer(end):
    return inner(end) + 1


def start():
    print("ready", flush=True)
    return outer(time.monotonic() + float(sys.argv[1])) + 1


start()
