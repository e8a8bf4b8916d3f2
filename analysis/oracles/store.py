"""An object store (moto speaks S3) for as long as stdin is open. Its first line is its port. Each line of stdin is an
order, and a line says that it is done. With a file that has a key and its certificate, it speaks TLS.

    make BUCKET                   makes a bucket
    fetch BUCKET PREFIX FOLDER    what is below the prefix, as files of a folder that is not there yet
    put BUCKET KEY                an object with some bytes
    count BUCKET                  how many objects there are
"""

import logging
import pathlib
import ssl
import sys

import boto3
from moto.server import ThreadedMotoServer


def fetch(store, bucket, prefix, folder):
    folder = pathlib.Path(folder)
    folder.mkdir()
    pages = store.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
    for page in pages:
        for entry in page.get("Contents", []):
            path = folder / entry["Key"].removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            store.download_file(bucket, entry["Key"], str(path))


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    scheme, trusted = "http", None
    if sys.argv[1:]:
        scheme, trusted = "https", sys.argv[1]
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(trusted)
        server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
    print(port, flush=True)
    store = boto3.client(
        "s3",
        endpoint_url=f"{scheme}://{host}:{port}",
        verify=trusted,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    for line in sys.stdin:
        order, *rest = line.split()
        answer = "done"
        if order == "make":
            store.create_bucket(Bucket=rest[0])
        elif order == "fetch":
            fetch(store, *rest)
        elif order == "put":
            store.put_object(Bucket=rest[0], Key=rest[1], Body=b"something")
        elif order == "count":
            answer = store.list_objects_v2(Bucket=rest[0])["KeyCount"]
        else:
            sys.exit(f"what is {order}?")
        print(answer, flush=True)
    server.stop()


if __name__ == "__main__":
    main()
