const versions = ['HTTP/1.2', 'HTTP/2.0', 'HTTP/3.0', 'HTTP/0.9', 'HTTP/9.9', 'HTTP/1.10', 'http/1.1', 'HTTP/1']

/** Requests of versions of HTTP that the gateway does not speak, alone and behind a call that it serves. */
export const oddVersions = {
  name: 'odd HTTP versions',
  connections: 8,
  steps: index => [
    {
      write: [
        index % 3 === 0 ? 'GET /shared?answer=ok HTTP/1.1\r\nHost: fuzz.example\r\n\r\n' : '',
        `GET /odd?answer=ok ${versions[index % versions.length]}\r\nHost: fuzz.example\r\n`,
        index % 2 === 0 ? 'Expect: 100-continue\r\nContent-Length: 2\r\n' : 'Connection: Upgrade\r\nUpgrade: h2c\r\n',
        '\r\n',
      ].join(''),
    },
    { pause: 100 },
    'close',
  ],
}
