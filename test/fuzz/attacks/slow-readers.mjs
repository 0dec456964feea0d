const megabyte = 'l'.repeat(1 << 20)

/** Connections that ask for a large answer and read nothing of it. */
export const slowReaders = {
  name: 'slow readers',
  connections: 300,
  answers: [
    {
      early: false,
      steps: [{ send: 'HTTP/1.1 200 OK\r\ncontent-length: 4194304\r\n\r\n' }, { send: megabyte, times: 4 }],
    },
  ],
  steps: () => [
    { write: 'GET /large?answer=0 HTTP/1.1\r\nHost: fuzz.example\r\n\r\n' },
    'stopReading',
    { pause: 60_000 },
  ],
}
