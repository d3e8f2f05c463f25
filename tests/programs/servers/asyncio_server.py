"""Serves the files of a directory over HTTP, on asyncio: DIRECTORY PORT."""

import asyncio
import pathlib
import sys


async def serve(place, reader, writer):
    try:
        request = await reader.readuntil(b"\r\n\r\n")
        name = request.split(b" ")[1].decode().lstrip("/")
        body = (place / name).read_bytes()
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        # In pieces, so that the other end is waited for.
        for at in range(0, len(body), 65536):
            writer.write(body[at : at + 65536])
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, IndexError, OSError):
        pass
    finally:
        writer.close()


async def main():
    place = pathlib.Path(sys.argv[1])
    server = await asyncio.start_server(lambda r, w: serve(place, r, w), "127.0.0.1", int(sys.argv[2]))
    async with server:
        await server.serve_forever()


asyncio.run(main())
