/** Connections that announce a body and send it byte by byte. */
export const slowBodies = {
  name: 'slow bodies',
  connections: 300,
  steps: () => [
    { write: 'POST /slow?answer=0 HTTP/1.1\r\nHost: fuzz.example\r\nContent-Length: 1000000\r\n\r\n' },
    { dribble: 'b'.repeat(1000), bytes: 1, everyMs: 200 },
  ],
}
