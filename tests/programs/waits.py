"""Waits for known times, and says for how long each function did; or, as `waits.py rest`, rests for long."""
import queue
import sys
import threading
import time

TIMES = {}


def measured(name, function, *arguments):
    wall, cpu = time.monotonic_ns(), time.thread_time_ns()
    function(*arguments)
    TIMES[name] = time.monotonic_ns() - wall - (time.thread_time_ns() - cpu)


def rests():
    for _ in range(10):
        time.sleep(0.05)


def naps():
    for _ in range(200):
        time.sleep(0.002)


def short_naps():
    for _ in range(500):
        time.sleep(0.0003)


def deep(levels):
    if levels:
        deep(levels - 1)
    else:
        deep_rests()


def long_rest():
    time.sleep(60)


def deep_rests():
    for _ in range(10):
        time.sleep(0.03)


def takes(work):
    while work.get():
        pass


def main():
    # Until it is known that this is Python.
    for _ in range(20):
        time.sleep(0.01)
    work = queue.SimpleQueue()
    taker = threading.Thread(target=measured, args=("takes", takes, work))
    taker.start()
    measured("rests", rests)
    work.put(True)
    measured("naps", naps)
    measured("short_naps", short_naps)
    measured("deep_rests", deep, 60)
    work.put(False)
    taker.join()
    for name, time_of_it in sorted(TIMES.items()):
        print(name, time_of_it)


if sys.argv[1:] == ["rest"]:
    print("ready", flush=True)
    long_rest()
main()
