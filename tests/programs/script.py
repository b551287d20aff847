"""Programs whose callers and callees are known: `script.py WHAT SECONDS`.

With `chunks` in place of the seconds it goes on for ever, and prints what each chunk of equal work took.
"""

import asyncio
import os
import sys
import threading
import time


def spin(units):
    total = 0
    for i in range(20 * units):
        total += i
    return total


# Functions with 50, 30 and 20 % of the time, in turn, from two callers each.
def half():
    for _ in range(5):
        spin(1)


def third():
    for _ in range(3):
        spin(1)


def fifth():
    for _ in range(2):
        spin(1)


def one():
    half()
    third()
    fifth()


def other():
    half()
    third()
    fifth()


def shares():
    one()
    other()


# Frames of the interpreter's own functions between those of the program.
def key(value):
    return spin(2) and value


def produce():
    for i in range(3):
        spin(2)
        yield i


def consume():
    for _ in produce():
        spin(1)


def order():
    sorted([3, 1, 2], key=key)


class Worker:
    def work(self):
        order()
        consume()
        list(map(lambda value: key(value), [1, 2]))

    def __del__(self):
        spin(1)


def callbacks():
    Worker().work()


def recurse(depth):
    return recurse(depth - 1) if depth else spin(50)


def deep():
    recurse(500)


async def leaf():
    spin(100)


async def middle():
    await leaf()


async def tasks():
    await asyncio.gather(middle(), middle())


def coroutines():
    asyncio.run(tasks())


# Functions that live for one call each.
SOURCE = """
def made_{0}():
    return spin(3)

def calls_{0}():
    made_{0}()
"""


def churn(count=[0]):
    count[0] += 1
    names = {"spin": spin}
    exec(compile(SOURCE.format(count[0] % 50), "made.py", "exec"), names)
    names["calls_%d" % (count[0] % 50)]()


# Until the process has had so much CPU time, be there other work on the machine or not.
def until(end, what):
    while time.process_time() < end:
        what()


# Equal chunks of work, as much as is done in 50 ms: the nanoseconds of CPU time of each.
def chunks(what):
    end, count = time.process_time_ns() + 50_000_000, 0
    while time.process_time_ns() < end:
        what()
        count += 1
    while True:
        start = time.process_time_ns()
        for _ in range(count):
            what()
        print(time.process_time_ns() - start, flush=True)


def threads(end):
    pool = [threading.Thread(target=until, args=(end, what)) for what in (shares, callbacks) * 4]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()


def forks(end):
    while time.time() < end:
        child = os.fork()
        if child == 0:
            until(time.process_time() + 0.05, shares)
            os._exit(0)
        os.waitpid(child, 0)


def main():
    what = globals()[sys.argv[1]]
    if sys.argv[2] == "chunks":
        chunks(what)
    seconds = float(sys.argv[2])
    if what is forks:
        # The children have the CPU time.
        what(time.time() + seconds)
    elif what is threads:
        what(time.process_time() + seconds)
    else:
        until(time.process_time() + seconds, what)


main()
