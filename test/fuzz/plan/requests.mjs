// Requests as text with one character per byte (latin1), so that they fit into a replay file.

import { createBody, framings, framingWeights } from './framings.mjs'

export const apiKey = 'fuzz-key-0123456789'

const tokens = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'PROPFIND', 'QUERY', 'PURGE', 'M-SEARCH']
const oddMethods = ['TRACE', 'CONNECT', 'get', 'G', 'GETT', 'FOO', 'PRI', '', 'GET GET', 'SOURCE']
const prefixes = ['', '', '', '/limited', '/queued', '/slots', '/nowhere']

const targets = [
  [
    40,
    (random, query) =>
      `${random.pick(prefixes)}/${random.pick(['a', 'a/b', 'orders/7', '%61', 'x'.repeat(300)])}?${query}`,
  ],
  [9, () => '*'],
  [4, (random, query) => `http://${random.pick(['example.com', '127.0.0.1', '[::1]', 'a@b', ''])}/a?${query}`],
  [2, random => random.pick(['example.com:443', '127.0.0.1:80', ':80', 'localhost'])],
  [
    8,
    (random, query) =>
      `${random.pick(['//a', '/./a', '/a/../b', '/a\\..\\b', '/A', '/a;x=1', '/a/', '/%2e%2e/a', '/..;/a'])}?${query}`,
  ],
  [
    5,
    (random, query) =>
      `${random.pick(['/%', '/%zz', '/%00', '/a%0d%0ax', '/é', '/ÿþ', '/"<>^`{}|', '/a#b', '?', '/?', ''])}${random.pick(['', `?${query}`])}`,
  ],
  [2, (random, query) => `/${'a/'.repeat(random.int(100, 3000))}?${query}`],
  [2, (random, query) => `/a?${query}&${'x='.repeat(random.int(1000, 9000))}`],
]

const extraHeaders = [
  () => 'Accept: */*',
  () => 'X-Forwarded-For: 203.0.113.9, 10.0.0.1',
  () => 'Forwarded: for=203.0.113.9;proto=https',
  random => `X-Account-Id: ${random.pick(['ann', 'bob', '', '\xff\xfe', 'a'.repeat(500)])}`,
  () => 'Connection: x-a, x-b, keep-alive',
  () => 'Connection: close, close, , ,',
  () => 'Keep-Alive: timeout=0',
  () => 'TE: trailers, deflate;q=0.5',
  () => 'Trailer: x-sum',
  random => `Cookie: ${'a=b; '.repeat(random.int(1, 200))}`,
  () => 'Range: bytes=0-,-1,5-2',
  () => 'If-None-Match: *',
  () => 'Accept-Encoding: gzip, br, \x7f',
  () => 'Content-Type: \xe4\xb8\xad',
  () => 'Max-Forwards: 0',
  () => 'Proxy-Connection: keep-alive',
  () => 'Proxy-Authorization: Basic eDp5',
  random => `X-Long: ${'l'.repeat(random.int(1000, 20_000))}`,
  random => random.list(random.int(2, 300), index => `X-${index}: ${index}`).join('\r\n'),
  () => 'Host: second.example',
  () => '__proto__: 1',
  () => 'constructor: 1',
]

/** Says which of the round's answers the service gives. */
function answerQuery(random, answers) {
  return `answer=${random.int(0, answers.length - 1)}`
}

/**
 * A request. `whole` says that nothing is left to send for it: a caller who has sent it may expect an answer.
 * `last` asks for the connection to be closed behind the answer; `plain` leaves out what servers may reject.
 */
export function createRequest(random, { answers, last = false, plain = false, body = random.chance(0.25), prefix }) {
  const query = answerQuery(random, answers)
  const target =
    prefix !== undefined
      ? `${prefix}/a?${query}`
      : plain
        ? targets[0][1](random, query)
        : random.weighted(targets)(random, query)
  const method = chooseMethod(random, { target, plain })
  const framing = body
    ? framings[plain ? random.pick(['length', 'chunked']) : random.weighted(framingWeights)]
    : undefined
  const { headers = [], sent = '', whole = true } = framing?.(random, createBody(random)) ?? {}
  const lines = [
    `${method} ${target} HTTP/1.${plain || random.chance(0.95) ? 1 : random.pick(['0', '2', '10'])}`,
    ...(plain || random.chance(0.97) ? ['Host: fuzz.example'] : []),
    ...(plain || random.chance(0.9) ? [`X-Api-Key: ${apiKey}`] : []),
    ...(plain ? [] : random.list(random.int(0, 3), () => random.pick(extraHeaders)(random)))
      // a keep-alive beside a close may be believed instead
      .filter(line => !last || !/connection:/i.test(line)),
    ...headers,
    ...(last ? ['Connection: close'] : []),
  ]
  const head = `${lines.join('\r\n')}\r\n\r\n`
  return { text: head + sent, head, sent, whole: whole && method !== 'CONNECT' }
}

function chooseMethod(random, { target, plain }) {
  if (plain) return random.pick(['GET', 'GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS'])
  if (target === '*' && random.chance(0.7)) return 'OPTIONS'
  return random.chance(0.08) ? random.pick(oddMethods) : random.chance(0.5) ? 'GET' : random.pick(tokens)
}

/** A request that the well-behaved service answers with its token; odd only in ways that servers must accept. */
export function createOrderly(random, { token, last }) {
  const method = random.pick(['GET', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'])
  const framing = ['POST', 'PUT', 'PATCH', 'QUERY'].includes(method)
    ? framings[random.pick(['length', 'chunked', 'expectLength'])]
    : undefined
  const { headers = [], sent = '' } = framing?.(random, createBody(random)) ?? {}
  // a server that does not know the protocol ignores the offer (RFC 9110, section 7.8)
  const offer = random.chance(0.15) ? ['Connection: Upgrade', `Upgrade: ${random.pick(['h2c', 'TLS/1.0', 'x'])}`] : []
  const lines = [
    `${method} /good/${random.pick(['a', 'b', '%61', 'a/../b'])}?${random.int(1, 9)} HTTP/1.1`,
    'Host: fuzz.example',
    `X-Api-Key: ${apiKey}`,
    `X-Token: ${token}`,
    ...offer,
    ...headers,
    ...(last ? ['Connection: close'] : []),
  ]
  return `${lines.join('\r\n')}\r\n\r\n${sent}`
}

/** A request for another protocol. */
export function createUpgrade(random, { answers }) {
  const protocol = random.weighted([
    [5, 'websocket'],
    [4, 'h2c'],
    [1, 'TLS/1.0'],
    [1, 'WebSocket, h2c'],
    [1, ''],
    [1, '\xff'],
    [1, 'x'.repeat(2000)],
  ])
  const method = random.chance(0.85) ? 'GET' : random.pick(tokens)
  const body = random.chance(0.15) ? 'body' : ''
  const lines = [
    `${method} ${random.chance(0.95) ? `/ws?${answerQuery(random, answers)}` : '*'} HTTP/1.1`,
    'Host: fuzz.example',
    `X-Api-Key: ${apiKey}`,
    `Connection: ${random.pick(['Upgrade', 'upgrade', 'Upgrade, HTTP2-Settings', 'keep-alive, Upgrade', 'Upgrade, close'])}`,
    `Upgrade: ${protocol}`,
    ...(random.chance(0.8) ? ['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13'] : []),
    ...(random.chance(0.2) ? ['HTTP2-Settings: AAMAAABkAAQAAP__'] : []),
    ...(body === '' ? [] : [`Content-Length: ${body.length}`]),
  ]
  return { text: `${lines.join('\r\n')}\r\n\r\n${body}` }
}
