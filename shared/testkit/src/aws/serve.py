"""Runs the AWS emulator on a free port of 127.0.0.1 and prints the port.

Its input is a pipe that only the starting process holds: when that process ends, in
any way, the pipe is closed and this process ends too.
"""

import logging
import os
import sys
import threading


def end_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=end_with_parent, daemon=True).start()
logging.getLogger("werkzeug").setLevel(logging.ERROR)

from moto.server import DomainDispatcherApplication, create_backend_app  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402

application = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, application, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
