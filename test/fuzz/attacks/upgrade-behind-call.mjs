const protocols = ['h2c', 'websocket', 'TLS/1.0', 'x']

/** A request for another protocol behind a call that is not answered yet. */
export const upgradeBehindCall = {
  name: 'upgrade behind a call',
  connections: 8,
  answers: [{ early: false, steps: [{ pause: 100 }, { send: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok' }] }],
  steps: index => [
    {
      write: [
        'GET /a?answer=0 HTTP/1.1\r\nHost: fuzz.example\r\n\r\n',
        'GET /b?answer=0 HTTP/1.1\r\nHost: fuzz.example\r\nConnection: Upgrade\r\n',
        `Upgrade: ${protocols[index % protocols.length]}\r\n\r\n`,
      ].join(''),
    },
    { pause: 400 },
    'close',
  ],
}
