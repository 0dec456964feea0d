import { createRandom, type Random } from '../fuzz/random.mjs'

/** A request as bytes, which a caller of a proxy may send. */
export interface OddRequest {
  readonly name: string
  readonly bytes: Buffer
  /** True if its path is one below `/full/` in every reading. */
  readonly isLimited: boolean
  /** The caller leaves after this part of the bytes. */
  readonly leaves?: boolean
}

/** The odd parts of a request; a part that is left out is as usual. */
interface Oddity {
  readonly name: string
  readonly method?: string
  /** Behind the path of the rule. */
  readonly target?: string
  /** In place of path and target. */
  readonly wholeTarget?: string
  readonly version?: string
  /** Undefined: the usual one; an empty list: none. */
  readonly hosts?: readonly string[]
  readonly lines?: readonly string[]
  readonly body?: string
  readonly leaves?: boolean
}

const controls = [...Array(0x20).keys(), 0x7f].filter(code => code !== 0x0a).map(code => String.fromCharCode(code))
const repeat = (count: number, line: (index: number) => string): string[] =>
  Array.from({ length: count }, (_, i) => line(i))

/** Each kind of oddity, with its random parts. */
const kinds: Readonly<Record<string, (random: Random) => Oddity>> = {
  control: random => {
    const text = random.pick(controls)
    const value = random.pick([text, `a${text}`, `a${text}b`, `${text}b`])
    return { name: JSON.stringify(value), lines: [`X-Odd: ${value}`] }
  },
  controlInCookie: random => ({ name: 'cookie', lines: [`Cookie: a=${random.pick(controls)}b`] }),
  highBytes: random => ({ name: 'bytes', lines: [`X-Odd: ${random.bytes(8).replaceAll(/[^\x80-\xff]/g, '\xe9')}`] }),
  folded: random => ({ name: 'obs-fold', lines: ['X-Odd: a', `${random.pick([' ', '\t'])}b`] }),
  headerName: random => {
    const name = random.pick([
      '',
      ' ',
      'X Odd',
      'X-Odd ',
      'X_Odd',
      'X(Odd',
      'X/Odd',
      'X\x00',
      'X\x7f',
      'X\xe9',
      '"X"',
      '{X}',
      'X@',
      '!#$',
    ])
    return { name: JSON.stringify(name), lines: [`${name}: a`] }
  },
  lineWithoutColon: random => ({ name: 'line', lines: [random.pick(['X-Odd', '=', '\xff', 'GET / HTTP/1.1'])] }),
  largeHeader: random => {
    const size = random.pick([
      4, 8, 15, 16, 17, 20, 24, 28, 31, 33, 48, 63, 64, 65, 100, 127, 129, 256, 512, 1000, 1030, 1100,
    ])
    return { name: `${size}K`, lines: [`X-Odd: ${'a'.repeat(size * 1024)}`] }
  },
  largeHeaders: random => {
    const size = random.pick([7000, 7900])
    const count = random.pick([2, 3, 4, 5, 8, 9, 16, 17, 100])
    return { name: `${count} of ${size}`, lines: repeat(count, index => `X-Odd-${index}: ${'a'.repeat(size)}`) }
  },
  manyHeaders: random => {
    const count = random.pick([90, 101, 129, 257, 1000, 1025, 1999, 2001, 5000])
    const isSame = random.chance(0.5)
    return {
      name: `${count}${isSame ? ' of a name' : ''}`,
      lines: repeat(count, i => (isSame ? 'a:b' : `${i.toString(36)}:`)),
    }
  },
  lengths: random => {
    const lines = random.pick([
      ['Content-Length: 5', 'Content-Length: 5'],
      ['Content-Length: 5', 'Content-Length: 6'],
      ['Content-Length: 5, 5'],
      ['Content-Length: +5'],
      ['Content-Length: -1'],
      ['Content-Length: 0x5'],
      ['Content-Length: 5 5'],
      ['Content-Length: '],
      ['Content-Length: 99999999999999999999'],
      ['Content-Length: 9223372036854775807'],
      ['Content-Length: 18446744073709551616'],
      ['Content-Length: 5', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: chunked, identity'],
      ['Transfer-Encoding: identity'],
      ['Transfer-Encoding: xchunked'],
      ['Transfer-Encoding: gzip, chunked'],
      ['Transfer-Encoding:\tchunked'],
      ['Transfer-Encoding: "chunked"'],
    ])
    return {
      name: lines.join(),
      method: random.pick(['GET', 'POST']),
      lines,
      body: random.pick(['', 'hello', '5\r\nhello\r\n0\r\n\r\n']),
    }
  },
  chunks: random => ({
    name: 'chunks',
    method: 'POST',
    lines: ['Transfer-Encoding: chunked'],
    body: random.pick([
      'zz\r\n',
      '5\r\nhel',
      '-1\r\n',
      '5;a="\r\nhello\r\n0\r\n\r\n',
      '0\r\nX: y\r\n\r\n',
      'ffffffffffffffffff\r\n',
      '5\nhello\n0\n\n',
    ]),
  }),
  expectation: random => ({
    name: 'expect',
    method: random.pick(['GET', 'POST']),
    lines: [
      `Expect: ${random.pick(['100-continue', '100-Continue', 'nothing', '', '100-continue, x'])}`,
      `Content-Length: ${random.pick([0, 5])}`,
    ],
    body: random.pick(['', 'hello']),
  }),
  method: random => {
    const method = random.pick([
      ...[
        'BREW',
        'get',
        'G',
        'GE-T',
        'G_T',
        "M'",
        'PRI',
        'CONNECT',
        'TRACE',
        'OPTIONS',
        'HEAD',
        'QUERY',
        'PURGE',
        'M-SEARCH',
      ],
      ...[
        'LINK',
        'ACL',
        'A'.repeat(100),
        'A'.repeat(5000),
        'GET\x01',
        'G ET',
        '',
        '\xe9',
        'DELETE',
        'PATCH',
        'PROPFIND',
        'SOURCE',
      ],
    ])
    return { name: JSON.stringify(method.slice(0, 20)), method }
  },
  target: random => {
    const size = random.pick([1000, 4000, 7900, 8100, 8190, 12_000, 16_000, 32_000, 60_000])
    const target = random.pick([
      ...[`/${'a'.repeat(size)}`, `?${'a'.repeat(size)}`, '/a'.repeat(size / 10), '/%61'.repeat(size / 10)],
      ...[
        '/%zz',
        '/%00',
        '/%',
        '/\x01',
        '/\x7f',
        '/\xe9',
        '/\xff\xfe',
        '/%ff',
        '/%c0%ae',
        '/#a',
        '/a b',
        '/\\',
        '/;',
        '/"',
        '/{}',
        '?\xe9',
        '?%',
        '/\t',
      ],
    ])
    return { name: JSON.stringify(target.slice(0, 20)), target }
  },
  wholeTarget: random => {
    const wholeTarget = random.pick([
      ...[
        '*',
        'full',
        'http://other/full/x',
        'http://a b/full/x',
        'http://user@other/full/x',
        '//full/x',
        '/./full/x',
        '/x/../full/x',
      ],
      ...[
        'http:///full/x',
        'other:443',
        '\\full\\x',
        '/full/../full/x',
        'HTTP://other/full/x',
        'ftp://other/full/x',
        '?full',
        '',
      ],
    ])
    return { name: wholeTarget, wholeTarget }
  },
  version: random => {
    const version = random.pick([
      'HTTP/1.0',
      'HTTP/0.9',
      'HTTP/1.2',
      'HTTP/2.0',
      'HTTP/3.0',
      'HTTP/1.10',
      'http/1.1',
      'HTTP/1.',
      'HTTQ/1.1',
      '',
    ])
    return { name: version, version, ...(random.chance(0.5) && { hosts: [] }) }
  },
  host: random => {
    const hosts = random.pick([
      ...[
        [],
        [''],
        ['a', 'b'],
        ['a', 'a'],
        ['a b'],
        ['a,b'],
        ['a\x01'],
        ['\xe9'],
        ['a/b'],
        ['a@b'],
        ['[::1]'],
        ['[::1'],
        ['a:99999'],
        ['a:b'],
      ],
      ...[
        ['.'],
        ['a..b'],
        ['A'],
        ['a.'],
        ['a_b'],
        ['%61'],
        [`${'a'.repeat(300)}`],
        ['a'.repeat(6000)],
        ['xn--a'],
        ['a:'],
        ['"a"'],
        ['a?b'],
        ['1'],
      ],
    ])
    return { name: JSON.stringify(hosts).slice(0, 30), hosts }
  },
  connection: random => {
    const lines = random.pick([
      ['Connection: X-Original-URI, X-Forwarded-Uri, X-Forwarded-Method, X-Original-Method'],
      ['Connection: Host'],
      [
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ],
      ['Connection: Upgrade', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA'],
      ['Connection: upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA'],
      ['Connection: Upgrade', 'Upgrade: \x01'],
      ['Connection: Upgrade'],
      ['Upgrade: TLS/1.0'],
      ['Connection: ,,,', 'Keep-Alive: timeout=0'],
      ['Connection: \xff'],
      ['TE: trailers', 'Trailer: X-Original-URI'],
      ['Proxy-Connection: keep-alive'],
    ])
    return { name: lines[0]!, lines }
  },
  lies: random => {
    const value = random.pick([
      '/free',
      '',
      '\xff',
      'a'.repeat(7000),
      '/full/%zz',
      ','.repeat(3000),
      '1.2.3.4, '.repeat(600),
    ])
    const name = random.pick([
      ...[
        'X-Original-URI',
        'X-Original-Method',
        'X-Forwarded-Uri',
        'X-Forwarded-Method',
        'X-Forwarded-Host',
        'X-Forwarded-For',
      ],
      ...[
        'Forwarded',
        'X-Forwarded-Proto',
        'X-Real-IP',
        'X-Request-ID',
        'X-Original-Host',
        'Via',
        'Diana-Status',
        'Diana-Body',
      ],
    ])
    return {
      name: `${name} ${value.length}`,
      lines: random.chance(0.5) ? [`${name}: ${value}`] : [`${name}: ${value}`, `${name}: b`],
    }
  },
  contentType: random => {
    const type = random.pick([
      'application/grpc',
      'application/grpc+proto',
      'application/grpc-web',
      'Application/GRPC; a=b',
      'application/json',
      '\xff',
      'text/event-stream',
    ])
    return { name: type, method: random.pick(['GET', 'POST']), lines: [`Content-Type: ${type}`, 'TE: trailers'] }
  },
  conditions: random => ({
    name: 'conditions',
    lines: [
      random.pick([
        'If-None-Match: *',
        'If-Match: "a"',
        'Range: bytes=0-0',
        'If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT',
        'Accept-Encoding: gzip',
        'Accept: nothing/nothing',
        'grpc-timeout: 0n',
      ]),
    ],
  }),
  leaving: random => ({
    name: 'leaving',
    method: 'POST',
    lines: random.pick([
      ['Content-Length: 100000'],
      ['Transfer-Encoding: chunked'],
      ['Content-Length: 5'],
      ['X-Odd: a'],
    ]),
    body: random.pick(['', 'h', '5\r\nhello\r\n']),
    leaves: true,
  }),
  body: random => {
    const size = random.pick([1, 1000, 70_000, 1_200_000])
    return {
      name: `${size}`,
      method: random.pick(['GET', 'POST', 'PUT', 'DELETE']),
      lines: [`Content-Length: ${size}`],
      body: 'a'.repeat(size),
    }
  },
}

/** As many requests as asked for: each kind in turn, and every third with another oddity besides. They ask for paths below `/full/`. */
export function oddRequests(seed: number | string, count: number): OddRequest[] {
  const random = createRandom(seed)
  const names = Object.keys(kinds)
  return Array.from({ length: count }, (_, index) => {
    const kind = names[index % names.length]!
    const oddities = [[kind, kinds[kind]!(random)] as const]
    if (index % 3 === 2) {
      const other = random.pick(names)
      oddities.push([other, kinds[other]!(random)])
    }
    const name = oddities.map(([of, { name: what }]) => `${of} ${what}`).join(' and ')
    return { ...compose(oddities.map(([, oddity]) => oddity)), name: `${index}: ${name}` }
  })
}

function compose(oddities: readonly Oddity[]): Omit<OddRequest, 'name'> {
  const {
    method = 'GET',
    target = '/x',
    wholeTarget,
    version = 'HTTP/1.1',
    hosts = ['a.example'],
    body = '',
    leaves = false,
  } = Object.assign({}, ...oddities) as Oddity
  const lines = oddities.flatMap(one => one.lines ?? [])
  const head = [
    `${method} ${wholeTarget ?? `/full${target}`}${version === '' ? '' : ` ${version}`}`,
    ...hosts.map(host => `Host: ${host}`),
    ...lines,
    ...(lines.some(line => /^connection:/i.test(line)) ? [] : ['Connection: close']),
  ]
  return {
    bytes: Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1'),
    leaves,
    isLimited: wholeTarget === undefined,
  }
}
