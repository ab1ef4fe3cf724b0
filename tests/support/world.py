"""A small internet on one namespace's loopback: names, web servers, an echo server. Prints `up` when all of it answers."""
import http.server, json, os, socket, socketserver, ssl, struct, sys, threading, time

FOLDER = sys.argv[1]
V4, V6, PRIVATE = "93.184.1.1", "2600:1f00::1", "10.1.2.3"
PUBLIC = ["api.example", "other.example", "expired.example", "self.example", "wrong.example", "plain.example"]
ZONE = {name: [V4, V6] for name in PUBLIC}
ZONE |= {
    "www.api.example": [V4, V6],
    "v6.example": [V6],
    "corp.example": [PRIVATE],
    "metadata.example": ["169.254.169.254"],
    "loopback.example": ["127.0.0.1"],
    "mixed.example": [V4, PRIVATE],
    "silent.example": ["93.184.1.9"],
    "rebind.example": [],
}
asked = open(os.path.join(FOLDER, "asked"), "w", buffering=1)
# Everything that arrived anywhere, a line each.
arrived = open(os.path.join(FOLDER, "arrived"), "w", buffering=1)
turns = {}


def name_of(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(labels).lower(), query[12 : at + 5], struct.unpack(">H", query[at + 1 : at + 3])[0]


class Names(socketserver.BaseRequestHandler):
    def handle(self):
        query, reply = self.request
        name, question, kind = name_of(query)
        print(name, file=asked)
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        records = b""
        count = 0
        addresses = ZONE.get(name, [])
        if name == "rebind.example":
            # Another one each time it is asked.
            turns[kind] = turns.get(kind, -1) + 1
            addresses = [[V4], [PRIVATE], ["127.0.0.1"]][turns[kind] % 3]
        for address in addresses:
            if family and (":" in address) == (family == socket.AF_INET6):
                data = socket.inet_pton(family, address)
                records += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(data)) + data
                count += 1
        code = 0x8180 if name in ZONE else 0x8183
        reply.sendto(query[:2] + struct.pack(">HHHHH", code, 1, count, 0, 0) + question + records, self.client_address)


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def parse_request(self):
        print("http", self.connection.getsockname()[0], repr(self.raw_requestline), file=arrived)
        return super().parse_request()

    def answer(self, status, body, kind="text/plain", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                body += self.rfile.read(size)
                self.rfile.readline()
                if not size:
                    return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_GET(self):
        if self.headers.get("Upgrade") == "websocket":
            return self.websocket()
        if self.path == "/events":
            return self.events()
        seen = {"path": self.path, "headers": dict(self.headers.items()), "method": self.command}
        self.answer(200, json.dumps(seen).encode(), "application/json")

    do_HEAD = do_DELETE = do_GET

    def do_POST(self):
        body = self.body()
        seen = {"path": self.path, "length": len(body), "headers": dict(self.headers.items())}
        if len(body) < 4096:
            seen["body"] = body.decode("latin-1")
        self.answer(200, json.dumps(seen).encode(), "application/json")

    do_PUT = do_POST

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number in range(3):
            self.wfile.write(b"data: %d\n\n" % number)
            self.wfile.flush()
            # The next is sent once this one was answered, on another connection.
            while not os.path.exists(os.path.join(FOLDER, "seen-%d" % number)):
                time.sleep(0.01)
        self.close_connection = True

    def websocket(self):
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "websocket")
        self.end_headers()
        self.wfile.flush()
        while data := self.connection.recv(65536):
            self.connection.sendall(data)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"220 ready\r\n")
        while data := self.request.recv(1 << 20):
            print("tcp", self.request.getsockname()[0], repr(data[:100]), file=arrived)
            self.request.sendall(data)


class Datagrams(socketserver.BaseRequestHandler):
    def handle(self):
        print("udp", self.server.server_address[0], repr(self.request[0][:100]), file=arrived)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, address, handler, tls=None):
        self.tls = tls
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def finish_request(self, request, client_address):
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls:
            try:
                request = self.tls.wrap_socket(request, server_side=True)
            except (ssl.SSLError, OSError):
                return
        super().finish_request(request, client_address)

    def handle_error(self, *_):
        pass


def context():
    contexts = {}
    for name in PUBLIC:
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[name].load_cert_chain(os.path.join(FOLDER, name + ".pem"))

    def choose(connection, name, _):
        connection.context = contexts.get(name, contexts["api.example"])

    contexts["api.example"].sni_callback = choose
    return contexts["api.example"]


tls = context()
servers = [socketserver.ThreadingUDPServer(("127.0.0.1", 53), Names)]
servers.append(Server(("169.254.169.254", 80), Web))
for address in (V4, V6, PRIVATE, "127.0.0.1"):
    servers += [Server((address, 80), Web), Server((address, 443), Web, tls), Server((address, 25), Echo)]
    if ":" not in address:
        servers += [socketserver.ThreadingUDPServer((address, 443), Datagrams)]
for server in servers:
    threading.Thread(target=server.serve_forever, daemon=True).start()
print("up", flush=True)
sys.stdin.read()
