const bytes = 2 << 20

/** Connections that send large bodies as fast as they can, again and again. */
export const largeBodies = {
  name: 'large bodies',
  connections: 200,
  steps: () => [
    { write: `POST /large?answer=ok HTTP/1.1\r\nHost: fuzz.example\r\nContent-Length: ${bytes}\r\n\r\n` },
    { write: 'b', times: bytes },
    { pause: 1000 },
  ],
}
