"""Three stages side by side: pages are made, packed and summed up, each by a thread of its own."""
import hashlib
import json
import queue
import threading
import time
import zlib

ROUNDS = 6


def make(pages):
    for number in range(ROUNDS):
        pages.put(render_page(number))
        time.sleep(0.02)
    pages.put(None)


def render_page(number):
    rows = sorted(row_of(number, at) for at in range(25_000))
    return json.dumps(rows).encode() * 12


def row_of(number, at):
    return [(at * 7919 + number) % 10_007, f"row {at}"]


def pack(pages, packed):
    while (page := pages.get()) is not None:
        packed.put(compress(page))
    packed.put(None)


def compress(page):
    return zlib.compress(page, 6)


def sum_up(packed):
    while (data := packed.get()) is not None:
        digest_all(data)


def digest_all(data):
    for _ in range(90):
        hashlib.sha256(data * 2).hexdigest()


def main():
    pages, packed = queue.Queue(), queue.Queue()
    stages = [(make, pages), (pack, pages, packed), (sum_up, packed)]
    threads = [threading.Thread(target=stage[0], args=stage[1:], name=stage[0].__name__) for stage in stages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
