"""A small service: orders in SQLite, reports in JSON, compressed."""
import ctypes
import gzip
import http.client
import json
import os
import re
import signal
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLACE = re.compile(r"(?P<city>[A-Z][a-z]+)-(?P<number>\d+)")


class Store:
    def __init__(self):
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.lock = threading.Lock()
        self.db.execute("create table orders (id integer, place text, total real)")
        rows = ((i, f"Town-{i % 97}", (i * 37 % 1009) / 7) for i in range(4000))
        self.db.executemany("insert into orders values (?, ?, ?)", rows)

    def orders(self, place):
        with self.lock:
            query = "select id, place, total from orders where place like ? order by total"
            return self.db.execute(query, (place + "%",)).fetchall()


class Report:
    def __init__(self, orders):
        self.orders = orders

    def by_place(self):
        sums = {}
        for _, place, total in self.orders:
            number = int(PLACE.match(place)["number"])
            sums[number] = sums.get(number, 0) + total
        return sums

    def ranked(self):
        return sorted(self.by_place().items(), key=self.rank)

    def rank(self, item):
        number, total = item
        return -total, number

    def lines(self):
        for number, total in self.ranked():
            yield {"place": number, "total": round(total, 2)}

    def body(self):
        return gzip.compress(json.dumps(list(self.lines())).encode())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536

    def do_GET(self):
        body = Report(self.server.store.orders("Town")).body()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        connection.request("GET", "/orders")
        connection.getresponse().read()


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.store = Store()
port = server.server_address[1]
if os.fork() == 0:
    # The load is of a process of its own, which ends with the service.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    ask(port)
server.serve_forever()
