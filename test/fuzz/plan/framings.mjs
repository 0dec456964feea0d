/** The bytes of a body. */
export function createBody(random) {
  return random.weighted([
    [6, () => 'b'.repeat(random.int(1, 200))],
    [2, () => 'B'.repeat(random.int(20_000, 200_000))],
    [1, () => random.bytes(random.int(1, 300))],
  ])()
}

function chunked(random, body) {
  const size = Math.max(1, Math.ceil(body.length / random.int(1, 6)))
  let text = ''
  for (let at = 0; at < body.length; at += size) {
    const piece = body.slice(at, at + size)
    const extension = random.chance(0.1) ? `;${'e'.repeat(random.int(1, 60))}=1` : ''
    text += `${piece.length.toString(16)}${extension}\r\n${piece}\r\n`
  }
  const trailers = random.chance(0.2) ? 'x-sum: 1\r\nHost: trailer.example\r\n' : ''
  return `${text}0\r\n${trailers}\r\n`
}

/** How a body is framed; each returns headers, the bytes, and whether the request is whole. */
export const framings = {
  length: (_random, body) => ({ headers: [`Content-Length: ${body.length}`], sent: body, whole: true }),
  chunked: (random, body) => ({ headers: ['Transfer-Encoding: chunked'], sent: chunked(random, body), whole: true }),
  expectLength: (_random, body) => ({
    headers: [`Content-Length: ${body.length}`, 'Expect: 100-continue'],
    sent: body,
    whole: true,
  }),
  tooLong: (random, body) => ({
    headers: [`Content-Length: ${body.length + random.int(1, 100_000)}`],
    sent: body,
    whole: false,
  }),
  tooShort: (_random, body) => ({ headers: [`Content-Length: ${body.length >> 1}`], sent: body, whole: false }),
  both: (random, body) => ({
    headers: ['Transfer-Encoding: chunked', `Content-Length: ${body.length}`],
    sent: chunked(random, body),
    whole: false,
  }),
  twoLengths: (_random, body) => ({
    headers: [`Content-Length: ${body.length}`, `Content-Length: ${body.length + 1}`],
    sent: body,
    whole: false,
  }),
  oddLength: (random, body) => ({
    headers: [`Content-Length: ${random.pick(['-1', '+5', '5, 5', '0x5', '', ' ', '99999999999999999999', '1e3'])}`],
    sent: body,
    whole: false,
  }),
  oddCoding: (random, body) => ({
    headers: [
      `Transfer-Encoding: ${random.pick(['gzip, chunked', 'chunked, gzip', 'identity', 'x', 'chunked, chunked', ' chunked'])}`,
    ],
    sent: chunked(random, body),
    whole: false,
  }),
  brokenChunks: (random, body) => ({
    headers: ['Transfer-Encoding: chunked'],
    sent: random.pick([
      'zz\r\nxx\r\n',
      `5\r\n${body}`,
      'fffffffffffffffff\r\n',
      '-1\r\n',
      '5;\r\nhello',
      '\r\n\r\n',
      '0\r\n',
    ]),
    whole: false,
  }),
  badExpect: (_random, body) => ({
    headers: [`Content-Length: ${body.length}`, 'Expect: 200-maybe'],
    sent: body,
    whole: true,
  }),
}

/** How often each is used. */
export const framingWeights = [
  [8, 'length'],
  [6, 'chunked'],
  [4, 'expectLength'],
  [2, 'tooLong'],
  [1, 'tooShort'],
  [1, 'both'],
  [1, 'twoLengths'],
  [1, 'oddLength'],
  [1, 'oddCoding'],
  [2, 'brokenChunks'],
  [1, 'badExpect'],
]
