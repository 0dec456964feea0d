// What a hostile service may answer. Text has one character per byte (latin1). Steps: { send, times } | { pause } | 'end' | 'reset'.

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const utf8 = text => Buffer.from(text, 'utf8').toString('latin1')
const withStatus = line => `HTTP/1.1 ${line}\r\ncontent-length: 2\r\n\r\nok`
const withHeader = line => `HTTP/1.1 200 OK\r\n${line}\r\ncontent-length: 2\r\n\r\nok`
const chunkedHead = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

/** Answers that are fine, so that connections are kept and used again. */
const good = [
  () => [{ send: ok }],
  () => [{ send: `${chunkedHead}2\r\nok\r\n0\r\n\r\n` }],
  () => [{ send: 'HTTP/1.1 204 No Content\r\n\r\n' }],
  () => [{ send: 'HTTP/1.1 304 Not Modified\r\ncontent-length: 1000\r\netag: "a"\r\n\r\n' }],
  () => [{ send: 'HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nvary: *\r\ncontent-length: 2\r\n\r\nok' }],
  random => [{ pause: random.int(5, 150) }, { send: ok }],
]

const large = random => [
  { send: `HTTP/1.1 200 OK\r\ncontent-length: ${64 * 65_536}\r\n\r\n` },
  { send: random.pick(['l', 'L']).repeat(65_536), times: 64 },
]

/** Status lines that are not as they should be. */
const statusLines = [
  utf8('404 找不到'),
  utf8('200 ✓'),
  '404 Nicht gefunden \xfc\xe4',
  '200 \x01\x02',
  '200 \x7f',
  '200 a\tb',
  '200 \x00',
  '200 OK\x0bx',
  '200',
  '200 ',
  `200 ${'r'.repeat(5000)}`,
  '999 Odd',
  '099 Odd',
  '000 Odd',
  '600 Odd',
  '1000 Odd',
  '20 Odd',
  'abc Odd',
  '-20 Odd',
  '100 Continue',
  '199 Odd',
  '101 Switching Protocols',
  '204 No Content',
  '205 Reset Content',
  '304 Not Modified',
  '407 Proxy Authentication Required',
  '408 Request Timeout',
  '421 Misdirected Request',
]

const headerLines = [
  'x: \x01',
  'x: a\x00b',
  'x: \x7f',
  'x: a\rb',
  'x: \xff\xfe',
  utf8('x: 找'),
  utf8('名: x'),
  'bad name: x',
  'x : x',
  ': x',
  'x',
  'x: a\r\n folded',
  '(x): 1',
  '__proto__: 1',
  'constructor: 1',
  `x: ${'v'.repeat(20_000)}`,
  `x: ${'v'.repeat(200_000)}`,
  Array.from({ length: 1500 }, (_, index) => `x-${index}: ${index}`).join('\r\n'),
  'content-length: 2',
  'content-length: 3',
  'content-length: -1',
  'content-length: 99999999999999999999',
  'content-length: 2, 2',
  'content-length: x',
  'transfer-encoding: chunked',
  'transfer-encoding: gzip, chunked',
  'transfer-encoding: identity',
  'transfer-encoding: \x01',
  'connection: close',
  'connection: x, content-length, transfer-encoding',
  'connection: \xff',
  'connection: upgrade\r\nupgrade: websocket',
  'keep-alive: timeout=0',
  'keep-alive: timeout=99999999999999',
  'keep-alive: timeout=-1',
  'trailer: content-length',
  'ratelimit: "a";r=\x01',
  'ratelimit-policy: \xff',
  'retry-after: -5',
  'vary: \x00',
  'date: never',
  'content-encoding: gzip',
  'location: http://[',
  'set-cookie: \xe4\xb8\xad=\x02',
]

const bodies = [
  `${chunkedHead}zz\r\n`,
  `${chunkedHead}2\r\nokXX0\r\n\r\n`,
  `${chunkedHead}ffffffffffffffffff\r\nok`,
  `${chunkedHead}2;${'e'.repeat(20_000)}\r\nok\r\n0\r\n\r\n`,
  `${chunkedHead}2\r\nok\r\n0\r\nx-trailer: \x01\r\n\r\n`,
  `${chunkedHead}2\r\nok\r\n0\r\n${'x-trailer: 1\r\n'.repeat(2000)}\r\n`,
  `${chunkedHead}-2\r\nok\r\n`,
  'HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\nok',
  'HTTP/1.1 304 Not Modified\r\n\r\nunexpected body',
  'HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  `${ok}${ok}`,
  `${ok}garbage`,
  'HTTP/1.1 200 OK\ncontent-length: 2\n\nok',
  'HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nok',
  'HTTP/0.9 200 OK\r\n\r\n',
  'ICY 200 OK\r\n\r\n',
  'just text\r\n\r\n',
  '\r\n\r\n\r\n',
  '\0'.repeat(64),
  'SSH-2.0-OpenSSH_9.6\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
]

