"""What a partitioner of Barnabas in Python needs: go-plugin's handshake, the protocol of plugin.proto, and a life that ends
with the broker's.

A partitioner is a class as in partitioner.py; serve() is called once, from the main program. The protocol is described in
plugin.proto and the README beside it in the repository of Barnabas; there is nothing else to know about the other side.
"""

import base64
import datetime
import itertools
import json
import os
import signal
import sys
import threading
from concurrent import futures
from typing import NamedTuple

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
messages, services = grpc.protos_and_services("plugin.proto")  # made from the .proto at each start: nothing generated to keep

COOKIE = ("BARNABAS_PLUGIN", "barnabas.plugin.v1")
PROTOCOL = 1
UNLIMITED = -1


class Invalid(Exception):
    """The batch makes no sense, and never will."""


class Unavailable(Exception):
    """It can't be answered now; the broker may try the same batch again."""


class Option(NamedTuple):
    """One key that may stand under `config` in the broker's YAML file."""

    name: str
    type: str  # a key of TYPES
    default: object
    doc: str


TYPES = {"text": (str, "text"), "bool": (bool, "true or false"), "int": (int, "a whole number")}


class BadOptions(Exception):
    """Faults of the options: "path: what is wrong", one a line."""


def read_options(kind, text):
    """Lays what the broker's file says strictly over the defaults of a partitioner class."""
    given = json.loads(text) if text else {}
    declared = {o.name: o for o in kind.options}
    faults, values = [], {o.name: o.default for o in kind.options}
    for name, value in given.items():
        if name not in declared:
            faults.append((name, "unknown key; valid: " + (", ".join(declared) or "none")))
            continue
        want, words = TYPES[declared[name].type]
        if type(value) is not want:  # isinstance would take True for a number
            faults.append((name, f"want {words}, not {json.dumps(value)}"))
            continue
        values[name] = value
    faults += [] if faults else kind.check(values)
    if faults:
        raise BadOptions("\n".join(f"{name}: {fault}" for name, fault in faults))
    return values


def log(level, message, **fields):
    """Writes one line into the broker's log. Standard output belongs to the handshake."""
    sys.stderr.write(json.dumps({"@level": level, "@message": message, **fields}) + "\n")
    sys.stderr.flush()


def error(code, message):
    return messages.Error(code=messages.Code.Value("CODE_" + code), message=message)


def column(c):
    """Gives the elements of a Column; null is None."""
    elements, at, data = [], 0, c.data
    for size in c.sizes:
        if size == -1:
            elements.append(None)
            continue
        if size < 0 or size > len(data) - at:
            raise Invalid("a column's sizes are not those of its data")
        elements.append(data[at : at + size])
        at += size
    if at != len(data):
        raise Invalid("a column's sizes are not those of its data")
    return elements


def records(request):
    """Gives key, value and headers of each record of a request."""
    keys, values = column(request.keys), column(request.values)
    names, header_values = column(request.header_names), column(request.header_values)
    counts = request.header_counts or [0] * len(keys)
    if not len(keys) == len(values) == len(counts) or not len(names) == len(header_values) == sum(counts):
        raise Invalid(
            f"columns of {len(keys)} keys, {len(values)} values, {len(counts)} header counts, "
            f"{len(names)} header names and {len(header_values)} header values don't belong together"
        )
    headers = zip(names, header_values)
    return [(key, value, list(itertools.islice(headers, count))) for key, value, count in zip(keys, values, counts)]


class Plugin(services.PluginServicer):
    """The service that every plug-in has."""

    def __init__(self, kind):
        self.kind = kind
        self.partitioner = None

    def Info(self, request, context):
        options = [messages.Option(name=o.name, type=o.type, default=json.dumps(o.default), doc=o.doc) for o in self.kind.options]
        role = messages.Role(role="partitioner", summary=self.kind.summary, options=options)
        return messages.InfoResponse(name=self.kind.name, version=self.kind.version, roles=[role])

    def Configure(self, request, context):
        if request.role != "partitioner":
            return messages.ConfigureResponse(error=error("INVALID", f"this is no plug-in for {request.role}"))
        try:
            self.partitioner = self.kind(read_options(self.kind, request.options_json))
        except BadOptions as e:
            return messages.ConfigureResponse(error=error("OPTIONS", str(e)))
        return messages.ConfigureResponse(keyed=self.kind.keyed, bound=getattr(self.kind, "bound", False))

    def Ping(self, request, context):
        return messages.PingResponse()


class Partitioner(services.PartitionerServicer):
    """The service of the role."""

    def __init__(self, plugin):
        self.plugin = plugin

    def Partition(self, request, context):
        if self.plugin.partitioner is None:
            return messages.PartitionResponse(error=error("CLOSED", "not configured yet"))
        try:
            answer = self.plugin.partitioner.partition(request.topic, request.partitions, request.available, records(request))
            return messages.PartitionResponse(partitions=answer)
        except Invalid as e:
            return messages.PartitionResponse(error=error("INVALID", str(e)))
        except Unavailable as e:
            return messages.PartitionResponse(error=error("UNAVAILABLE", str(e)))
        except Exception as e:  # the broker shall hear of it, and the plug-in go on
            log("error", "partition failed", error=repr(e))
            return messages.PartitionResponse(error=error("OTHER", repr(e)))


def certificate():
    """Makes a certificate for this run alone, and its key: both PEM, and the certificate as the handshake has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now, day = datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(days=1)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + 36500 * day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    line = base64.b64encode(cert.public_bytes(serialization.Encoding.DER)).rstrip(b"=").decode()
    return private, cert.public_bytes(serialization.Encoding.PEM), line


def end_with_broker(ended):
    """Notices that the broker is gone, however it went: it holds the other end of our standard input."""

    def watch():
        while os.read(0, 4096):
            pass
        ended.set()

    threading.Thread(target=watch, daemon=True).start()


def serve(kind):
    """Serves a partitioner class until the broker ends this process."""
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        sys.exit("This is a plug-in of Barnabas. A broker starts it; see its YAML file.")
    if str(PROTOCOL) not in os.environ.get("PLUGIN_PROTOCOL_VERSIONS", "").split(","):
        sys.exit(f"The broker doesn't speak version {PROTOCOL} of the protocol of plug-ins.")
    ended = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal goes to the broker too, which ends us in its time
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
    end_with_broker(ended)
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=8),
        options=[("grpc.max_receive_message_length", UNLIMITED), ("grpc.max_send_message_length", UNLIMITED)],
    )
    plugin = Plugin(kind)
    services.add_PluginServicer_to_server(plugin, server)
    services.add_PartitionerServicer_to_server(Partitioner(plugin), server)
    private, cert, line = certificate()
    broker = os.environ["PLUGIN_CLIENT_CERT"].encode()  # nobody else may call us
    credentials = grpc.ssl_server_credentials([(private, cert)], root_certificates=broker, require_client_auth=True)
    path = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "socket")
    server.add_secure_port("unix:" + path, credentials)
    server.start()
    print(f"1|{PROTOCOL}|unix|{path}|grpc|{line}", flush=True)
    ended.wait()
    server.stop(grace=1).wait()
