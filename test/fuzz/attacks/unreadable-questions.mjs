const addresses = 4
/** What the rule `limited` admits for one address in a second. */
const limit = 3
const long = 'a'.repeat(7900)

/** Headers that nginx passes on, and that a server of HTTP may refuse to read. */
const odd = [
  ...['\u0001', '\u007f', 'a\u001fb'].map(value => `X-Odd: ${value}\r\n`),
  ...[2, 3, 4].map(count => Array.from({ length: count }, (_, at) => `X-Odd-${at}: ${long}\r\n`).join('')),
  `Cookie: a=\u0002\r\n`,
  'Content-Length: 5\r\nExpect: 100-continue\r\n',
]

/** Half of the connections ask what cannot be read; the others call beyond their limit, and must not pass because of the first. */
export const unreadableQuestions = {
  name: 'unreadable questions',
  isBehindNginx: true,
  connections: 16,
  addresses,
  // a status that only calls of the limited path get
  answers: [{ early: false, steps: [{ send: 'HTTP/1.1 203 Limited\r\ncontent-length: 2\r\n\r\nok' }] }],
  steps: index => [
    index % 2 === 0
      ? { write: `GET /odd?answer=ok HTTP/1.1\r\nHost: fuzz.example\r\n${odd[(index / 2) % odd.length]}\r\n` }
      : { write: 'GET /limited/page?answer=0 HTTP/1.1\r\nHost: fuzz.example\r\n\r\n', times: 4 },
    { pause: 50 },
    'close',
  ],
  judge: ({ statuses, seconds }) => {
    const passed = statuses.get('203') ?? 0
    const admitted = limit * addresses * Math.ceil(seconds + 1)
    if (passed === 0 || !statuses.has('503')) return 'the limit was never reached'
    return passed > admitted ? `${passed} calls passed a rule that admits ${admitted}` : undefined
  },
}
