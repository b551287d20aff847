"""A crowd of threads: `crowd.py THREADS SECONDS`.

The first and the last of them compute, in functions of their own, and have names that say so; the others sleep.
"""
import os
import sys
import threading
import time

COUNT, SECONDS = int(sys.argv[1]), float(sys.argv[2])
GO = threading.Event()


def spin():
    for _ in range(500):
        pass


def computes():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        spin()


def old_works():
    computes()


def new_works():
    computes()


def sleeps():
    time.sleep(1000)


def begin(function, name):
    with open("/proc/thread-self/comm", "w") as file:
        file.write(name)
    GO.wait()
    function()


def start(function, *arguments):
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def main_works():
    computes()


threading.stack_size(256 * 1024)
workers = [start(begin, old_works, "old") for _ in range(2)]
for _ in range(COUNT - 5):
    start(sleeps)
workers += [start(begin, new_works, "new") for _ in range(2)]
GO.set()
main_works()
for worker in workers:
    worker.join()
os._exit(0)