/** Answers that break off, dawdle, come too early or too often. */
const conducts = [
  () => ['end'],
  () => ['reset'],
  () => [{ send: 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort' }, 'end'],
  () => [{ send: 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort' }, { pause: 20 }, 'reset'],
  () => [{ send: `${chunkedHead}5\r\nhello\r\n` }, 'end'],
  () => [{ send: `${chunkedHead}5\r\nhello\r\n` }, 'reset'],
  () => [{ send: 'HTTP/1.1 200 OK\r\n\r\nuntil the end' }, 'end'],
  () => [{ send: 'HTTP/1.0 200 OK\r\n\r\nuntil the end' }, 'end'],
  () => [{ send: 'HTTP/1.1 200 OK\r\ncontent-le' }, 'end'],
  random => [{ send: ok.slice(0, random.int(1, 20)) }, { pause: random.int(1, 300) }, { send: ok.slice(20) }, 'end'],
  () => [{ send: ok }, 'end'],
  () => [{ send: ok }, 'reset'],
  () => [{ send: ok }, { pause: 30 }, { send: 'HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n' }, 'end'],
  () => ['hang'],
  () => [{ send: 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nthen nothing' }, 'hang'],
  () => [{ send: `${chunkedHead}5\r\nhello\r\n` }, 'hang'],
  () => [{ send: 'HTTP/1.1 100 Continue\r\n\r\n' }, { send: ok }],
  () => [{ send: 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n', times: 5 }, { send: ok }],
  random => [{ send: 'HTTP/1.1 102 Processing\r\n\r\n', times: random.int(50, 3000) }, { send: ok }],
  () => [{ send: 'HTTP/1.1 102 Processing\r\n\r\n', times: 20 }, 'hang'],
  () => [{ send: 'HTTP/1.1 103 Early Hints\r\n\r\n' }, 'reset'],
  () => [{ send: 'HTTP/1.1 101 Switching Protocols\r\n\r\n' }, 'hang'],
  () => [{ send: 'HTTP/1.1 426 Upgrade Required\r\nupgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 0\r\n\r\n' }],
  random =>
    Array.from({ length: 10 }, (_, index) => [
      { send: ok.slice(index * 4, index * 4 + 4) },
      { pause: random.int(5, 40) },
    ]).flat(),
  random => [
    { send: chunkedHead },
    ...Array.from({ length: 8 }, () => [{ send: '1\r\nx\r\n' }, { pause: random.int(20, 120) }]).flat(),
    { send: '0\r\n\r\n' },
  ],
]

const upgradeHead = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: '
const upgrades = [
  () => [
    { send: `${upgradeHead}websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n` },
    { send: '\x81\x02ok', times: 20 },
    'hang',
  ],
  () => [{ send: `${upgradeHead}websocket\r\n\r\n` }, { pause: 30 }, 'reset'],
  () => [{ send: `${upgradeHead}websocket\r\n\r\n` }, 'end'],
  () => [{ send: `${upgradeHead}h2c\r\n\r\n` }, 'hang'],
  random => [
    { send: `${upgradeHead}websocket\r\nx: ${random.pick(['\x01', '\xff', utf8('找'), 'a\x00'])}\r\n\r\n` },
    'hang',
  ],
  () => [{ send: `${upgradeHead}websocket\r\n\r\n` }, { send: '\x82\x7f'.repeat(30_000), times: 20 }, 'hang'],
]

/** One answer: its steps, and whether it is sent before the body of the request has arrived. */
export function createAnswer(random, kind = chooseKind(random)) {
  const steps = {
    good: () => random.pick(good)(random),
    large: () => large(random),
    status: () => [{ send: withStatus(random.pick(statusLines)) }],
    header: () => [{ send: withHeader(random.pick(headerLines)) }],
    body: () => [{ send: random.pick(bodies) }, ...random.pick([[], ['end'], ['hang']])],
    conduct: () => random.pick(conducts)(random),
    upgrade: () => random.pick(upgrades)(random),
    garbage: () => [{ send: random.bytes(random.int(1, 300)) }, random.pick(['end', 'reset', 'hang'])],
  }[kind]()
  return { kind, early: random.chance(0.2), steps }
}

function chooseKind(random) {
  return random.weighted([
    [8, 'good'],
    [1, 'large'],
    [4, 'status'],
    [4, 'header'],
    [3, 'body'],
    [4, 'conduct'],
    [1, 'upgrade'],
    [1, 'garbage'],
  ])
}
