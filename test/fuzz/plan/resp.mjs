import { departure } from './scripts.mjs'

const command = (...words) => `*${words.length}\r\n${words.map(word => `$${word.length}\r\n${word}\r\n`).join('')}`
const numbers = [
  '0',
  '1',
  '-1',
  '15',
  '60',
  '99999999999',
  '1e3',
  '1e400',
  'NaN',
  'Infinity',
  '0x10',
  '01',
  '',
  ' 1',
  '2147483647',
  '2147483648',
]

const throttle = random =>
  command(
    random.pick(['CL.THROTTLE', 'cl.throttle']),
    random.pick(['k', 'a:b', '', '{a}', random.bytes(random.int(0, 40))]),
    ...random.list(random.int(0, 6), () => random.pick(numbers)),
  )

const byRule = random =>
  command(
    random.pick(['DIANA.CHECK', 'DIANA.PEEK', 'DIANA.TAKE', 'DIANA.RESET']),
    random.pick(['all', 'none', 'cl-throttle', '__proto__', '', random.bytes(random.int(0, 300))]),
    ...random.list(random.int(0, 8), () => random.pick(['ann', ...numbers])),
  )

const other = random =>
  random.pick([
    ...[command('HELLO', random.pick(['2', '3', '4', 'x'])), command('HELLO', '3', 'SETNAME', 'a')],
    ...[
      command('COMMAND', random.pick(['DOCS', 'COUNT', 'INFO', 'x'])),
      command('INFO'),
      command('CONFIG', 'GET', '*'),
    ],
    ...[
      command('RESET'),
      command('CLIENT', random.pick(['ID', 'SETNAME', 'LIST'])),
      command('AUTH', random.bytes(random.int(0, 40))),
      command('HELLO', '3', 'AUTH', 'default', random.bytes(16), 'SETNAME', random.bytes(8)),
      command('SELECT', '1'),
    ],
    ...['PING\r\n', 'PING "a', "ECHO 'b' \\\n", '\r\n\r\n', '*0\r\n', '*-1\r\n'],
  ])

/** Lengths that are announced, and not what follows. */
const broken = random =>
  `*${random.pick(['1', '2', '1024', '1025', '-5', '', 'x', '99999999999999'])}\r\n` +
  `$${random.pick(['1', '65536', '65537', '-1', '', '4294967296'])}\r\n${random.bytes(random.int(0, 30))}`

/** Requests of other protocols, whose bodies are commands. */
const foreign = random =>
  random.pick([
    `${random.pick(['GET', 'POST', 'PING', 'ECHO', 'x'])} /${random.bytes(random.int(0, 20))} HTTP/1.1\r\nHost: a\r\n\r\nDIANA.RESET all\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    `\x16\x03\x01${random.bytes(random.int(0, 200))}\n`,
    `${random.pick(['>', '%', '~', '!', '=', '#', ',', '('])}${random.pick(numbers)}\r\n`,
    '*1\r\n*1\r\n*1\r\n$4\r\nPING\r\n',
  ])

/** Commands that are answered whatever they ask for, most of them with more bytes than they have. */
const harmless = random =>
  random.pick([
    ...[
      'PING\r\n',
      'INFO\r\n',
      'COMMAND\r\n',
      command('COMMAND', 'DOCS'),
      command('DIANA.PEEK', 'limited', '192.0.2.1'),
    ],
    ...[command('CL.THROTTLE', 'k', '15', '30', '60'), command('ECHO', 'e'.repeat(random.pick([1, 20_000])))],
  ])

/** A pipeline that its client reads to the end, and that must have one. */
export function respPipeline(random) {
  const one = random.chance(0.5) ? harmless(random) : undefined
  const commands = random.list(random.pick([1, 20, 400, 4000]), () => one ?? harmless(random))
  const text = [...commands, 'QUIT\r\n'].join('').slice(-4_000_000)
  return { requests: commands.length, mustEnd: true, steps: [{ write: text }, { untilClosed: 7000 }] }
}

/** Commands of clients of Redis, of which some are cut, broken or unknown. */
export function respCommands(random) {
  const commands = random.list(random.pick([1, 3, 20, 200, 2000]), () =>
    random.weighted([
      [8, () => throttle(random)],
      [6, () => byRule(random)],
      [4, () => other(random)],
      [0.1, () => broken(random)],
      [0.1, () => random.bytes(random.int(1, 100))],
      [0.05, () => foreign(random)],
      [0.1, () => command('ECHO', 'e'.repeat(random.pick([1000, 60_000])))],
    ])(),
  )
  const text = commands.join('')
  const cut = random.chance(0.5) ? text.length : random.int(1, text.length)
  return {
    requests: commands.length,
    steps: [
      { write: text.slice(0, cut) },
      { pause: random.int(0, 20) },
      { write: text.slice(cut) },
      ...departure(random),
    ],
  }
}
