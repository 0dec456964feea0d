const phrases = ['找不到', '\xfc\xe4', '\x01', '\x7f', '', 'r'.repeat(5000)]

/** A service whose status lines cannot be passed on as they are. */
export const reasonPhrases = {
  name: 'odd reason phrases',
  connections: 12,
  answers: phrases.map(phrase => ({
    early: false,
    steps: [{ send: `${Buffer.from(`HTTP/1.1 404 ${phrase}`).toString('latin1')}\r\ncontent-length: 2\r\n\r\nok` }],
  })),
  steps: index => [
    { write: `GET /odd?answer=${index % phrases.length} HTTP/1.1\r\nHost: fuzz.example\r\n\r\n` },
    { pause: 300 },
    'close',
  ],
}
