# counts.py N: N times ten reads of 100 bytes in `small` and one of 128 KiB in `large`, and N times eight pages that are
# mapped and written to in `touch`, each called by `calls_` and the name. Before that it waits until it is known as Python.
import mmap
import os
import sys
import time


def small(file):
    for _ in range(10):
        os.read(file, 100)


def large(file):
    os.read(file, 128 << 10)


def touch():
    pages = mmap.mmap(-1, 8 * 4096)
    for page in range(8):
        pages[page * 4096] = 1
    pages.close()


def calls_small(file):
    small(file)


def calls_large(file):
    large(file)


def calls_touch():
    touch()


time.sleep(0.4)
zeros = os.open("/dev/zero", os.O_RDONLY)
for _ in range(int(sys.argv[1])):
    calls_small(zeros)
    calls_large(zeros)
    calls_touch()
