/** More guesses than the rule admits for each address, from 4 addresses. */
const admitted = 5 * 4
const body = '\u0000\u0000\u0000\u0000\u0000'
const headers = {
  grpc: 'Content-Type: application/grpc\r\nTE: trailers\r\n',
  grpcWeb: 'Content-Type: application/grpc-web+proto\r\n',
  grpcText: 'Content-Type: application/grpc-web-text\r\n',
  form: 'Content-Type: application/x-www-form-urlencoded\r\n',
}
const call = (method, lines, length = body.length) =>
  `${method} /login/form?answer=0 HTTP/1.1\r\nHost: fuzz.example\r\n${lines}Content-Length: ${length}\r\n\r\n`

/** Calls that the gateway answers itself, or the service without a look at a password, which might be taken for a success. */
const between = [
  ...Object.values(headers).map(lines => call('POST', lines, 2 ** 40)),
  ...['OPTIONS', 'TRACE', 'HEAD'].map(method => call(method, headers.grpc, 0)),
  call('POST', `${headers.grpc}Expect: nothing\r\n`),
  call('POST', `${headers.grpc}grpc-timeout: 0m\r\n`) + body,
]

/** Guesses of a password behind a rule that counts failures, as calls of gRPC and beside calls that clear nothing. */
export const loginGuesses = {
  name: 'login guesses as gRPC',
  connections: 8,
  answers: [{ early: false, steps: [{ send: 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n' }] }],
  steps: index => [
    index % 2 === 0
      ? { write: between[(index / 2) % between.length] }
      : { write: call('POST', Object.values(headers)[(index >> 1) % 4]) + body, times: 4 },
    { pause: 100 },
    'close',
  ],
  judge: ({ statuses }) => {
    const guesses = statuses.get('401') ?? 0
    if (guesses === 0) return 'no guess reached the service'
    return guesses > admitted ? `${guesses} guesses reached the service, and the rule admits ${admitted}` : undefined
  },
}
